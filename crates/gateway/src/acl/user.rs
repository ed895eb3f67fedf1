//! A user: what it is known by, and what it may do.

use super::secret::{Hash, hex};
use crate::command::{self, Access, Found, Spec};
use crate::glob::{Pattern, TooLong};
use bytes::Bytes;

/// One user.
#[derive(Clone, Debug)]
pub struct User {
    pub(crate) name: String,
    /// Whether it may authenticate.
    pub(super) on: bool,
    /// Whether any password will do.
    pub(super) nopass: bool,
    pub(super) hashes: Vec<Hash>,
    pub(super) keys: Vec<KeyRule>,
    /// Patterns of channels; there are no channels here, but files and tools speak of them.
    pub(super) channels: Vec<String>,
    /// In the order in which they were given: the last that is about a command counts.
    rules: Vec<CommandRule>,
    /// What follows from the rules for each command and subcommand, by number.
    allowed: Vec<bool>,
}

/// Whether some commands are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommandRule {
    pub(super) allow: bool,
    pub(super) whom: Whom,
}

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whom {
    All,
    Category(&'static str),
    /// A command with its subcommands, or a subcommand, by number.
    Command(usize),
}

/// Some keys, and what may be done to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KeyRule {
    text: String,
    pattern: Pattern,
    read: bool,
    write: bool,
}

/// Why something is not permitted, without the code word `NOPERM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    Command,
    Key,
    /// There are too many to ask the patterns about.
    Many,
}

/// Keys that a command of a user may name whose keys are limited by patterns: each is held against
/// each pattern at once. Those of a pattern of average length take some milliseconds.
pub(crate) const CHECKED_KEYS_MAX: usize = 1 << 16;

/// Commands that tell what was there before they change it: to read is then needed as well.
const READ_TOO: [&str; 11] = [
    "getset",
    "getdel",
    "getex",
    "incr",
    "incrby",
    "incrbyfloat",
    "decr",
    "decrby",
    "copy",
    "eval",
    "evalsha",
];

impl KeyRule {
    pub(super) fn new(text: &str, read: bool, write: bool) -> Result<Self, TooLong> {
        let pattern = Pattern::new(text.as_bytes())?;
        Ok(Self { text: text.to_owned(), pattern, read, write })
    }

    /// Whether it is about all keys, and everything that can be done to them.
    pub(super) fn is_all(&self) -> bool {
        self.text == "*" && self.read && self.write
    }

    fn text(&self) -> String {
        match (self.read, self.write) {
            (true, false) => format!("%R~{}", self.text),
            (false, true) => format!("%W~{}", self.text),
            (true, true) | (false, false) => format!("~{}", self.text),
        }
    }
}

impl CommandRule {
    fn is_about(&self, spec: &Spec) -> bool {
        match self.whom {
            Whom::All => true,
            Whom::Category(category) => spec.is_in(category),
            Whom::Command(number) => command::numbered().get(number).is_some_and(|it| {
                let inside = |rest: &str| rest.is_empty() || rest.starts_with('|');
                spec.name.strip_prefix(it.name).is_some_and(inside)
            }),
        }
    }

    fn text(&self) -> String {
        let sign = if self.allow { '+' } else { '-' };
        match self.whom {
            Whom::All => format!("{sign}@all"),
            Whom::Category(category) => format!("{sign}@{category}"),
            Whom::Command(number) => {
                let name = command::numbered().get(number).map(|spec| spec.name);
                format!("{sign}{}", name.unwrap_or_default())
            }
        }
    }
}

impl User {
    /// One that may do nothing, as in Redis.
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            on: false,
            nopass: false,
            hashes: Vec::new(),
            keys: Vec::new(),
            channels: Vec::new(),
            rules: Vec::new(),
            allowed: vec![false; command::numbered().len()],
        }
    }

    pub(super) fn add(&mut self, rule: CommandRule) {
        if rule.whom == Whom::All {
            self.rules.clear();
        }
        for (spec, allowed) in command::numbered().iter().zip(&mut self.allowed) {
            if rule.is_about(spec) {
                *allowed = rule.allow;
            }
        }
        // What nothing is left of, because a later rule is about the same.
        self.rules.retain(|other| other.whom != rule.whom);
        self.rules.push(rule);
    }

    /// Whether it may do that.
    pub(crate) fn check(&self, found: Found, args: &[Bytes]) -> Result<(), Denied> {
        if !self.allowed.get(found.number).is_some_and(|allowed| *allowed) {
            return Err(Denied::Command);
        }
        self.check_keys(found.spec, args)
    }

    fn check_keys(&self, spec: &Spec, args: &[Bytes]) -> Result<(), Denied> {
        if self.keys.iter().any(KeyRule::is_all) {
            return Ok(());
        }
        let (read, write) = match spec.access {
            Access::None | Access::Read => (true, false),
            Access::Write => (reads_too(spec, args), true),
        };
        if spec.key_positions(args).nth(CHECKED_KEYS_MAX).is_some() {
            return Err(Denied::Many);
        }
        for key in spec.key_positions(args).filter_map(|at| args.get(at)) {
            // Different patterns may give the two rights.
            let has = |right: fn(&KeyRule) -> bool| {
                let mut rules = self.keys.iter().filter(|rule| right(rule));
                rules.any(|rule| rule.pattern.matches(key))
            };
            if (read && !has(|rule| rule.read)) || (write && !has(|rule| rule.write)) {
                return Err(Denied::Key);
            }
        }
        Ok(())
    }

    /// Flags, as ACL GETUSER tells them.
    pub(crate) fn flags(&self) -> Vec<&'static str> {
        let mut flags = vec![if self.on { "on" } else { "off" }];
        if self.nopass {
            flags.push("nopass");
        }
        flags.push("sanitize-payload");
        flags
    }

    /// Hashes of its passwords.
    pub(crate) fn passwords(&self) -> impl Iterator<Item = String> {
        self.hashes.iter().map(hex)
    }

    /// Rules about commands.
    pub(crate) fn command_rules(&self) -> String {
        let begins = self.rules.first().is_some_and(|rule| rule.whom == Whom::All);
        let first = if begins { None } else { Some("-@all".to_owned()) };
        let rules = first.into_iter().chain(self.rules.iter().map(CommandRule::text));
        rules.collect::<Vec<_>>().join(" ")
    }

    /// Rules about keys.
    pub(crate) fn key_rules(&self) -> String {
        self.keys.iter().map(KeyRule::text).collect::<Vec<_>>().join(" ")
    }

    /// Rules about channels.
    pub(crate) fn channel_rules(&self) -> String {
        self.channels.iter().map(|it| format!("&{it}")).collect::<Vec<_>>().join(" ")
    }

    /// Everything, as it could stand in a file.
    pub(crate) fn line(&self) -> String {
        let mut words = vec!["user".to_owned(), self.name.clone()];
        words.extend(self.flags().into_iter().map(str::to_owned));
        words.extend(self.passwords().map(|hash| format!("#{hash}")));
        words.push(self.key_rules());
        let channels = self.channel_rules();
        words.push(if channels.is_empty() { "resetchannels".into() } else { channels });
        words.push(self.command_rules());
        words.retain(|word| !word.is_empty());
        words.join(" ")
    }
}

/// Whether a command that writes tells what was there.
fn reads_too(spec: &Spec, args: &[Bytes]) -> bool {
    let set_with_get =
        spec.name == "set" && args.iter().skip(3).any(|arg| arg.eq_ignore_ascii_case(b"get"));
    set_with_get || READ_TOO.contains(&spec.name)
}
