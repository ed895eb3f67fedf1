//! SCRIPT: the scripts that a gateway knows, and those that run.

use super::words::{Response, arg};
use crate::Reply;
use crate::command::Script;
use crate::script::Source;
use crate::shared::Shared;
use bytes::Bytes;
use std::sync::Arc;

/// Names that one SCRIPT EXISTS asks for.
const NAMES_MAX: usize = 1024;

pub(super) fn run(shared: &Arc<Shared>, command: Script, args: &[Bytes]) -> Response {
    let named = args.get(2..).unwrap_or_default();
    match command {
        Script::Exists if named.len() > NAMES_MAX => {
            Reply::error("ERR SCRIPT EXISTS asks for at most 1024 scripts here").into()
        }
        Script::Exists => {
            let known = |name: &Bytes| Reply::Integer(shared.scripts.has(name).into());
            Reply::Array(named.iter().map(known).collect()).into()
        }
        Script::Flush => flush(shared, named).into(),
        Script::Kill if shared.scripts.kill() => Reply::OK.into(),
        Script::Kill => Reply::error("NOTBUSY No scripts in execution right now.").into(),
        Script::Load => load(shared, &arg(args, 2)),
    }
}

fn flush(shared: &Shared, options: &[Bytes]) -> Reply {
    let known = |option: &Bytes| {
        option.eq_ignore_ascii_case(b"async") || option.eq_ignore_ascii_case(b"sync")
    };
    match options {
        [] => {}
        [option] if known(option) => {}
        _ => return Reply::error("ERR SCRIPT FLUSH only support SYNC|ASYNC option"),
    }
    shared.scripts.flush();
    Reply::OK
}

fn load(shared: &Arc<Shared>, text: &Bytes) -> Response {
    let source = match Source::new(text) {
        Ok(source) => Arc::new(source),
        Err(reply) => return reply.into(),
    };
    let scripts = Arc::clone(&shared.scripts);
    Response::Later(Box::pin(async move {
        match scripts.compile(&source).await {
            Ok(()) => {
                scripts.remember(&source);
                Reply::bulk(&source.sha)
            }
            Err(reply) => reply,
        }
    }))
}
