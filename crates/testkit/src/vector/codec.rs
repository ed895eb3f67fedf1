//! Headers between names and bytes, by `spec/layout.toml` alone: not by the code that is generated
//! from it, so that a fault there shows.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::Ipv6Addr;
use std::path::Path;
use toml::{Table, Value};

/// The part of the layout that headers need.
#[derive(Deserialize)]
pub struct Codec {
    protocol: Protocol,
    field: Vec<Field>,
    family: Vec<Family>,
    flags: Vec<Flags>,
}

#[derive(Deserialize)]
struct Protocol {
    magic: i64,
    version: i64,
    header_len: usize,
}

#[derive(Deserialize)]
struct Field {
    name: String,
    at: usize,
    size: usize,
    #[serde(default)]
    overlay: bool,
}

#[derive(Deserialize)]
struct Family {
    name: String,
    values: Vec<Named>,
}

#[derive(Deserialize)]
struct Flags {
    name: String,
    values: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    value: Option<u8>,
    bit: Option<u8>,
    /// Of two flags with one bit, the one whose name is not written.
    #[serde(default)]
    overlay: bool,
}

impl Codec {
    /// That of this repository.
    pub fn read(repository: &Path) -> Result<Self, String> {
        let path = repository.join("spec/layout.toml");
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{path:?}: {e}"))?;
        toml::from_str(&text).map_err(|e| format!("{path:?}: {e}"))
    }

    /// A datagram with these fields and this payload. Magic, version, payload_len and tag are
    /// right unless they are named.
    pub fn datagram(&self, header: &Table, payload: &[u8]) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; self.protocol.header_len];
        let payload_len = i64::try_from(payload.len()).map_err(|e| e.to_string())?;
        let defaults = [
            ("magic", self.protocol.magic),
            ("version", self.protocol.version),
            ("payload_len", payload_len),
        ];
        for (name, value) in defaults {
            self.set(&mut bytes, name, &Value::Integer(value))?;
        }
        for (name, value) in header {
            self.set(&mut bytes, name, value)?;
        }
        bytes.extend_from_slice(payload);
        if !header.contains_key("tag") {
            wire::seal(&mut bytes);
        }
        Ok(bytes)
    }

    /// The fields of `after` that differ from those of `before`, in the order of the layout.
    pub fn changed(&self, before: &[u8], after: &[u8]) -> Vec<(String, Value)> {
        let op = self.text("op", &after[92..93]);
        let is = |name: &str| op.as_str() == Some(name);
        let hop_flags = self.text("hop_flags", &after[3..4]);
        let hot = hop_flags.as_array().is_some_and(|set| set.contains(&Value::from("HOT")));
        let copies = is("mget") && after[48..52] != [0; 4];
        let delegates =
            hop_flags.as_array().is_some_and(|set| set.contains(&Value::from("GRANTED")));
        let write = ["put", "del", "cas", "incr"].into_iter().any(is);
        let reply = op.as_str().is_some_and(|op| op.ends_with("_reply"));
        // Of fields that lie over each other, those that this packet uses.
        let shown = |field: &Field| match field.name.as_str() {
            "match_end" => is("range"),
            "keyhash" | "object_version" => !is("range"),
            "hot_bitmap" => copies,
            "generation" => is("get") && hot,
            "bitmap" | "node" | "load" => !write,
            "directory_clock" => write && !delegates,
            "delegation" => write && delegates,
            "reply_directory_clock" => reply,
            "chain" => !reply,
            _ => !field.overlay,
        };
        let mut changed = Vec::new();
        for field in self.field.iter().filter(|field| shown(field)) {
            let Field { name, at, size, .. } = field;
            let mut now = after[*at..at + size].to_vec();
            if now == before[*at..at + size] {
                continue;
            }
            if name == "chain" && (copies || hot) {
                // The rest is said by what lies over it.
                now[4..].fill(0);
            }
            changed.push((name.clone(), self.text(name, &now)));
        }
        changed
    }

    /// Names and values of a header, in the order of the layout.
    pub fn in_order<'t>(&self, header: &'t Table) -> Vec<(&'t str, &'t Value)> {
        let place = |name: &str| self.field.iter().position(|field| field.name == name);
        let mut fields: Vec<_> = header.iter().map(|(name, v)| (name.as_str(), v)).collect();
        fields.sort_by_key(|(name, _)| place(name));
        fields
    }

    fn set(&self, header: &mut [u8], name: &str, value: &Value) -> Result<(), String> {
        let field = self.field.iter().find(|field| field.name == name);
        let field = field.ok_or_else(|| format!("no field {name:?}"))?;
        let bytes = self.bytes(field, value).ok_or_else(|| format!("bad {name}: {value}"))?;
        header[field.at..field.at + field.size].copy_from_slice(&bytes);
        Ok(())
    }

    fn bytes(&self, field: &Field, value: &Value) -> Option<Vec<u8>> {
        let number = match (field.name.as_str(), value) {
            ("op", Value::String(name)) => self.ops().get(name).copied()?.into(),
            ("flags", Value::Array(names)) => self.bits("flag", names)?.into(),
            ("hop_flags", Value::Array(names)) => self.bits("hop_flag", names)?.into(),
            ("chain" | "group_partitions", Value::Array(ids)) => return ids_bytes(ids, field.size),
            ("reply_addr", Value::String(addr)) => addr.parse::<Ipv6Addr>().ok()?.to_bits(),
            (_, Value::String(hex)) if hex.len() == 2 * field.size => {
                u128::from_str_radix(hex, 16).ok()?
            }
            (_, Value::Integer(number)) => u128::try_from(*number).ok()?,
            _ => return None,
        };
        let bytes = number.to_be_bytes();
        let (zeros, rest) = bytes.split_at_checked(16 - field.size)?;
        zeros.iter().all(|byte| *byte == 0).then(|| rest.to_vec())
    }

    fn text(&self, name: &str, bytes: &[u8]) -> Value {
        let number = bytes.iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte));
        let set = |family: &str| {
            let flags = self.flags.iter().filter(|flags| flags.name == family);
            let flags = flags.flat_map(|flags| &flags.values).filter(|flag| !flag.overlay);
            let set = flags.filter(|flag| flag.bit.is_some_and(|bit| number >> bit & 1 == 1));
            Value::Array(set.map(|flag| Value::String(flag.name.clone())).collect())
        };
        let ops = self.ops();
        let op = ops.iter().find(|(_, code)| u128::from(**code) == number);
        match (name, op) {
            ("op", Some((name, _))) => Value::String(name.clone()),
            ("flags", _) => set("flag"),
            ("hop_flags", _) => set("hop_flag"),
            ("chain" | "group_partitions", _) => {
                let ids = bytes.chunks(2).map(|id| i64::from(id[0]) << 8 | i64::from(id[1]));
                let mut ids: Vec<i64> = ids.collect();
                while ids.last() == Some(&0) {
                    ids.pop();
                }
                Value::Array(ids.into_iter().map(Value::Integer).collect())
            }
            ("reply_addr", _) => Value::String(Ipv6Addr::from_bits(number).to_string()),
            _ => match i64::try_from(number) {
                Ok(small) if bytes.len() <= 4 => Value::Integer(small),
                _ => Value::String(format!("{number:0width$x}", width = 2 * bytes.len())),
            },
        }
    }

    fn bits(&self, family: &str, names: &[Value]) -> Option<u8> {
        let flags = self.flags.iter().find(|flags| flags.name == family)?;
        names.iter().try_fold(0, |bits, name| {
            let flag = flags.values.iter().find(|flag| Some(&*flag.name) == name.as_str())?;
            Some(bits | 1 << flag.bit?)
        })
    }

    /// Codes of the operations by their names in metrics.
    fn ops(&self) -> BTreeMap<String, u8> {
        let values = self.family.iter().filter(|family| family.name == "op");
        let values = values.flat_map(|family| &family.values);
        values.filter_map(|op| Some((snake(&op.name), op.value?))).collect()
    }
}

fn snake(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

fn ids_bytes(ids: &[Value], size: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for id in ids {
        bytes.extend(u16::try_from(id.as_integer()?).ok()?.to_be_bytes());
    }
    bytes.resize(bytes.len().max(size), 0);
    (bytes.len() == size).then_some(bytes)
}

/// Bytes of a payload: text as it is, hex digits after `0x`, either repeated with `*COUNT`.
pub fn payload(parts: &[String]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for part in parts {
        let (once, count) = match part.rsplit_once('*') {
            Some((once, count)) => (once, count.parse().map_err(|e| format!("{part}: {e}"))?),
            None => (part.as_str(), 1),
        };
        let once = match once.strip_prefix("0x") {
            Some(digits) => from_hex(digits)?,
            None => once.as_bytes().to_vec(),
        };
        bytes.extend(once.repeat(count));
    }
    Ok(bytes)
}

/// Bytes from hex digits; white space is ignored.
pub fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Option<Vec<u32>> =
        text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16)).collect();
    let digits = digits.ok_or_else(|| format!("not hex: {text:?}"))?;
    let (pairs, []) = digits.as_chunks::<2>() else { return Err("half a byte of hex".into()) };
    pairs.iter().map(|[a, b]| u8::try_from(a << 4 | b).map_err(|e| e.to_string())).collect()
}

/// Hex digits, four bytes a word, 32 bytes a line.
pub fn to_hex(bytes: &[u8]) -> String {
    let mut out = String::new();
    for (place, byte) in bytes.iter().enumerate() {
        match place {
            0 => {}
            _ if place % 32 == 0 => out.push('\n'),
            _ if place % 4 == 0 => out.push(' '),
            _ => {}
        }
        write!(out, "{byte:02x}").expect("strings take everything");
    }
    out
}
