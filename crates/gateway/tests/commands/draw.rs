//! Random commands: every command of the table, with values at the edges, options in any order,
//! errors and wrong numbers of arguments among them.

use bytes::Bytes;
use gateway::command::{self, Run, Spec};
use machine::Rng;

/// What takes the place of each letter, for commands with a fixed form: K a key, V a value, I an
/// integer, N an index, F a number with a fraction.
const FORMS: &[(&str, &str)] = &[
    ("append", "KV"),
    ("decr", "K"),
    ("decrby", "KI"),
    ("delifeq", "KV"),
    ("get", "K"),
    ("getdel", "K"),
    ("getrange", "KNN"),
    ("getset", "KV"),
    ("incr", "K"),
    ("incrby", "KI"),
    ("incrbyfloat", "KF"),
    ("setnx", "KV"),
    ("setrange", "KNV"),
    ("strlen", "K"),
    ("substr", "KNN"),
    ("expiretime", "K"),
    ("persist", "K"),
    ("pexpiretime", "K"),
    ("pttl", "K"),
    ("rename", "KK"),
    ("renamenx", "KK"),
    ("ttl", "K"),
    ("type", "K"),
];

/// Commands whose replies are about how Redis keeps things, those about all keys at once, and
/// scripts, which have tests of their own.
const ELSEWHERE: &[&str] = &[
    "object",
    "memory",
    "dbsize",
    "flushall",
    "flushdb",
    "keys",
    "randomkey",
    "scan",
    "eval",
    "eval_ro",
    "evalsha",
    "evalsha_ro",
];

/// Draws commands about a few keys with a common prefix.
pub(crate) struct Draw {
    pub(crate) rng: Rng,
    prefix: String,
    specs: Vec<&'static Spec>,
}

impl Draw {
    pub(crate) fn new(rng: Rng, prefix: &str) -> Self {
        let keyed = command::all().filter(|spec| matches!(spec.run, Run::Keyed(_)));
        let specs = keyed.filter(|spec| !ELSEWHERE.contains(&spec.name)).collect();
        Self { rng, prefix: prefix.to_owned(), specs }
    }

    /// The next command.
    pub(crate) fn command(&mut self) -> Vec<Bytes> {
        let index = self.below(self.specs.len());
        let name = self.specs[index].name;
        let mut args = vec![Bytes::from(name)];
        match FORMS.iter().find(|(of, _)| *of == name) {
            Some((_, form)) => args.extend(form.chars().map(|letter| self.letter(letter))),
            None => self.special(name, &mut args),
        }
        if self.rng.chance(1, 40) {
            if self.rng.chance(1, 2) {
                args.truncate(1 + self.below(args.len()));
            } else {
                // Where any number of keys may stand, one more: the empty one, only Redis takes.
                // And only Redis has a second database to copy to.
                let many = matches!(name, "mget" | "del" | "unlink" | "exists" | "touch" | "copy");
                args.push(if many { self.key() } else { self.value() });
            }
        }
        args
    }

    fn special(&mut self, name: &str, args: &mut Vec<Bytes>) {
        match name {
            "set" => {
                args.extend([self.key(), self.value()]);
                let words = ["NX", "XX", "GET", "keepttl", "EX", "PX", "EXAT", "PXAT", "PERSIST"];
                self.options(&words, args);
            }
            "getex" => {
                args.push(self.key());
                let words = ["EX", "PX", "EXAT", "pxat", "PERSIST", "KEEPTTL", "NX"];
                self.options(&words, args);
            }
            "setex" => args.extend([self.key(), self.time(1, true), self.value()]),
            "psetex" => args.extend([self.key(), self.time(1000, true), self.value()]),
            "expire" | "pexpire" | "expireat" | "pexpireat" => {
                let unit = if name.starts_with('p') { 1000 } else { 1 };
                args.extend([self.key(), self.time(unit, !name.ends_with("at"))]);
                for _ in 0..self.below(3) {
                    args.push(self.pick(&["NX", "xx", "GT", "LT", "GT", "YZ"]));
                }
            }
            "copy" => {
                args.extend([self.key(), self.key()]);
                for _ in 0..self.below(3) {
                    args.push(self.pick(&["REPLACE", "replace", "DB", "0", "1x"]));
                }
            }
            "mset" | "msetnx" => {
                for _ in 0..=self.below(5) {
                    args.extend([self.key(), self.value()]);
                }
            }
            "mget" | "del" | "unlink" | "exists" | "touch" => {
                for _ in 0..=self.below(5) {
                    args.push(self.key());
                }
            }
            _ => panic!("no form of {name}"),
        }
    }

    fn letter(&mut self, letter: char) -> Bytes {
        match letter {
            'K' => self.key(),
            'V' => self.value(),
            'I' => self.integer(),
            'N' => self.index(),
            'F' => self.float(),
            _ => panic!("no letter {letter}"),
        }
    }

    pub(crate) fn key(&mut self) -> Bytes {
        let number = self.below(6);
        format!("{}{number}", self.prefix).into()
    }

    fn value(&mut self) -> Bytes {
        match self.below(8) {
            0..=2 => self.integer(),
            3 => self.float(),
            4 => Bytes::new(),
            5 => self.pick(&["a", "hello world", "NX", "\r\n", "0"]),
            6 => {
                let len = self.below(60);
                (0..len).map(|_| u8::try_from(self.rng.below(256)).unwrap()).collect()
            }
            _ => vec![b'x'; self.below(300)].into(),
        }
    }

    fn integer(&mut self) -> Bytes {
        match self.below(3) {
            0 => self.pick(INTEGERS),
            1 => (i64::try_from(self.rng.below(2000)).unwrap() - 1000).to_string().into(),
            _ => self.rng.next_u64().cast_signed().to_string().into(),
        }
    }

    fn index(&mut self) -> Bytes {
        if self.rng.chance(1, 6) {
            // 512 MB and its neighbours are limits; a little less would make Redis fill it.
            return self.pick(&["536870912", "9223372036854775807", "-1", "x", "1300", "01"]);
        }
        (i64::try_from(self.rng.below(400)).unwrap() - 80).to_string().into()
    }

    fn float(&mut self) -> Bytes {
        match self.below(4) {
            0 => self.pick(FLOATS),
            1 => {
                let exponent = self.below(40);
                format!("{}e{}", self.rng.next_u64().cast_signed(), exponent as i64 - 30).into()
            }
            2 => format!("{}.{}", self.below(1000), self.rng.next_u64()).into(),
            _ => {
                let hundredths = i64::try_from(self.rng.below(20_000)).unwrap() - 10_000;
                format!("{}", hundredths as f64 / 100.0).into()
            }
        }
    }

    /// A time, `unit` being a second. So far away that nothing expires meanwhile, if not past.
    fn time(&mut self, unit: u64, from_now: bool) -> Bytes {
        if self.rng.chance(1, 5) {
            return self.pick(TIMES);
        }
        let far = 1_000_000 + self.rng.below(1_000_000_000);
        // In whole seconds, so that what is left rounds the same way a moment later.
        let start = if from_now { 0 } else { 3_000_000_000 };
        ((start + far) * unit).to_string().into()
    }

    fn options(&mut self, words: &[&str], args: &mut Vec<Bytes>) {
        for _ in 0..self.below(4) {
            let word = self.pick(words);
            args.push(word.clone());
            let unit = if word.to_ascii_lowercase().starts_with(b"p") { 1000 } else { 1 };
            match word.to_ascii_lowercase().as_slice() {
                b"ex" | b"px" if self.rng.chance(19, 20) => args.push(self.time(unit, true)),
                b"exat" | b"pxat" if self.rng.chance(19, 20) => args.push(self.time(unit, false)),
                _ => {}
            }
        }
    }

    fn pick(&mut self, from: &[&str]) -> Bytes {
        let index = self.below(from.len());
        from[index].to_owned().into()
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.rng.below(bound as u64)).unwrap()
    }
}

const INTEGERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775808",
    "9223372036854775806",
    "-0",
    "+1",
    "007",
    " 1",
    "1 ",
    "0x10",
    "1.0",
    "one",
    "",
];

const FLOATS: &[&str] = &[
    "0",
    "-0",
    "0.1",
    "0.2",
    "-0.3",
    "1e2",
    "1E-2",
    "+3.5",
    ".5",
    "5.",
    ".",
    "1e",
    "e5",
    "inf",
    "-inf",
    "Infinity",
    "nan",
    "0x1p3",
    "0x.8",
    "0x",
    "0X1F",
    "0x1.8p-1",
    "1e-17",
    "5e-18",
    "4.9e-18",
    "1.5e-17",
    "2.5e-17",
    "-1e-20",
    "1e400",
    "1e4932",
    "1e4933",
    "-2e4932",
    "1e-4951",
    "1e-4970",
    "18446744073709551615",
    "18446744073709551617",
    "0.333333333333333333333333",
    " 1",
    "1 ",
    "1e+5",
    "1e5.0",
    "3.0e0",
    "1_000",
    "123456789012345678901234567890",
    "--1",
    "0e99999999999",
    "1e-99999999999",
    "1e99999999999",
];

/// Times at the edges: errors, or long past.
const TIMES: &[&str] = &[
    "0",
    "-1",
    "1.5",
    "x",
    "",
    "9223372036854775807",
    "-9223372036854775808",
    "9223372036854775",
    "9223372036854776",
    "-9223372036854776",
    "-100000",
];
