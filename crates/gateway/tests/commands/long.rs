//! Values of some 100 KB, which are kept in parts: the same commands to a Redis server and to a
//! gateway, and the replies compared.

use super::redis::Server;
use crate::setup::{Gateway, run};
use bytes::Bytes;
use gateway::Reply;
use machine::Rng;

/// Commands of a run.
const COMMANDS: usize = 400;

/// Bytes of the longest values that are set: replies of that length leave piece by piece.
const LEN_MAX: u64 = 400_000;

struct Draw(Rng);

impl Draw {
    fn bytes(&mut self) -> Bytes {
        let len = if self.0.chance(1, 4) { self.0.below(2_000) } else { self.0.below(LEN_MAX) };
        let seed = self.0.next_u64();
        (0..len)
            .map(|at| (seed.rotate_left((at % 61) as u32) as u8).wrapping_add(at as u8))
            .collect()
    }

    fn number(&mut self) -> Bytes {
        let at = i64::try_from(self.0.below(2 * LEN_MAX)).expect("small") - 400_000;
        at.to_string().into()
    }

    fn key(&mut self) -> Bytes {
        format!("long{}", self.0.below(3)).into()
    }

    fn command(&mut self) -> Vec<Bytes> {
        let key = self.key();
        let named = |name: &'static str, rest: Vec<Bytes>| {
            [vec![Bytes::from_static(name.as_bytes()), key.clone()], rest].concat()
        };
        match self.0.below(20) {
            0..4 => named("set", vec![self.bytes()]),
            4 => named("set", vec![self.bytes(), "get".into()]),
            5 => named("set", vec![self.bytes(), "xx".into(), "keepttl".into()]),
            6 => named("setnx", vec![self.bytes()]),
            7 => named("append", vec![self.bytes()]),
            8 => named("setrange", vec![self.0.below(LEN_MAX).to_string().into(), self.bytes()]),
            9 => named("getset", vec![self.bytes()]),
            10..13 => named("getrange", vec![self.number(), self.number()]),
            13 => named("strlen", vec![]),
            14 => named("incr", vec![]),
            15 => named("mget", vec![self.key(), self.key()]),
            16 => named("mset", vec![self.bytes(), self.key(), self.bytes()]),
            17 => named("persist", vec![]),
            18 if self.0.chance(1, 2) => named("getdel", vec![]),
            _ => named("get", vec![]),
        }
    }
}

#[test]
fn long_values_are_those_of_a_redis_server() {
    let Some(server) = Server::start("long_values_are_those_of_a_redis_server") else { return };
    let (gateway, mut redis) = (Gateway::start(), server.connect());
    let store = gateway.store();
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut draw = Draw(Rng::new(seed));
    let (mut bytes, mut longest) = (0, 0);
    for _ in 0..COMMANDS {
        let args = draw.command();
        let theirs = redis.run(&args);
        let ours = gateway.runtime.block_on(run(&store, &args));
        if let Reply::Bulk(value) = &theirs {
            (bytes, longest) = (bytes + value.len(), longest.max(value.len()));
        }
        let short: Vec<&[u8]> = args.iter().map(|it| it.get(..40).unwrap_or(it)).collect();
        assert!(ours == theirs, "{short:?}: {} not {}", shown(&ours), shown(&theirs));
    }
    println!("{bytes} bytes read, {longest} at once");
    assert!(longest > 300_000, "some values must have been long");
}

fn shown(reply: &Reply) -> String {
    match reply {
        Reply::Bulk(bytes) => format!("{} bytes", bytes.len()),
        other => format!("{other:?}").chars().take(200).collect(),
    }
}
