//! What the table says of a command.

use super::keyed::Keyed;
use super::session::Session;

/// A command of the table.
#[derive(Debug)]
pub struct Spec {
    /// Its name, in small letters, as COMMAND tells it.
    pub name: &'static str,
    /// Number of arguments with the name, as Redis counts: exactly so many, or if it is negative at
    /// least so many.
    pub arity: i32,
    /// Which arguments are keys.
    pub keys: Keys,
    /// What it does to keys.
    pub access: Access,
    /// Categories of access control that it belongs to, without the `@`, beside those that follow
    /// from `access`.
    pub categories: &'static [&'static str],
    /// One line for people, for COMMAND DOCS.
    pub summary: &'static str,
    /// The version of Redis that had it first.
    pub since: &'static str,
    /// The group of commands in which Redis lists it.
    pub group: &'static str,
    /// What carries it out.
    pub run: Run,
}

/// What carries a command out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// The store, with requests to the cluster.
    Keyed(Keyed),
    /// The session that it came in by: it asks of, or changes, the connection or the server.
    Session(Session),
}

/// Which arguments are keys, counted from the name, which is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// None.
    None,
    /// From `first` to `last` (negative: counted from the end, -1 is the last argument), every
    /// `step`th.
    Range {
        /// The first key.
        first: usize,
        /// The last key.
        last: isize,
        /// From each key to the next.
        step: usize,
    },
    /// As many as the argument at this place says, and behind that.
    Counted(usize),
}

/// What a command does to the keys it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    None,
    /// Reads only.
    Read,
    /// May change something.
    Write,
}

impl Spec {
    /// Which of these arguments, the name among them, are keys.
    pub fn key_positions(&self, args: &[bytes::Bytes]) -> impl Iterator<Item = usize> + use<> {
        let count = args.len();
        let (first, last, step) = match self.keys {
            Keys::None => (1, 0, 1),
            // With a number that is none, or too large, no command is carried out.
            Keys::Counted(at) => {
                let named = args.get(at).and_then(|it| std::str::from_utf8(it).ok()?.parse().ok());
                let last = named.and_then(|named: usize| named.checked_add(at));
                (at + 1, last.filter(|last| *last < count).unwrap_or(at), 1)
            }
            Keys::Range { first, last, step } => {
                let last = match usize::try_from(last) {
                    Ok(last) => last,
                    Err(_) => count.saturating_sub(last.unsigned_abs()),
                };
                (first, last.min(count.saturating_sub(1)), step)
            }
        };
        (first..=last).step_by(step)
    }

    /// Whether so many arguments, the name among them, are as many as it takes.
    #[must_use]
    pub fn takes(&self, count: usize) -> bool {
        let wanted = usize::try_from(self.arity.unsigned_abs()).unwrap_or(usize::MAX);
        if self.arity < 0 { count >= wanted } else { count == wanted }
    }

    /// Whether everybody may use it: it says who a client is, or that it goes.
    #[must_use]
    pub fn is_for_all(&self) -> bool {
        ["auth", "hello", "quit", "reset"].contains(&self.name)
    }

    /// Whether it belongs to this category of access control, named without the `@`.
    #[must_use]
    pub fn is_in(&self, category: &str) -> bool {
        self.every_category().any(|own| own == category)
    }

    /// All categories of access control that it belongs to.
    pub fn every_category(&self) -> impl Iterator<Item = &'static str> {
        let access = match self.access {
            Access::None => None,
            Access::Read => Some("read"),
            Access::Write => Some("write"),
        };
        // As in Redis, what is not known to be fast is slow.
        let slow = (!self.categories.contains(&"fast")).then_some("slow");
        self.categories.iter().copied().chain(access).chain(slow)
    }
}

/// The one key of most commands.
pub(super) const ONE: Keys = Keys::Range { first: 1, last: 1, step: 1 };
/// The one key after a subcommand.
pub(super) const SECOND: Keys = Keys::Range { first: 2, last: 2, step: 1 };
/// From one key to another.
pub(super) const TWO: Keys = Keys::Range { first: 1, last: 2, step: 1 };
/// Nothing but keys.
pub(super) const ALL: Keys = Keys::Range { first: 1, last: -1, step: 1 };
/// Keys, each with a value behind it.
pub(super) const PAIRS: Keys = Keys::Range { first: 1, last: -1, step: 2 };
/// As many as the second argument says.
pub(super) const COUNTED: Keys = Keys::Counted(2);
