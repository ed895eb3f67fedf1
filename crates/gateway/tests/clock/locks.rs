//! Goal: what a clock shows does not matter to a time to live.
//! Method: a real cluster whose machines' clocks are hours ahead of the gateway's, or behind it,
//! and are set again while it runs.

use crate::setup::{Gateway, integer};
use gateway::Reply;
use gateway::store::Store;
use runtime::clock::set_wall_clock_of_test;
use std::time::{Duration, Instant};

const HOUR_MS: i64 = 3_600_000;

/// How far nodes may be apart in what they take the time to be: one reckons when a value's time is
/// over, and another one what is left of it (`spec/protocol.md`, section 4, "Time").
const APART_MS: i64 = 100;

/// Longer than anything here may take on a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(30);

#[expect(clippy::disallowed_methods, reason = "a real cluster takes real time")]
fn now() -> Instant {
    Instant::now()
}

struct Rig {
    gateway: Gateway,
    store: Store,
}

impl Rig {
    fn say(&self, words: &str) -> Reply {
        self.gateway.say(&self.store, words)
    }

    fn left_ms(&self, key: &str) -> i64 {
        integer(&self.say(&format!("PTTL {key}")))
    }

    /// A key has some time left, and no more than this.
    fn check_left(&self, key: &str, most_ms: i64) {
        let left = self.left_ms(key);
        assert!((1..=most_ms + APART_MS).contains(&left), "{key}: {left} of {most_ms}");
    }

    /// Every way to say from now on, in a key of its own; 100 seconds each.
    fn set_in_all_ways(&self) -> Vec<&'static str> {
        assert_eq!(self.say("SET ex v EX 100"), Reply::OK);
        assert_eq!(self.say("SET px v PX 100000"), Reply::OK);
        assert_eq!(self.say("SETEX setex 100 v"), Reply::OK);
        assert_eq!(self.say("PSETEX psetex 100000 v"), Reply::OK);
        for key in ["expire", "pexpire", "getex", "from{a}"] {
            assert_eq!(self.say(&format!("SET {key} v")), Reply::OK);
        }
        assert_eq!(self.say("EXPIRE expire 100"), Reply::Integer(1));
        assert_eq!(self.say("PEXPIRE pexpire 100000"), Reply::Integer(1));
        self.say("GETEX getex EX 100");
        self.say("EXPIRE from{a} 100");
        assert_eq!(self.say("RENAME from{a} to{a}"), Reply::OK);
        let big = "x".repeat(100_000);
        assert_eq!(self.say(&format!("SET big {big} EX 100")), Reply::OK);
        vec!["ex", "px", "setex", "psetex", "expire", "pexpire", "getex", "to{a}", "big"]
    }

    fn check(&self) {
        let began = now();
        assert_eq!(self.say("SET lock me NX PX 30000"), Reply::OK);
        assert_eq!(self.say("SET lock you NX PX 30000"), Reply::Null, "two owners of one lock");
        let keys = self.set_in_all_ways();
        for key in keys {
            let left = self.left_ms(key);
            let least = 100_000 - i64::try_from(began.elapsed().as_millis()).unwrap() - 1_000;
            assert!((least..=100_000 + APART_MS).contains(&left), "{key}: {left}");
            self.say(&format!("DEL {key}"));
        }
        assert_eq!(self.say("SET k v EX 100"), Reply::OK);
        assert_eq!(self.say("EXPIRE k 50 GT"), Reply::Integer(0));
        assert_eq!(self.say("EXPIRE k 150 GT"), Reply::Integer(1));
        assert_eq!(self.say("EXPIRE k 50 LT"), Reply::Integer(1));
        // A time is one by the cluster's clock, which EXPIRETIME tells.
        let at = integer(&self.say("PEXPIRETIME k"));
        assert_eq!(self.say(&format!("PEXPIREAT k {}", at - 20_000)), Reply::Integer(1));
        self.check_left("k", 30_000);
        assert_eq!(self.say(&format!("PEXPIREAT k {}", at - 60_000)), Reply::Integer(1));
        assert_eq!(self.left_ms("k"), -2, "that time is over");
        self.say("DEL lock");
    }

    /// A value goes when its time is over, and not before.
    fn check_the_end(&self) {
        let began = now();
        assert_eq!(self.say("SET short v PX 700"), Reply::OK);
        let answered = now();
        while self.say("GET short") != Reply::Null {
            assert!(answered.elapsed() < WAIT_MAX, "it stays");
        }
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(600), "{took:?}");
    }
}

#[test]
fn a_lock_has_one_owner_for_its_time_whatever_the_clocks_show() {
    for hours in [-1, 1] {
        set_wall_clock_of_test(hours * HOUR_MS);
        let gateway = Gateway::start();
        let store = gateway.store();
        let rig = Rig { gateway, store };
        rig.check();
        rig.check_the_end();
        for hours in [5, -20] {
            assert_eq!(rig.say("SET before v PX 60000"), Reply::OK);
            set_wall_clock_of_test(hours * HOUR_MS);
            rig.check();
            rig.check_the_end();
            rig.check_left("before", 60_000);
            rig.say("DEL before");
        }
        rig.gateway.stop();
    }
    set_wall_clock_of_test(0);
}
