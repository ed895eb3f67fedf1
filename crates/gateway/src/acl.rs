//! Who may do what: users with passwords, patterns of keys and sets of commands, as in Redis.
//!
//! Users are read once, when the gateway starts, from a file in the syntax of Redis' own ACL files
//! (`user alice on >secret ~app:* +@read`).

mod category;
mod rules;
mod secret;
mod user;

pub(crate) use category::CATEGORIES;
pub use user::User;
pub(crate) use user::{CHECKED_KEYS_MAX, Denied};

use bytes::Bytes;
use secret::{hash, hex};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use subtle::ConstantTimeEq as _;

/// The user that every connection is until it says otherwise.
pub const DEFAULT_USER: &str = "default";

/// All users, by name.
#[derive(Clone, Debug)]
pub struct Acl {
    users: BTreeMap<String, Arc<User>>,
}

/// What is wrong with a file of users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AclError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub what: String,
}

impl fmt::Display for AclError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for AclError {}

impl Acl {
    /// Everybody may do everything.
    #[must_use]
    pub fn open() -> Self {
        Self::of_default(&["on", "nopass", "~*", "&*", "+@all"])
    }

    /// Who knows the password may do everything.
    #[must_use]
    pub fn with_password(password: &[u8]) -> Self {
        let hash = format!("#{}", hex(&hash(password)));
        Self::of_default(&["on", &hash, "~*", "&*", "+@all"])
    }

    fn of_default(rules: &[&str]) -> Self {
        let mut user = User::new(DEFAULT_USER);
        for rule in rules {
            rules::apply(&mut user, rule).expect("rules that were written here");
        }
        Self { users: BTreeMap::from([(user.name.clone(), Arc::new(user))]) }
    }

    /// Reads users, one to a line. As in Redis, the user `default` may do everything unless a line
    /// says otherwise.
    ///
    /// # Errors
    ///
    /// The first line that is none of a user, or names a user or something else that there is not.
    pub fn parse(text: &str) -> Result<Self, AclError> {
        let mut acl = Self::open();
        let mut seen: Vec<&str> = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let error = |what: String| AclError { line, what };
            let mut words = text.split_ascii_whitespace();
            match words.next() {
                None => continue,
                Some(word) if word.starts_with('#') => continue,
                Some("user") => {}
                Some(_) => return Err(error("a line begins with the word user".into())),
            }
            let Some(name) = words.next() else { return Err(error("a user has a name".into())) };
            if seen.contains(&name) {
                return Err(error(format!("the user {name} is there twice")));
            }
            seen.push(name);
            let mut user = User::new(name);
            for rule in words {
                rules::apply(&mut user, rule)
                    .map_err(|why| error(format!("{}: {why}", rules::shown(rule))))?;
            }
            acl.users.insert(name.to_owned(), Arc::new(user));
        }
        Ok(acl)
    }

    /// Whether a connection may do something before it has said who it is.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.passwordless().is_some()
    }

    /// Who a connection is before it has said so, if it need not.
    pub(crate) fn passwordless(&self) -> Option<Arc<User>> {
        self.get(DEFAULT_USER).filter(|user| user.on && user.nopass).cloned()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<User>> {
        self.users.get(name)
    }

    /// The names of those users whom somebody can be.
    pub fn can_log_in(&self) -> impl Iterator<Item = &str> {
        self.users.values().filter(|user| user.on).map(|user| user.name.as_str())
    }

    pub(crate) fn users(&self) -> impl Iterator<Item = &Arc<User>> {
        self.users.values()
    }

    /// The user of this name, if the password is one of its. The time that this takes says nothing
    /// about passwords.
    pub(crate) fn authenticate(&self, name: &[u8], password: &Bytes) -> Option<Arc<User>> {
        let given = hash(password);
        let user = std::str::from_utf8(name).ok().and_then(|name| self.get(name));
        let known = user.map(|user| user.hashes.as_slice()).unwrap_or_default();
        let mut right = false;
        for hash in known {
            right |= bool::from(hash.ct_eq(&given));
        }
        user.filter(|user| user.on && (user.nopass || right)).cloned()
    }
}

#[cfg(test)]
mod tests;
