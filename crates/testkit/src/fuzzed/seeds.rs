//! What the fuzz targets begin with: every vector, in the form that the target takes.

use super::envelope::{CLIENT, NODE, SEALED, SWITCH};
use super::form::{IN_RANGE, KEYSPACES, NODE_IDS, NODE_SOURCE, OLDER, ORDER, STANDBY};
use crate::vector::file;
use std::net::SocketAddr;
use std::path::Path;
use toml::{Table, Value};

/// One vector.
pub struct Seed {
    /// For the target `packet`: the datagram that counts.
    pub packet: Vec<u8>,
    /// For the target `pipeline`: the default tables, orders of hot keys, and the datagrams.
    pub pipeline: Vec<u8>,
    /// For the target `envelope`: the datagram that counts, in an envelope, at a switch.
    pub envelope: Vec<u8>,
}

/// A target whose seeds are vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The packet parser.
    Packet,
    /// The pipeline against the model.
    Pipeline,
    /// Envelopes.
    Envelope,
}

/// Every vector of the repository in the form that the target takes, with file names.
pub fn of_vectors(repository: &Path, target: Target) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut seeds = Vec::new();
    for path in file::paths(repository)? {
        let stem = path.file_stem().unwrap_or_default().display().to_string();
        let named = |why: &dyn std::fmt::Display| format!("{stem}: {why}");
        let text = std::fs::read_to_string(&path).map_err(|why| named(&why))?;
        let file: Table = toml::from_str(&text).map_err(|why| named(&why))?;
        for (number, case) in of_file(&file).map_err(|why| named(&why))?.into_iter().enumerate() {
            let seed = match target {
                Target::Packet => case.packet,
                Target::Pipeline => case.pipeline,
                Target::Envelope => case.envelope,
            };
            seeds.push((format!("vector-{stem}-{number}"), seed));
        }
    }
    Ok(seeds)
}

/// The cases of a file of vectors, in order.
pub fn of_file(file: &Table) -> Result<Vec<Seed>, String> {
    let nodes = list(file.get("tables").and_then(|tables| tables.get("nodes")));
    let cases = list(file.get("case"));
    if cases.is_empty() {
        return Err("a file of vectors has cases".into());
    }
    let seed = |case: &Value| {
        let packet = case.get("packet").ok_or("a case has a packet")?;
        let (mut pipeline, mut revision) = (vec![0], 0);
        if let Some(hot) = file.get("hot") {
            item(&mut pipeline, 0, ORDER, &order(hot, &mut revision)?)?;
        }
        for arrival in list(case.get("before")).iter().chain([packet]) {
            if arrival.get("forgets").is_some() {
                item(&mut pipeline, 0, STANDBY, &[])?;
            }
            if arrival.get("order").is_some() {
                let named = |it: &&Value| number(it, "revision") == number(arrival, "order");
                let next = list(file.get("orders")).iter().find(named).ok_or("no such order")?;
                item(&mut pipeline, 0, ORDER, &order(next, &mut revision)?)?;
            }
            let from = text(arrival, "from")?.parse().map_err(|why| format!("{why}"))?;
            item(&mut pipeline, source(nodes, from)?, 0, &from_hex(text(arrival, "hex")?)?)?;
        }
        let source = source(nodes, text(packet, "from")?.parse().map_err(|why| format!("{why}"))?)?;
        let packet = from_hex(text(packet, "hex")?)?;
        let author = if source == 0 { CLIENT } else { NODE };
        let envelope = [&[author, SWITCH, SEALED, 0, 0, 0], packet.as_slice()].concat();
        Ok(Seed { packet, pipeline, envelope })
    };
    cases.iter().map(seed).collect()
}

fn item(seed: &mut Vec<u8>, source: u8, flag: u16, bytes: &[u8]) -> Result<(), String> {
    seed.push(source);
    seed.extend((byte_count(bytes)? | flag).to_be_bytes());
    seed.extend(bytes);
    Ok(())
}

fn byte_count(bytes: &[u8]) -> Result<u16, String> {
    u16::try_from(bytes.len()).map_err(|why| why.to_string())
}

/// The source at this address: the node that has it in the tables of the vector, or a client.
fn source(nodes: &[Value], from: SocketAddr) -> Result<u8, String> {
    for node in nodes {
        let first: SocketAddr = text(node, "endpoint")?.parse().map_err(|why| format!("{why}"))?;
        let shard = from.port().checked_sub(first.port());
        let shard = shard.filter(|shard| u64::from(*shard) < number(node, "shards").unwrap_or(0));
        let place = NODE_IDS.iter().position(|id| Ok(u64::from(*id)) == number(node, "id"));
        if let (true, Some(shard), Some(place)) = (first.ip() == from.ip(), shard, place) {
            return Ok(NODE_SOURCE + 4 * small(place)? + small(shard)?);
        }
    }
    Ok(0)
}

/// An order; the newest one before it is of revision `before`.
fn order(hot: &Value, before: &mut u64) -> Result<Vec<u8>, String> {
    let selection = ["random", "reported", "predicted"];
    let selection = selection.iter().position(|it| Ok(*it) == text(hot, "selection"));
    let selection = selection.ok_or("a selection")?;
    let revision = number(hot, "revision")?;
    let step = match revision.checked_sub(*before) {
        Some(newer) => newer.checked_sub(1).filter(|step| *step < OLDER.into()),
        None => 64_u64.checked_sub(*before - revision).filter(|step| *step >= OLDER.into()),
    };
    let step = step.ok_or("a revision that is near the one before")?;
    *before = revision.max(*before);
    let places = list(hot.get("places"));
    let mut bytes = vec![small(selection)? + 4 * small(step)?, small(places.len())?];
    for place in places {
        let id = place.get(0).and_then(Value::as_integer);
        let node = NODE_IDS.iter().position(|it| Some(i64::from(*it)) == id);
        let incarnation = place.get(1).and_then(Value::as_integer).ok_or("an incarnation")?;
        bytes.push(small(node.ok_or("a node that fuzzing knows")?)? + 8 * small(incarnation % 4)?);
    }
    for key in list(hot.get("keys")) {
        let keyspace =
            KEYSPACES.iter().position(|it| Ok(u64::from(*it)) == number(key, "keyspace"));
        let in_range =
            if keyspace.ok_or("a keyspace that fuzzing knows")? == 0 { 0 } else { IN_RANGE };
        let delegation =
            |name| key.get("delegation").map_or(Ok(0), |delegation| number(delegation, name));
        let low = text(key, "match_value")?.get(16..).ok_or("16 bytes of match value")?;
        bytes.push(small(number(key, "first")? + 8 * number(key, "readers")?)? | in_range);
        bytes.push(small(number(key, "generation")? + 16 * delegation("number")?)?);
        bytes.push(small(delegation("replicas")? + 4 * delegation("copies")?)?);
        bytes.extend(number(key, "keyhash")?.to_be_bytes());
        bytes.extend(from_hex(low)?);
    }
    Ok(bytes)
}

fn list(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], |values| values)
}

fn text<'v>(value: &'v Value, name: &str) -> Result<&'v str, String> {
    value.get(name).and_then(Value::as_str).ok_or_else(|| format!("{name} is missing"))
}

fn number(value: &Value, name: &str) -> Result<u64, String> {
    let number = value.get(name).and_then(Value::as_integer).and_then(|it| u64::try_from(it).ok());
    number.ok_or_else(|| format!("{name} is missing"))
}

fn small<N: TryInto<u8>>(number: N) -> Result<u8, String> {
    number.try_into().map_err(|_| "too large for a seed".into())
}

fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: String = text.split_whitespace().collect();
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| {
        let text = std::str::from_utf8(pair).map_err(|why| why.to_string())?;
        u8::from_str_radix(text, 16).map_err(|why| why.to_string())
    };
    if rest.is_empty() { pairs.iter().map(byte).collect() } else { Err("half a byte".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vector_is_a_seed_of_all_targets() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let packets = of_vectors(root, Target::Packet).unwrap();
        let pipelines = of_vectors(root, Target::Pipeline).unwrap();
        assert!(packets.len() > 100, "{} vectors", packets.len());
        let envelopes = of_vectors(root, Target::Envelope).unwrap();
        for others in [pipelines, envelopes] {
            assert_eq!(packets.len(), others.len());
            for ((name, datagram), (same_name, seed)) in packets.iter().zip(&others) {
                assert!(name == same_name && seed.ends_with(datagram), "{name}");
            }
        }
    }

    #[test]
    fn hex_is_read_whole_or_not_at_all() {
        assert_eq!(from_hex("00ff 1\n2").unwrap(), [0, 0xff, 0x12]);
        assert!(from_hex("0").is_err() && from_hex("0x").is_err() && from_hex("é").is_err());
    }
}
