//! The library `cjson`. What it writes is as the original writes it; what it reads is JSON.

use super::number::general;
use super::raised::{bytes_of, number_of, text};
use mlua::{Lua, MultiValue, Table, Value};
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Tables inside tables.
const DEPTH_MAX: usize = 1000;
/// Bytes of a text: a table may hold one string any number of times.
const TEXT_MAX: usize = 64 << 20;
/// Digits of a number.
const DIGITS: usize = 14;
/// A list with gaps is none if it is longer than this,
const SPARSE_LEN: i64 = 10;
/// and so many times as long as what is in it.
const SPARSE_RATIO: i64 = 2;

/// Adds the library.
pub(super) fn install(lua: &Lua, base: &Table) -> mlua::Result<()> {
    let cjson = lua.create_table()?;
    cjson.set("encode", lua.create_function(encode)?)?;
    cjson.set("decode", lua.create_function(decode)?)?;
    cjson.set("null", Value::NULL)?;
    cjson.set("_NAME", "cjson")?;
    base.set("cjson", cjson)
}

fn encode(lua: &Lua, args: MultiValue) -> mlua::Result<mlua::String> {
    let (1, Some(value)) = (args.len(), args.front()) else {
        return Err(text(lua, "bad argument #1 to 'encode' (expected 1 argument)"));
    };
    let mut out = Vec::new();
    write(value, 0, &mut out).map_err(|what| text(lua, what))?;
    lua.create_string(out)
}

fn write(value: &Value, depth: usize, out: &mut Vec<u8>) -> Result<(), String> {
    if out.len() > TEXT_MAX {
        return Err(format!("Cannot serialise, more than {TEXT_MAX} bytes"));
    }
    match value {
        Value::Nil => out.extend_from_slice(b"null"),
        Value::LightUserData(pointer) if pointer.0.is_null() => out.extend_from_slice(b"null"),
        Value::Boolean(is) => out.extend_from_slice(if *is { b"true" } else { b"false" }),
        Value::Integer(_) | Value::Number(_) => {
            let number = number_of(value).unwrap_or_default();
            if !number.is_finite() {
                return Err(cannot(value, "must not be NaN or Inf"));
            }
            out.extend_from_slice(general(number, DIGITS).as_bytes());
        }
        Value::String(string) => write_string(&string.as_bytes(), out),
        Value::Table(table) if depth < DEPTH_MAX => return write_table(table, depth + 1, out),
        Value::Table(_) => {
            return Err(format!("Cannot serialise, excessive depth ({})", depth + 1));
        }
        other => return Err(cannot(other, "type not supported")),
    }
    Ok(())
}

fn cannot(value: &Value, why: &str) -> String {
    let kind = match value {
        Value::Integer(_) => "number",
        other => other.type_name(),
    };
    format!("Cannot serialise {kind}: {why}")
}

fn write_table(table: &Table, depth: usize, out: &mut Vec<u8>) -> Result<(), String> {
    if let Some(len @ 1..) = list_len(table)? {
        out.push(b'[');
        for at in 1..=len {
            if at > 1 {
                out.push(b',');
            }
            write(&table.raw_get(at).unwrap_or(Value::Nil), depth, out)?;
        }
        out.push(b']');
        return Ok(());
    }
    out.push(b'{');
    let mut first = true;
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair.map_err(|error| error.to_string())?;
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        match &key {
            Value::String(name) => write_string(&name.as_bytes(), out),
            Value::Integer(_) | Value::Number(_) => {
                out.push(b'"');
                write(&key, depth, out)?;
                out.push(b'"');
            }
            other => return Err(cannot(other, "table key must be a number or string")),
        }
        out.push(b':');
        write(&value, depth, out)?;
    }
    out.push(b'}');
    Ok(())
}

/// The length of a table that is a list, gaps included.
fn list_len(table: &Table) -> Result<Option<i64>, String> {
    let (mut len, mut items) = (0, 0);
    for pair in table.pairs::<Value, Value>() {
        match pair {
            Ok((Value::Integer(at @ 1..), _)) => (len, items) = (len.max(at), items + 1),
            Ok(_) => return Ok(None),
            Err(error) => return Err(error.to_string()),
        }
    }
    if len > SPARSE_LEN && len / SPARSE_RATIO > items {
        return Err("Cannot serialise table: excessively sparse array".to_owned());
    }
    Ok(Some(len))
}

fn write_string(string: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in string {
        match byte {
            b'"' | b'\\' | b'/' => out.extend([b'\\', *byte]),
            0x08 => out.extend_from_slice(b"\\b"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0..=31 | 127 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
}

fn decode(lua: &Lua, args: MultiValue) -> mlua::Result<Value> {
    let given = if args.len() == 1 { args.front().and_then(bytes_of) } else { None };
    let given = given.ok_or_else(|| text(lua, "bad argument #1 to 'decode' (string expected)"))?;
    let mut json = serde_json::Deserializer::from_slice(&given);
    let read = Read(lua).deserialize(&mut json);
    let read = read.and_then(|value| json.end().map(|()| value));
    read.map_err(|error| {
        let at = error.column();
        text(lua, format!("Expected value but found invalid token at character {at} ({error})"))
    })
}

/// Makes values of what is read.
#[derive(Clone, Copy)]
struct Read<'a>(&'a Lua);

impl<'de> DeserializeSeed<'de> for Read<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

#[expect(clippy::cast_precision_loss, reason = "Lua has no other numbers")]
impl<'de> Visitor<'de> for Read<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::NULL)
    }

    fn visit_bool<E>(self, is: bool) -> Result<Value, E> {
        Ok(Value::Boolean(is))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Number(number))
    }

    fn visit_str<E: serde::de::Error>(self, string: &str) -> Result<Value, E> {
        self.0.create_string(string).map(Value::String).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let table = self.0.create_table().map_err(A::Error::custom)?;
        while let Some(item) = items.next_element_seed(self)? {
            table.raw_push(item).map_err(A::Error::custom)?;
        }
        Ok(Value::Table(table))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Value, A::Error> {
        let table = self.0.create_table().map_err(A::Error::custom)?;
        while let Some(key) = pairs.next_key_seed(self)? {
            let value = pairs.next_value_seed(self)?;
            table.raw_set(key, value).map_err(A::Error::custom)?;
        }
        Ok(Value::Table(table))
    }
}
