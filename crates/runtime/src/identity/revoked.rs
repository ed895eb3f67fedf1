//! Certificates that are refused although they are valid.
//!
//! A file beside that of the authorities names identities, a line for each, with a time up to which
//! their certificates do not count: `client/alice 2026-11-30T12:00:00Z`. Nobody has to sign it: who
//! can write it can replace the authorities as well.

use super::certificate::Facts;
use super::error::IdentityError;
use super::names::Identity;
use super::write::{Visibility, write};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// Its name.
const FILE: &str = "revoked";

/// Until when certificates do not count, by whose they are: in Unix seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revoked(BTreeMap<Identity, u64>);

impl Revoked {
    /// The file beside that of the authorities.
    pub(super) fn beside(ca: &Path) -> PathBuf {
        ca.with_file_name(FILE)
    }

    /// Reads a file. Nothing is revoked where there is none.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or a line is none of it: then nobody knows what it is to refuse.
    pub(super) fn load(path: &Path) -> Result<Self, IdentityError> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(why) => return Err(IdentityError::File { path: path.to_owned(), why }),
        };
        let mut until = BTreeMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (identity, seconds) = parse(line).ok_or_else(|| IdentityError::Form {
                path: path.to_owned(),
                what: "list of revoked certificates",
                why: format!(
                    "line {number} is {line:?}, and should be like \
                     \"client/alice 2026-11-30T12:00:00Z\""
                ),
            })?;
            let known = until.entry(identity).or_insert(seconds);
            *known = seconds.max(*known);
        }
        Ok(Self(until))
    }

    /// The list in a directory that `keyway certs` has made.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn in_directory(directory: &Path) -> Result<Self, IdentityError> {
        Self::load(&directory.join(FILE))
    }

    /// Whether a certificate is refused.
    #[must_use]
    pub fn covers(&self, facts: &Facts) -> bool {
        let until = facts.identity.as_ref().and_then(|identity| self.until(identity));
        until.is_some_and(|until| facts.from <= i64::try_from(until).unwrap_or(i64::MAX))
    }

    /// Until when certificates of this identity are, in Unix seconds.
    pub(super) fn until(&self, identity: &Identity) -> Option<u64> {
        self.0.get(identity).copied()
    }
}

/// Revokes all certificates of these that were made before `now`, in Unix seconds, in the file of a
/// directory. Returns the file.
///
/// # Errors
///
/// If it cannot be read or written.
pub fn revoke(
    directory: &Path,
    identities: &[Identity],
    now: u64,
) -> Result<PathBuf, IdentityError> {
    let mut revoked = Revoked::in_directory(directory)?;
    // What is made in this second to replace them counts.
    revoked.0.extend(identities.iter().map(|it| (it.clone(), now.saturating_sub(1))));
    let line = |(identity, until): (&Identity, &u64)| {
        let until = UNIX_EPOCH + Duration::from_secs(*until);
        format!("{identity} {}\n", humantime::format_rfc3339_seconds(until))
    };
    let path = directory.join(FILE);
    write(&path, Visibility::Public, revoked.0.iter().map(line).collect::<String>().as_bytes())?;
    Ok(path)
}

fn parse(line: &str) -> Option<(Identity, u64)> {
    let (identity, until) = line.split_once(char::is_whitespace)?;
    let (role, name) = identity.split_once('/')?;
    let identity = Identity::new(role.parse().ok()?, name).ok()?;
    let until = humantime::parse_rfc3339(until.trim()).ok()?;
    Some((identity, until.duration_since(UNIX_EPOCH).ok()?.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::super::names::Role;
    use super::*;

    fn named(role: Role, name: &str) -> Identity {
        Identity::new(role, name).unwrap()
    }

    fn facts(identity: Identity, from: i64) -> Facts {
        Facts {
            identity: Some(identity),
            addresses: Vec::new(),
            hosts: Vec::new(),
            serial: String::new(),
            from,
            until: i64::MAX,
            from_text: String::new(),
            until_text: String::new(),
        }
    }

    #[test]
    fn what_is_revoked_is_refused_up_to_its_time_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let (alice, bob) = (named(Role::Client, "alice"), named(Role::Client, "bob"));
        let none = Revoked::in_directory(directory.path()).unwrap();
        assert_eq!(none, Revoked::default());
        revoke(directory.path(), std::slice::from_ref(&bob), 500).unwrap();
        let alices = std::slice::from_ref(&alice);
        let path = revoke(directory.path(), alices, 1_001).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, "client/alice 1970-01-01T00:16:40Z\nclient/bob 1970-01-01T00:08:19Z\n");
        let revoked = Revoked::in_directory(directory.path()).unwrap();
        for (identity, from, expected) in [
            (&alice, 0, true),
            (&alice, 1_000, true),
            (&alice, 1_001, false),
            (&bob, 1_000, false),
            (&named(Role::Admin, "alice"), 0, false),
        ] {
            let it = facts(identity.clone(), from);
            assert_eq!(revoked.covers(&it), expected, "{identity} from {from}");
        }
    }

    #[test]
    fn a_list_may_be_written_by_hand_and_is_refused_where_it_is_not_understood() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE);
        fs::write(&path, "# gone\n\nnode/3\t2026-11-30T12:00:00Z  # sold\n").unwrap();
        let revoked = Revoked::load(&path).unwrap();
        assert_eq!(revoked.until(&named(Role::Node, "3")), Some(1_796_040_000));
        for line in ["node/3", "node 3 2026-11-30T12:00:00Z", "nobody/3 2026-11-30T12:00:00Z"] {
            fs::write(&path, line).unwrap();
            let said = Revoked::load(&path).unwrap_err().to_string();
            assert!(said.contains("line 1") && said.contains("client/alice"), "{said}");
        }
    }
}
