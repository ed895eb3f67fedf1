//! The library `cmsgpack`: `pack` and `unpack`.

use super::raised::{bytes_of, text};
use mlua::{Lua, MultiValue, Table, Value};
use rmp::Marker;
use rmp::decode::{self, Bytes, RmpRead as _};
use rmp::encode;

/// Tables inside tables that are packed; what is deeper is nothing, as in the original.
const PACKED_DEPTH_MAX: usize = 16;
/// The same that are unpacked: what a thread has room for.
const DEPTH_MAX: usize = 1000;
/// Bytes of what is packed: a table may hold one string any number of times.
const PACKED_MAX: usize = 64 << 20;

/// Adds the library.
pub(super) fn install(lua: &Lua, base: &Table) -> mlua::Result<()> {
    let cmsgpack = lua.create_table()?;
    cmsgpack.set("pack", lua.create_function(pack)?)?;
    cmsgpack.set("unpack", lua.create_function(unpack)?)?;
    cmsgpack.set("_NAME", "cmsgpack")?;
    base.set("cmsgpack", cmsgpack)
}

/// What cannot be packed, or is no packed value.
struct Wrong(&'static str);

/// There are fewer bytes than there should be.
const MISSING: Wrong = Wrong("Missing bytes in input.");
/// They are none of a value.
const BAD: Wrong = Wrong("Bad data format in input.");
/// There is no room.
const TOO_LONG: Wrong = Wrong("too much to pack");

fn pack(lua: &Lua, args: MultiValue) -> mlua::Result<mlua::String> {
    if args.is_empty() {
        return Err(text(lua, "bad argument #0 to 'pack' (MessagePack pack needs input.)"));
    }
    let mut out = Vec::new();
    for value in &args {
        write(value, 0, &mut out).map_err(|Wrong(why)| text(lua, why))?;
    }
    lua.create_string(out)
}

fn write(value: &Value, depth: usize, out: &mut Vec<u8>) -> Result<(), Wrong> {
    if out.len() > PACKED_MAX {
        return Err(TOO_LONG);
    }
    match value {
        Value::Boolean(is) => encode::write_bool(out, *is).map_err(|_| TOO_LONG),
        Value::Integer(number) => encode::write_sint(out, *number).map(drop).map_err(|_| TOO_LONG),
        Value::Number(number) => write_float(*number, out),
        Value::String(string) => {
            let bytes = string.as_bytes();
            let len = u32::try_from(bytes.len()).map_err(|_| TOO_LONG)?;
            encode::write_str_len(out, len).map_err(|_| TOO_LONG)?;
            out.extend_from_slice(&bytes);
            Ok(())
        }
        Value::Table(table) if depth < PACKED_DEPTH_MAX => write_table(table, depth + 1, out),
        _ => encode::write_nil(out).map_err(|_| TOO_LONG),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "it is looked at whether anything was lost")]
fn write_float(number: f64, out: &mut Vec<u8>) -> Result<(), Wrong> {
    let short = number as f32;
    if f64::from(short).to_bits() == number.to_bits() {
        return encode::write_f32(out, short).map_err(|_| TOO_LONG);
    }
    encode::write_f64(out, number).map_err(|_| TOO_LONG)
}

fn write_table(table: &Table, depth: usize, out: &mut Vec<u8>) -> Result<(), Wrong> {
    let (mut last, mut count, mut is_list) = (0, 0, true);
    for pair in table.pairs::<Value, Value>() {
        let (key, _) = pair.map_err(|_| TOO_LONG)?;
        count += 1;
        match key {
            Value::Integer(at @ 1..) => last = last.max(at),
            _ => is_list = false,
        }
    }
    let len = u32::try_from(count).map_err(|_| TOO_LONG)?;
    if is_list && last == count {
        encode::write_array_len(out, len).map_err(|_| TOO_LONG)?;
        for at in 1..=last {
            write(&table.raw_get(at).unwrap_or(Value::Nil), depth, out)?;
        }
        return Ok(());
    }
    encode::write_map_len(out, len).map_err(|_| TOO_LONG)?;
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair.map_err(|_| TOO_LONG)?;
        write(&key, depth, out)?;
        write(&value, depth, out)?;
    }
    Ok(())
}

fn unpack(lua: &Lua, args: MultiValue) -> mlua::Result<MultiValue> {
    let given = args.front().and_then(bytes_of);
    let given = given.ok_or_else(|| text(lua, "bad argument #1 to 'unpack' (string expected)"))?;
    let mut from = Bytes::new(&given);
    let mut all = Vec::new();
    while !from.remaining_slice().is_empty() {
        let value = read(lua, 0, &mut from)?.map_err(|Wrong(why)| text(lua, why))?;
        all.push(value);
    }
    Ok(all.into_iter().collect())
}

/// The next value; the outer error is one of the interpreter.
fn read(lua: &Lua, depth: usize, from: &mut Bytes<'_>) -> mlua::Result<Result<Value, Wrong>> {
    let Ok(marker) = decode::read_marker(from) else { return Ok(Err(MISSING)) };
    #[expect(clippy::cast_precision_loss, reason = "Lua has no other numbers")]
    let number = match marker {
        Marker::FixPos(number) => Ok(f64::from(number)),
        Marker::FixNeg(number) => Ok(f64::from(number)),
        Marker::U8 => from.read_data_u8().map(f64::from),
        Marker::U16 => from.read_data_u16().map(f64::from),
        Marker::U32 => from.read_data_u32().map(f64::from),
        Marker::U64 => from.read_data_u64().map(|number| number as f64),
        Marker::I8 => from.read_data_i8().map(f64::from),
        Marker::I16 => from.read_data_i16().map(f64::from),
        Marker::I32 => from.read_data_i32().map(f64::from),
        Marker::I64 => from.read_data_i64().map(|number| number as f64),
        Marker::F32 => from.read_data_f32().map(f64::from),
        Marker::F64 => from.read_data_f64(),
        other => return read_other(lua, depth, other, from),
    };
    Ok(number.map(Value::Number).map_err(|_| MISSING))
}

fn read_other(
    lua: &Lua,
    depth: usize,
    marker: Marker,
    from: &mut Bytes<'_>,
) -> mlua::Result<Result<Value, Wrong>> {
    let len = match marker {
        Marker::Null => return Ok(Ok(Value::Nil)),
        Marker::True => return Ok(Ok(Value::Boolean(true))),
        Marker::False => return Ok(Ok(Value::Boolean(false))),
        Marker::FixStr(len) | Marker::FixArray(len) | Marker::FixMap(len) => Ok(u32::from(len)),
        Marker::Str8 | Marker::Bin8 => from.read_data_u8().map(u32::from),
        Marker::Str16 | Marker::Bin16 | Marker::Array16 | Marker::Map16 => {
            from.read_data_u16().map(u32::from)
        }
        Marker::Str32 | Marker::Bin32 | Marker::Array32 | Marker::Map32 => from.read_data_u32(),
        _ => return Ok(Err(BAD)),
    };
    let Ok(len) = len else { return Ok(Err(MISSING)) };
    if depth == DEPTH_MAX {
        return Ok(Err(BAD));
    }
    let table = match marker {
        Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => {
            let table = lua.create_table()?;
            for at in 1..=len {
                match read(lua, depth + 1, from)? {
                    Ok(item) => table.raw_set(at, item)?,
                    Err(wrong) => return Ok(Err(wrong)),
                }
            }
            table
        }
        Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => {
            let table = lua.create_table()?;
            for _ in 0..len {
                let key = match read(lua, depth + 1, from)? {
                    Ok(Value::Nil) => return Ok(Err(BAD)),
                    Ok(key) => key,
                    Err(wrong) => return Ok(Err(wrong)),
                };
                match read(lua, depth + 1, from)? {
                    Ok(value) => table.raw_set(key, value)?,
                    Err(wrong) => return Ok(Err(wrong)),
                }
            }
            table
        }
        _ => {
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            let Some((bytes, rest)) = from.remaining_slice().split_at_checked(len) else {
                return Ok(Err(MISSING));
            };
            let string = lua.create_string(bytes)?;
            *from = Bytes::new(rest);
            return Ok(Ok(Value::String(string)));
        }
    };
    Ok(Ok(Value::Table(table)))
}
