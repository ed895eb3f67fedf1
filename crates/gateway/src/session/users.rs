//! ACL: who may do what.

use super::words::{Peer, SYNTAX, arg, error, quoted};
use crate::Reply;
use crate::acl::{CATEGORIES, DEFAULT_USER, User};
use crate::command::{self, AclCommand};
use crate::shared::Shared;
use bytes::Bytes;

impl Peer {
    pub(super) fn run_acl(&self, shared: &Shared, command: AclCommand, args: &[Bytes]) -> Reply {
        match command {
            AclCommand::Cat => categories(args),
            AclCommand::GetUser => match shared.acl.get(&quoted(&arg(args, 2))) {
                Some(user) => describe(user),
                None => Reply::Null,
            },
            AclCommand::List => {
                Reply::Array(shared.acl.users().map(|it| Reply::bulk(it.line())).collect())
            }
            AclCommand::Users => {
                Reply::Array(shared.acl.users().map(|it| Reply::bulk(&it.name)).collect())
            }
            AclCommand::WhoAmI => {
                Reply::bulk(self.user.as_ref().map_or(DEFAULT_USER, |user| &user.name))
            }
        }
    }
}

fn describe(user: &std::sync::Arc<User>) -> Reply {
    let pair = |name: &'static str, value: Reply| (Reply::bulk(name), value);
    let flags = user.flags().into_iter().map(|flag| Reply::Status(flag.into()));
    Reply::Map(vec![
        pair("flags", Reply::Set(flags.collect())),
        pair("passwords", Reply::Array(user.passwords().map(Reply::bulk).collect())),
        pair("commands", Reply::bulk(user.command_rules())),
        pair("keys", Reply::bulk(user.key_rules())),
        pair("channels", Reply::bulk(user.channel_rules())),
        pair("selectors", Reply::Array(Vec::new())),
    ])
}

fn categories(args: &[Bytes]) -> Reply {
    match args.get(2..).unwrap_or_default() {
        [] => Reply::Array(CATEGORIES.iter().map(Reply::bulk).collect()),
        [name] => {
            let name = quoted(name).to_ascii_lowercase();
            if !CATEGORIES.contains(&name.as_str()) {
                return error(format!("ERR Unknown category '{name}'"));
            }
            let commands = command::numbered().iter().filter(|spec| spec.is_in(&name));
            Reply::Array(commands.map(|spec| Reply::bulk(spec.name)).collect())
        }
        _ => SYNTAX,
    }
}
