//! What scripts reach through `redis`, and the functions of Lua that are not as they come.

use super::convert::to_value;
use super::number::general;
use super::raised::{Raised, bytes_of, number_of, syntax, text};
use super::random::Random;
use super::source::sha_of;
use super::state::State;
use crate::Reply;
use crate::reply::REDIS_VERSION;
use bytes::Bytes;
use mlua::{ChunkMode, Function, Lua, MultiValue, Table, Value};
use std::rc::Rc;

/// Bytes of the arguments of one command: as many as a client may send.
const COMMAND_MAX: usize = 64 << 20;
/// What is not longer in digits is written without an exponent.
const PLAIN_MAX: u64 = 100_000_000_000_000_000;
/// Digits of other numbers, of which none is lost.
const DIGITS: usize = 17;
/// Bytes of a line that a script has logged.
const LOGGED_MAX: usize = 1024;

/// Adds the functions.
pub(super) fn install(lua: &Lua, state: &Rc<State>, base: &Table) -> mlua::Result<()> {
    let redis = lua.create_table()?;
    redis.set("call", command(lua, state, true)?)?;
    redis.set("pcall", command(lua, state, false)?)?;
    redis.set(
        "error_reply",
        lua.create_function(|lua, args: MultiValue| reply(lua, "err", &args))?,
    )?;
    redis.set(
        "status_reply",
        lua.create_function(|lua, args: MultiValue| reply(lua, "ok", &args))?,
    )?;
    redis.set("sha1hex", lua.create_function(sha1hex)?)?;
    redis.set("log", lua.create_function(log)?)?;
    redis.set("setresp", setresp(lua, state)?)?;
    // Scripts were replicated as such, once; and what is written is on all replicas here.
    redis.set("replicate_commands", lua.create_function(|_, ()| Ok(true))?)?;
    redis.set("set_repl", lua.create_function(|_, _: Value| Ok(()))?)?;
    redis.set("breakpoint", lua.create_function(|_, ()| Ok(false))?)?;
    redis.set("debug", lua.create_function(|_, _: MultiValue| Ok(()))?)?;
    let levels = ["LOG_DEBUG", "LOG_VERBOSE", "LOG_NOTICE", "LOG_WARNING"];
    let copies = [("REPL_NONE", 0), ("REPL_AOF", 1), ("REPL_SLAVE", 2), ("REPL_REPLICA", 2)];
    for (name, number) in levels.into_iter().zip(0..).chain(copies).chain([("REPL_ALL", 3)]) {
        redis.set(name, number)?;
    }
    redis.set("REDIS_VERSION", REDIS_VERSION)?;
    let parts = REDIS_VERSION.split('.').map(|part| part.parse().unwrap_or(0));
    redis.set("REDIS_VERSION_NUM", parts.fold(0u32, |sum, part: u32| sum << 8 | part))?;
    base.set("redis", redis)?;
    let math = lua.create_table()?;
    math.set("random", random(lua, state)?)?;
    let seeded = Rc::clone(state);
    #[expect(clippy::cast_possible_truncation, reason = "as in Redis, what fits")]
    let seed = lua.create_function(move |_, seed: f64| {
        seeded.random.set(Random::new(seed as i64 as i32));
        Ok(())
    })?;
    math.set("randomseed", seed)?;
    base.set("math", math)?;
    base.set("loadstring", load(lua, state)?)?;
    base.set("load", load(lua, state)?)
}

/// `redis.call`, which raises errors of commands, and `redis.pcall`, which returns them.
fn command(lua: &Lua, state: &Rc<State>, raises: bool) -> mlua::Result<Function> {
    let state = Rc::clone(state);
    lua.create_function(move |lua, args: MultiValue| {
        let reply = match arguments(&args) {
            Ok(args) => state.command(&args)?,
            Err(reply) => reply,
        };
        match reply {
            Reply::Error(text) if raises => Err(Raised::Reply(text.into_owned()).into()),
            reply => to_value(lua, reply, state.resp3.get()),
        }
    })
}

fn arguments(args: &MultiValue) -> Result<Vec<Bytes>, Reply> {
    if args.is_empty() {
        return Err(Reply::error(
            "ERR Please specify at least one argument for this redis lib call",
        ));
    }
    let mut len = 0;
    let all = args.iter().map(|arg| {
        let arg = argument(arg).ok_or(Reply::error(
            "ERR Lua redis lib command arguments must be strings or integers",
        ))?;
        len += arg.len();
        if len > COMMAND_MAX {
            let text = format!("ERR commands of scripts have at most {COMMAND_MAX} bytes");
            return Err(Reply::Error(text.into()));
        }
        Ok(arg)
    });
    all.collect()
}

fn argument(arg: &Value) -> Option<Bytes> {
    match arg {
        Value::String(text) => Some(Bytes::copy_from_slice(&text.as_bytes())),
        Value::Integer(number) if number.unsigned_abs() < PLAIN_MAX => {
            Some(number.to_string().into())
        }
        #[expect(clippy::cast_precision_loss, reason = "it was one of Lua's, which are doubles")]
        Value::Integer(number) => Some(general(*number as f64, DIGITS).into()),
        Value::Number(number) => Some(general(*number, DIGITS).into()),
        _ => None,
    }
}

/// A reply with one field, of one text.
fn reply(lua: &Lua, field: &str, args: &MultiValue) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    match (args.len(), args.front()) {
        (1, Some(Value::String(text))) => {
            let text = text.as_bytes();
            let text = match (field, text.strip_prefix(b"-")) {
                ("err", Some(with_code)) => with_code.to_vec(),
                ("err", None) => [b"ERR ", &text[..]].concat(),
                _ => text.to_vec(),
            };
            table.raw_set(field, lua.create_string(text)?)?;
        }
        _ => table.raw_set("err", "ERR wrong number or type of arguments")?,
    }
    Ok(table)
}

fn sha1hex(lua: &Lua, args: MultiValue) -> mlua::Result<String> {
    if args.len() != 1 {
        return Err(Raised::Reply("ERR wrong number of arguments".into()).into());
    }
    let _ = lua;
    Ok(sha_of(&args.front().and_then(bytes_of).unwrap_or_default()))
}

fn log(_: &Lua, args: MultiValue) -> mlua::Result<()> {
    let raise = |what: &str| Err(Raised::Reply(format!("ERR {what}")).into());
    if args.len() < 2 {
        return raise("redis.log() requires two arguments or more.");
    }
    let level = match args.front() {
        Some(Value::Integer(level)) => *level,
        _ => return raise("First argument must be a number (log level)."),
    };
    let words = args.iter().skip(1).filter_map(bytes_of);
    let words: Vec<String> = words.map(|it| String::from_utf8_lossy(&it).into_owned()).collect();
    let said: String = words.join(" ").chars().take(LOGGED_MAX).collect();
    match level {
        0 | 1 => tracing::debug!(said, "a script"),
        2 => tracing::info!(said, "a script"),
        3 => tracing::warn!(said, "a script"),
        _ => return raise("Invalid log level."),
    }
    Ok(())
}

fn setresp(lua: &Lua, state: &Rc<State>) -> mlua::Result<Function> {
    let state = Rc::clone(state);
    lua.create_function(move |_, args: MultiValue| {
        let raise = |what: &str| Err(Raised::Reply(format!("ERR {what}")).into());
        match (args.len(), args.front()) {
            (1, Some(Value::Integer(version @ (2 | 3)))) => state.resp3.set(*version == 3),
            (1, _) => return raise("RESP version must be 2 or 3."),
            _ => return raise("redis.setresp() requires one argument."),
        }
        Ok(())
    })
}

fn random(lua: &Lua, state: &Rc<State>) -> mlua::Result<Function> {
    let state = Rc::clone(state);
    lua.create_function(move |lua, args: MultiValue| {
        let mut random = state.random.get();
        let drawn = random.draw();
        state.random.set(random);
        let bound = |at: usize| -> mlua::Result<f64> {
            let number = args.get(at).and_then(number_of).map(f64::trunc);
            number.ok_or_else(|| {
                let at = at + 1;
                text(lua, format!("bad argument #{at} to 'random' (number expected)"))
            })
        };
        let (least, most) = match args.len() {
            0 => return Ok(drawn),
            1 => (1.0, bound(0)?),
            2 => (bound(0)?, bound(1)?),
            _ => return Err(text(lua, "wrong number of arguments")),
        };
        if least > most {
            let at = args.len();
            return Err(text(lua, format!("bad argument #{at} to 'random' (interval is empty)")));
        }
        Ok((drawn * (most - least + 1.0)).floor() + least)
    })
}

/// `load` and `loadstring`: of text only, with the globals of the script.
fn load(lua: &Lua, state: &Rc<State>) -> mlua::Result<Function> {
    let state = Rc::clone(state);
    lua.create_function(move |lua, (chunk, name): (Value, Option<String>)| {
        let source = match &chunk {
            Value::Function(reader) => pieces(lua, reader)?,
            other => bytes_of(other).ok_or_else(|| {
                text(lua, format!("bad argument #1 (string expected, got {})", other.type_name()))
            })?,
        };
        let name = name.unwrap_or_else(|| String::from_utf8_lossy(&source).into_owned());
        let mut loaded = lua.load(source).set_name(name).set_mode(ChunkMode::Text);
        if let Some(globals) = &*state.globals.borrow() {
            loaded = loaded.set_environment(globals.clone());
        }
        Ok(match loaded.into_function() {
            Ok(function) => (Value::Function(function), Value::Nil),
            Err(error) => (Value::Nil, Value::String(lua.create_string(syntax(&error))?)),
        })
    })
}

/// What a function gives, piece by piece, up to an empty one.
fn pieces(lua: &Lua, reader: &Function) -> mlua::Result<Vec<u8>> {
    let mut all = Vec::new();
    loop {
        match reader.call::<Value>(())? {
            Value::Nil => return Ok(all),
            Value::String(piece) if piece.as_bytes().is_empty() => return Ok(all),
            Value::String(piece) if all.len() < COMMAND_MAX => {
                all.extend_from_slice(&piece.as_bytes());
            }
            _ => return Err(text(lua, "reader function must return a string")),
        }
    }
}
