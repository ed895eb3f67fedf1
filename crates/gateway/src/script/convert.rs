//! Replies as values of Lua, and the other way round, as Redis has it.

use super::raised::bytes_of;
use crate::Reply;
use bytes::Bytes;
use mlua::{Lua, Table, Value};

/// Lists inside lists: more than any client reads, and no more than a thread has room for.
const DEPTH_MAX: usize = 128;
/// Bytes of a reply: of those that are put together out of many values.
const REPLY_MAX: usize = 64 << 20;
/// What each part of a reply takes beside its bytes.
const PART: usize = size_of::<Reply>();

/// What is left for a reply.
#[derive(Debug)]
pub(super) struct ReplyBudget {
    bytes: usize,
    depth: usize,
}

impl Default for ReplyBudget {
    fn default() -> Self {
        Self { bytes: REPLY_MAX, depth: DEPTH_MAX }
    }
}

impl ReplyBudget {
    fn take(&mut self, bytes: usize) -> Result<(), Reply> {
        let left = self.bytes.checked_sub(bytes.saturating_add(PART));
        self.bytes = left.ok_or_else(|| {
            let text = format!("ERR the reply of the script has more than {REPLY_MAX} bytes");
            Reply::Error(text.into())
        })?;
        Ok(())
    }

    fn inside<T>(&mut self, what: impl FnOnce(&mut Self) -> Result<T, Reply>) -> Result<T, Reply> {
        self.depth = self.depth.checked_sub(1).ok_or(TOO_DEEP)?;
        let inside = what(self);
        self.depth += 1;
        inside
    }
}

const TOO_DEEP: Reply = Reply::error("ERR reached lua stack limit");

/// The reply of a command, as a script sees it.
pub(super) fn to_value(lua: &Lua, reply: Reply, resp3: bool) -> mlua::Result<Value> {
    let field = |name: &str, value: Value| -> mlua::Result<Value> {
        let table = lua.create_table()?;
        table.raw_set(name, value)?;
        Ok(Value::Table(table))
    };
    let string =
        |bytes: &[u8]| -> mlua::Result<Value> { Ok(Value::String(lua.create_string(bytes)?)) };
    #[expect(clippy::cast_precision_loss, reason = "Lua has no other numbers")]
    Ok(match reply {
        Reply::Status(text) => field("ok", string(text.as_bytes())?)?,
        Reply::Error(text) => field("err", string(text.as_bytes())?)?,
        Reply::Integer(number) => Value::Number(number as f64),
        Reply::Bulk(bytes) => string(&bytes)?,
        Reply::Null | Reply::NullArray if resp3 => Value::Nil,
        Reply::Null | Reply::NullArray | Reply::Long(_) => Value::Boolean(false),
        Reply::Array(items) => list(lua, items, resp3)?,
        Reply::Set(items) if !resp3 => list(lua, items, resp3)?,
        Reply::Set(items) => {
            let set = lua.create_table()?;
            for item in items {
                set.raw_set(to_value(lua, item, resp3)?, true)?;
            }
            field("set", Value::Table(set))?
        }
        Reply::Map(pairs) if !resp3 => {
            list(lua, pairs.into_iter().flat_map(|(key, value)| [key, value]), resp3)?
        }
        Reply::Map(pairs) => {
            let map = lua.create_table()?;
            for (key, value) in pairs {
                map.raw_set(to_value(lua, key, resp3)?, to_value(lua, value, resp3)?)?;
            }
            field("map", Value::Table(map))?
        }
        Reply::Double(number) if resp3 => field("double", Value::Number(number))?,
        Reply::Double(number) => string(number.to_string().as_bytes())?,
        Reply::Boolean(is) if resp3 => Value::Boolean(is),
        Reply::Boolean(is) => Value::Number(f64::from(u8::from(is))),
        Reply::Verbatim(bytes) if !resp3 => string(&bytes)?,
        Reply::Verbatim(bytes) => {
            let verbatim = lua.create_table()?;
            verbatim.raw_set("format", "txt")?;
            verbatim.raw_set("string", string(&bytes)?)?;
            field("verbatim_string", Value::Table(verbatim))?
        }
    })
}

fn list(lua: &Lua, items: impl IntoIterator<Item = Reply>, resp3: bool) -> mlua::Result<Value> {
    let table = lua.create_table()?;
    for (at, item) in (1..).zip(items) {
        table.raw_set(at, to_value(lua, item, resp3)?)?;
    }
    Ok(Value::Table(table))
}

/// What a script has returned, as its reply.
///
/// # Errors
///
/// The reply, if that is too long or too deep.
pub(super) fn to_reply(
    value: &Value,
    resp3: bool,
    budget: &mut ReplyBudget,
) -> Result<Reply, Reply> {
    budget.take(0)?;
    match value {
        Value::Boolean(is) if resp3 => Ok(Reply::Boolean(*is)),
        Value::Boolean(true) => Ok(Reply::Integer(1)),
        Value::Integer(number) => Ok(Reply::Integer(*number)),
        #[expect(clippy::cast_possible_truncation, reason = "as in Redis, without its fraction")]
        Value::Number(number) => Ok(Reply::Integer(*number as i64)),
        Value::String(text) => {
            budget.take(text.as_bytes().len())?;
            Ok(Reply::bulk(text.as_bytes()))
        }
        Value::Table(table) => budget.inside(|budget| of_table(table, resp3, budget)),
        _ => Ok(Reply::Null),
    }
}

fn of_table(table: &Table, resp3: bool, budget: &mut ReplyBudget) -> Result<Reply, Reply> {
    let field = |name: &str| table.raw_get::<Value>(name).unwrap_or(Value::Nil);
    let text = |value: &Value| match value {
        Value::String(_) | Value::Integer(_) | Value::Number(_) => bytes_of(value),
        _ => None,
    };
    if let Value::String(error) = field("err") {
        budget.take(error.as_bytes().len())?;
        return Ok(Reply::Error(error.to_string_lossy().into()));
    }
    if let Value::String(status) = field("ok") {
        budget.take(status.as_bytes().len())?;
        return Ok(Reply::Status(status.to_string_lossy().into()));
    }
    match field("double") {
        #[expect(clippy::cast_precision_loss, reason = "it was one of Lua's, which are doubles")]
        Value::Integer(number) => return Ok(Reply::Double(number as f64)),
        Value::Number(number) => return Ok(Reply::Double(number)),
        _ => {}
    }
    if let Value::Table(map) = field("map") {
        let mut pairs = Vec::new();
        for pair in map.pairs::<Value, Value>() {
            let Ok((key, value)) = pair else { break };
            pairs.push((to_reply(&key, resp3, budget)?, to_reply(&value, resp3, budget)?));
        }
        return Ok(Reply::Map(pairs));
    }
    if let Value::Table(set) = field("set") {
        let mut members = Vec::new();
        for pair in set.pairs::<Value, Value>() {
            let Ok((key, _)) = pair else { break };
            members.push(to_reply(&key, resp3, budget)?);
        }
        return Ok(Reply::Set(members));
    }
    if let Value::Table(verbatim) = field("verbatim_string") {
        let string = verbatim.raw_get::<Value>("string").unwrap_or(Value::Nil);
        if let Some(bytes) = text(&string) {
            budget.take(bytes.len())?;
            return Ok(Reply::Verbatim(bytes.into()));
        }
    }
    if let Some(number) = text(&field("big_number")) {
        budget.take(number.len())?;
        return Ok(Reply::Bulk(Bytes::from(number)));
    }
    let mut items = Vec::new();
    for at in 1.. {
        match table.raw_get::<Value>(at) {
            Ok(Value::Nil) | Err(_) => break,
            Ok(item) => items.push(to_reply(&item, resp3, budget)?),
        }
    }
    Ok(Reply::Array(items))
}

/// The reply to a script that has ended with an error: what was raised, and where.
pub(super) fn to_error(error: &Table, sha: &str) -> Reply {
    let text = |name: &str| error.raw_get::<Value>(name).ok().as_ref().and_then(bytes_of);
    let text = |name: &str| text(name).map(|it| String::from_utf8_lossy(&it).into_owned());
    let what = text("err").unwrap_or_default();
    match (text("source"), text("line")) {
        (Some(source), Some(line)) => {
            Reply::Error(format!("{what} script: {sha}, on {source}:{line}.").into())
        }
        _ => Reply::Error(what.into()),
    }
}
