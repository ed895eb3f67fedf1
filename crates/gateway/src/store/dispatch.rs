//! Which command is carried out by what.

use super::Store;
use super::errors::{Answer, arity};
use super::times::When;
use crate::Reply;
use crate::command::Keyed;
use bytes::Bytes;

impl Store {
    /// Carries out a command whose arguments (the name first) are as many as its table entry says.
    ///
    /// If the future is dropped before it is done, what the command has sent to the cluster goes on
    /// to its end, and nothing more is sent.
    pub async fn run(&self, command: Keyed, args: &[Bytes]) -> Reply {
        let answer = match (command, args) {
            (Keyed::Get, [_, key]) => self.get_value(key).await,
            (Keyed::Set, [_, key, value, options @ ..]) => self.set(key, value, options).await,
            // What most commands are has a future without the room that the largest takes.
            _ => Box::pin(self.carry_out(command, args)).await,
        };
        answer.unwrap_or_else(|error| error)
    }

    async fn carry_out(&self, command: Keyed, args: &[Bytes]) -> Answer {
        match (command, args) {
            (Keyed::GetDel, [_, key]) => self.get_and_delete(key).await,
            (Keyed::GetEx, [_, key, options @ ..]) => self.get_and_expire(key, options).await,
            (Keyed::GetSet, [_, key, value]) => self.get_and_set(key, value).await,
            (Keyed::SetNx, [_, key, value]) => self.set_new(key, value).await,
            (Keyed::SetEx, [_, key, time, value]) => {
                self.set_for(command, When::EX, key, time, value).await
            }
            (Keyed::PSetEx, [_, key, time, value]) => {
                self.set_for(command, When::PX, key, time, value).await
            }
            (Keyed::DelIfEq, [_, key, value]) => self.delete_if(key, value).await,
            (Keyed::Append, [_, key, tail]) => self.append(key, tail).await,
            (Keyed::StrLen, [_, key]) => self.len(key).await,
            (Keyed::GetRange | Keyed::SubStr, [_, key, first, last]) => {
                self.part(key, first, last).await
            }
            (Keyed::SetRange, [_, key, offset, part]) => self.set_part(key, offset, part).await,
            (Keyed::Incr, [_, key]) => self.add(key, 1).await,
            (Keyed::Decr, [_, key]) => self.add(key, -1).await,
            (Keyed::IncrBy, [_, key, delta]) => self.add_given(key, delta).await,
            (Keyed::DecrBy, [_, key, delta]) => self.subtract_given(key, delta).await,
            (Keyed::IncrByFloat, [_, key, delta]) => self.add_float(key, delta).await,
            (Keyed::MGet, [_, keys @ ..]) => self.values(keys).await,
            (Keyed::MSet, [_, pairs @ ..]) => self.set_all(pairs).await,
            (Keyed::MSetNx, _) => self.set_all_new(args).await,
            _ => self.carry_out_generic(command, args).await,
        }
    }

    async fn carry_out_generic(&self, command: Keyed, args: &[Bytes]) -> Answer {
        match (command, args) {
            (Keyed::Eval | Keyed::EvalRo | Keyed::EvalSha | Keyed::EvalShaRo, _) => {
                self.eval(command, args).await
            }
            (Keyed::Del | Keyed::Unlink, [_, keys @ ..]) => self.delete(keys).await,
            (Keyed::Exists | Keyed::Touch, [_, keys @ ..]) => self.count(keys).await,
            (Keyed::Type, [_, key]) => self.type_of(key).await,
            (Keyed::Expire, [_, key, time, options @ ..]) => {
                self.expire(command, When::EX, key, time, options).await
            }
            (Keyed::PExpire, [_, key, time, options @ ..]) => {
                self.expire(command, When::PX, key, time, options).await
            }
            (Keyed::ExpireAt, [_, key, time, options @ ..]) => {
                self.expire(command, When::EXAT, key, time, options).await
            }
            (Keyed::PExpireAt, [_, key, time, options @ ..]) => {
                self.expire(command, When::PXAT, key, time, options).await
            }
            (Keyed::Ttl, [_, key]) => self.time_left(key, When::EX).await,
            (Keyed::PTtl, [_, key]) => self.time_left(key, When::PX).await,
            (Keyed::ExpireTime, [_, key]) => self.time_left(key, When::EXAT).await,
            (Keyed::PExpireTime, [_, key]) => self.time_left(key, When::PXAT).await,
            (Keyed::Persist, [_, key]) => self.persist(key).await,
            (Keyed::Rename | Keyed::RenameNx, [_, from, to]) if self.view.is_some() => {
                self.rename(command, from, to).await
            }
            (Keyed::Copy, [_, from, to, options @ ..]) => {
                let replaces = self.copy_replaces(from, to, options)?;
                match self.view {
                    Some(_) => self.copy(from, to, replaces).await,
                    None => self.atomically(command, args).await,
                }
            }
            (Keyed::Rename | Keyed::RenameNx, _) => self.atomically(command, args).await,
            (Keyed::Object, [_, name, arguments @ ..]) => self.object(name, arguments).await,
            (Keyed::Memory, [_, name, arguments @ ..]) => self.memory(name, arguments).await,
            (Keyed::Scan, [_, cursor, options @ ..]) => self.scan(cursor, options).await,
            (Keyed::Keys, [_, pattern]) => self.list(pattern).await,
            (Keyed::RandomKey, [_]) => self.any().await,
            (Keyed::DbSize, [_]) => self.size().await,
            (Keyed::FlushDb | Keyed::FlushAll, [_, options @ ..]) => {
                self.flush(command, options).await
            }
            _ => Err(arity(command)),
        }
    }
}
