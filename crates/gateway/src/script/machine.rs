//! One interpreter, which runs one script after the other. Nothing of one is left to the next: each
//! has globals of its own, with copies of all libraries.

use super::convert::{self, ReplyBudget};
use super::given::{Ended, Given};
use super::raised::{Raised, syntax};
use super::source::Source;
use super::state::{State, Stop};
use super::{api, bits, json, msgpack};
use crate::Reply;
use mlua::{ChunkMode, Function, HookTriggers, Lua, LuaOptions, StdLib, Table, Value, VmState};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that a script may have in the interpreter: as many as a value that a command changes.
const MEMORY_MAX: usize = 64 << 20;
/// Bytes of what scripts have left that are not worth being collected at once.
const LEFT_MAX: usize = 4 << 20;
/// Instructions between two looks at the clock: some 100 microseconds.
const INSTRUCTIONS: u32 = 10_000;
/// Scripts that need not be compiled again.
const COMPILED_MAX: usize = 256;
/// How errors call a script.
const NAME: &str = "@user_script";
/// What is ours, and no script sees.
const PRELUDE: &str = include_str!("prelude.lua");

/// An interpreter.
pub(super) struct Machine {
    lua: Lua,
    state: Rc<State>,
    fresh: Function,
    lock: Function,
    run: Function,
    compiled: BTreeMap<String, Function>,
}

impl Machine {
    pub(super) fn new() -> mlua::Result<Self> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::OS;
        let lua = Lua::new_with(libraries, LuaOptions::new())?;
        let state = Rc::new(State::new());
        let base = lua.create_table()?;
        api::install(&lua, &state, &base)?;
        bits::install(&lua, &base)?;
        json::install(&lua, &base)?;
        msgpack::install(&lua, &base)?;
        let (plain, handle) = (plain(&lua, &state)?, handle(&lua, &state)?);
        let prelude = lua.load(PRELUDE).set_name("@prelude");
        let (fresh, lock, run) = prelude.call((base, plain, handle))?;
        let watched = Rc::clone(&state);
        let every = HookTriggers::new().every_nth_instruction(INSTRUCTIONS);
        lua.set_global_hook(every, move |_, _| {
            watched.check()?;
            Ok(VmState::Continue)
        })?;
        Ok(Self { lua, state, fresh, lock, run, compiled: BTreeMap::new() })
    }

    /// Whether a script can be run.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(super) fn compile(&mut self, source: &Source) -> Result<Function, Reply> {
        if let Some(function) = self.compiled.get(&source.sha) {
            return Ok(function.clone());
        }
        let chunk = self.lua.load(&source.text[..]).set_name(NAME).set_mode(ChunkMode::Text);
        let function = chunk.into_function().map_err(|error| {
            let what = syntax(&error);
            Reply::Error(format!("ERR Error compiling script (new function): {what}").into())
        })?;
        if self.compiled.len() == COMPILED_MAX {
            self.compiled.clear();
        }
        self.compiled.insert(source.sha.clone(), function.clone());
        Ok(function)
    }

    /// Runs a script.
    pub(super) fn run(&mut self, given: Given, stop: Arc<Stop>, time_max: Duration) -> Ended {
        let function = match self.compile(&given.source) {
            Ok(function) => function,
            Err(reply) => return Ended::Done(reply),
        };
        let Given { source, keys, args, commands } = given;
        self.state.begin(commands, stop, time_max);
        let before = self.lua.used_memory();
        let no_limit = 0;
        drop(self.lua.set_memory_limit(before + MEMORY_MAX));
        let result = self.start(&function, &keys, &args);
        drop(self.lua.set_memory_limit(no_limit));
        let resp3 = self.state.resp3.get();
        let ended = match (self.state.end(), result) {
            (Some(why), _) => Ended::Over(named(why, &source.sha)),
            (None, Ok((true, value))) => {
                let reply = convert::to_reply(&value, resp3, &mut ReplyBudget::default());
                Ended::Done(reply.unwrap_or_else(|error| named(error, &source.sha)))
            }
            // What was raised has gone through `handle`, if there was memory left for that.
            (None, Ok((false, Value::Table(error)))) => {
                Ended::Done(convert::to_error(&error, &source.sha))
            }
            (None, Ok((false, _)) | Err(_)) => Ended::Over(named(too_large(), &source.sha)),
        };
        if self.lua.used_memory() > before + LEFT_MAX {
            drop(self.lua.gc_collect());
        }
        ended
    }

    fn start(
        &self,
        function: &Function,
        keys: &[bytes::Bytes],
        args: &[bytes::Bytes],
    ) -> mlua::Result<(bool, Value)> {
        let globals: Table = self.fresh.call(())?;
        let strings = |all: &[bytes::Bytes]| -> mlua::Result<Table> {
            let table = self.lua.create_table_with_capacity(all.len(), 0)?;
            for item in all {
                table.raw_push(self.lua.create_string(item)?)?;
            }
            Ok(table)
        };
        globals.raw_set("KEYS", strings(keys)?)?;
        globals.raw_set("ARGV", strings(args)?)?;
        self.lock.call::<()>(&globals)?;
        function.set_environment(globals.clone())?;
        self.state.globals.replace(Some(globals));
        self.run.call(function)
    }
}

/// Why a script was ended that is none of its own errors.
fn named(why: Reply, sha: &str) -> Reply {
    match why {
        Reply::Error(text) => Reply::Error(format!("{text} script: {sha}").into()),
        other => other,
    }
}

fn too_large() -> Reply {
    let text = format!(
        "ERR the script needs more than {} MB of memory and was ended; nothing was changed",
        MEMORY_MAX >> 20
    );
    Reply::Error(text.into())
}

/// What a script may see of an error.
fn seen(lua: &Lua, state: &State, value: Value) -> mlua::Result<Value> {
    if state.is_over() {
        return Err(Raised::Over.into());
    }
    let Value::Error(error) = value else { return Ok(value) };
    match Raised::of(&error) {
        Some(Raised::Over) => Err(Raised::Over.into()),
        Some(Raised::Text(text)) => Ok(Value::String(lua.create_string(text)?)),
        Some(Raised::Reply(text)) => {
            let table = lua.create_table()?;
            table.raw_set("err", text)?;
            Ok(Value::Table(table))
        }
        None => Err(state.end_with(too_large()).into()),
    }
}

fn plain(lua: &Lua, state: &Rc<State>) -> mlua::Result<Function> {
    let state = Rc::clone(state);
    lua.create_function(move |lua, value: Value| seen(lua, &state, value))
}

/// Makes a table of any error, with the place in the script where it came from.
fn handle(lua: &Lua, state: &Rc<State>) -> mlua::Result<Function> {
    let state = Rc::clone(state);
    lua.create_function(move |lua, value: Value| {
        let table = match seen(lua, &state, value)? {
            Value::Table(table) => table,
            other => {
                let text = super::raised::bytes_of(&other);
                let text = text.map_or_else(
                    || other.type_name().to_owned(),
                    |text| String::from_utf8_lossy(&text).into_owned(),
                );
                let table = lua.create_table()?;
                table.raw_set("err", format!("ERR {text}"))?;
                table
            }
        };
        let mut level = 0;
        let line = loop {
            let at = lua.inspect_stack(level, |debug| {
                let ours = debug.source().source.is_some_and(|source| source == NAME);
                debug.current_line().filter(|_| ours)
            });
            match at {
                None => break None,
                Some(None) => level += 1,
                Some(Some(line)) => break Some(line),
            }
        };
        if let Some(line) = line {
            table.raw_set("source", NAME)?;
            table.raw_set("line", line)?;
        }
        Ok(table)
    })
}

#[cfg(test)]
mod tests;
