//! The library `bit`: numbers as 32 bits, with a sign.

use super::raised::{number_of, text};
use mlua::{Lua, MultiValue, Table};

/// Makes one number of two.
type Join = fn(i32, i32) -> i32;
/// Moves bits so far.
type Shift = fn(i32, u32) -> i32;

/// Adds the library.
pub(super) fn install(lua: &Lua, base: &Table) -> mlua::Result<()> {
    let bit = lua.create_table()?;
    bit.set("tobit", lua.create_function(|lua, args: MultiValue| number(lua, &args, 0))?)?;
    bit.set("bnot", lua.create_function(|lua, args: MultiValue| Ok(!number(lua, &args, 0)?))?)?;
    let swap = |lua: &Lua, args: MultiValue| Ok(number(lua, &args, 0)?.swap_bytes());
    bit.set("bswap", lua.create_function(swap)?)?;
    let all: [(&str, Join); 3] =
        [("band", |a, b| a & b), ("bor", |a, b| a | b), ("bxor", |a, b| a ^ b)];
    for (name, join) in all {
        let joined = lua.create_function(move |lua, args: MultiValue| {
            (1..args.len()).try_fold(number(lua, &args, 0)?, |sum, at| {
                Ok::<_, mlua::Error>(join(sum, number(lua, &args, at)?))
            })
        })?;
        bit.set(name, joined)?;
    }
    // Only the lowest five bits of a distance count.
    let shifts: [(&str, Shift); 5] = [
        ("lshift", i32::wrapping_shl),
        ("rshift", |a, by| a.cast_unsigned().wrapping_shr(by).cast_signed()),
        ("arshift", i32::wrapping_shr),
        ("rol", i32::rotate_left),
        ("ror", i32::rotate_right),
    ];
    for (name, shift) in shifts {
        let shifted = lua.create_function(move |lua, args: MultiValue| {
            let by = number(lua, &args, 1)?.cast_unsigned() % 32;
            Ok(shift(number(lua, &args, 0)?, by))
        })?;
        bit.set(name, shifted)?;
    }
    bit.set("tohex", lua.create_function(tohex)?)?;
    base.set("bit", bit)
}

fn number(lua: &Lua, args: &MultiValue, at: usize) -> mlua::Result<i32> {
    let number = args.get(at).and_then(number_of).ok_or_else(|| {
        let at = at + 1;
        text(lua, format!("bad argument #{at} (number expected)"))
    })?;
    #[expect(clippy::cast_possible_truncation, reason = "it is below 2^32")]
    let low = number.round_ties_even().rem_euclid(4_294_967_296.0) as i64 as i32;
    Ok(low)
}

/// Eight hexadecimal digits, or as many as are asked for; in capitals if that is negative.
fn tohex(lua: &Lua, args: MultiValue) -> mlua::Result<String> {
    let digits = if args.len() > 1 { number(lua, &args, 1)? } else { 8 };
    let all = format!("{:08x}", number(lua, &args, 0)?);
    let wanted = usize::try_from(digits.unsigned_abs()).unwrap_or(8).min(8);
    let kept = all.get(all.len() - wanted..).unwrap_or_default();
    Ok(if digits < 0 { kept.to_uppercase() } else { kept.to_owned() })
}
