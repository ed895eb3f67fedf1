//! What clients may do.

use crate::driver::ClassRights;
use crate::identity::{Identity, Role};
use envelope::{Allowed, PassNumber};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// `[[security.rights]]`
///
/// Whose it is names a class of rights. The controllers give the class a number for good, wherever
/// the section stands.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RightsSection {
    /// Whose, as in a certificate: `client/reports`, or `client/*` for all of a role. The first
    /// that fits counts.
    pub identity: String,
    /// Keyspaces that may be read; `*` for all.
    #[serde(default)]
    pub read: Vec<String>,
    /// Keyspaces in which keys may be written and deleted. Commands that tell what was there need
    /// both.
    #[serde(default)]
    pub write: Vec<String>,
    /// Keyspaces that may be scanned.
    #[serde(default)]
    pub scan: Vec<String>,
    /// Of a gateway: clients in whose name it may ask as well, by their rights.
    #[serde(default)]
    pub acts_for: Vec<String>,
}

/// All keyspaces, or all names of a role.
const ALL: &str = "*";

impl RightsSection {
    pub(super) fn class(&self) -> ClassRights {
        let Self { read, write, scan, .. } = self;
        let has = |list: &[String], name: &str| list.iter().any(|it| it == name || it == ALL);
        let allowed = |name: &str| Allowed {
            read: has(read, name),
            write: has(write, name),
            scan: has(scan, name),
        };
        let named = [read, write, scan].into_iter().flatten().filter(|name| *name != ALL);
        let keyspaces: BTreeMap<String, Allowed> =
            named.map(|name| (name.clone(), allowed(name))).collect();
        ClassRights { whose: self.identity.clone(), elsewhere: allowed(ALL), keyspaces }
    }

    /// What is wrong with it, if anything.
    pub(super) fn problem(&self) -> Option<String> {
        let Self { identity, acts_for, .. } = self;
        let role = role_of(identity);
        if !matches!(role, Some(Role::Client | Role::Gateway | Role::Admin)) {
            return Some(format!(
                "identity {identity:?} in [[security.rights]] is nobody who reads and writes keys: \
                 name one as client/NAME, gateway/NAME or admin/NAME, or all of a role as client/*"
            ));
        }
        if role != Some(Role::Gateway) && !acts_for.is_empty() {
            return Some(format!(
                "{identity} in [[security.rights]]: only gateways act for others"
            ));
        }
        let whom = acts_for.iter().find(|whom| role_of(whom) != Some(Role::Client))?;
        Some(format!(
            "{identity} in [[security.rights]] cannot act for {whom:?}: name a client as \
             client/NAME, or all of them as client/*"
        ))
    }
}

/// The role of whoever this names, or of all of whom it does.
fn role_of(identity: &str) -> Option<Role> {
    let (role, name) = identity.split_once('/')?;
    let is_name = name == ALL || Identity::new(Role::Client, name).is_ok();
    role.parse().ok().filter(|_| is_name)
}

/// Whether this names somebody, or all of that role.
fn fits(named: &str, identity: &Identity) -> bool {
    let of_role = || format!("{}/{ALL}", identity.role);
    named == identity.to_string() || named == of_role()
}

/// The most sections there can be: passes have room for as many classes.
pub(super) const RIGHTS_MAX: usize = PassNumber::CLASSES as usize - 1;

/// Who is of which class of rights: the first section that fits names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Classes(pub(super) Arc<[RightsSection]>);

impl Classes {
    /// The class of this one; none if nothing is said of it, and it may do everything.
    #[must_use]
    pub fn of(&self, identity: &Identity) -> Option<String> {
        self.section(identity).map(|it| it.identity.clone())
    }

    fn section(&self, identity: &Identity) -> Option<&RightsSection> {
        self.0.iter().find(|it| fits(&it.identity, identity))
    }

    /// Whether a gateway may ask in the name of a client. One of which nothing is said may do
    /// everything, and so this as well.
    #[must_use]
    pub fn may_act(&self, gateway: &Identity, client: &Identity) -> bool {
        let may = |section: &RightsSection| section.acts_for.iter().any(|it| fits(it, client));
        gateway.role == Role::Gateway
            && client.role == Role::Client
            && self.section(gateway).is_none_or(may)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(identity: &str, [read, write, scan]: [&[&str]; 3]) -> RightsSection {
        let list = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
        let (read, write, scan) = (list(read), list(write), list(scan));
        RightsSection { identity: identity.to_owned(), read, write, scan, acts_for: Vec::new() }
    }

    #[test]
    fn rights_are_given_by_keyspace_or_everywhere() {
        let class = section("client/a", [&["*"], &["logs"], &["users", "logs"]]).class();
        let allowed = |read, write, scan| Allowed { read, write, scan };
        assert_eq!(class.elsewhere, allowed(true, false, false));
        assert_eq!(class.keyspaces["logs"], allowed(true, true, true));
        assert_eq!(class.keyspaces["users"], allowed(true, false, true));
        assert_eq!(class.keyspaces.len(), 2);
    }

    #[test]
    fn the_first_that_fits_is_ones_class() {
        let names = ["client/a", "client/*", "gateway/*"];
        let classes = Classes(Arc::from(names.map(|it| section(it, [&[]; 3]))));
        let class = |role, name| classes.of(&Identity::new(role, name).unwrap());
        assert_eq!(class(Role::Client, "a").as_deref(), Some("client/a"));
        assert_eq!(class(Role::Client, "b").as_deref(), Some("client/*"));
        assert_eq!(class(Role::Gateway, "a").as_deref(), Some("gateway/*"));
        assert_eq!(class(Role::Admin, "a"), None);
    }

    #[test]
    fn a_gateway_acts_for_whom_its_section_names() {
        let acting = |identity, whom: &[&str]| RightsSection {
            acts_for: whom.iter().map(|it| (*it).to_owned()).collect(),
            ..section(identity, [&[]; 3])
        };
        let sections = [
            acting("gateway/1", &["client/a", "client/b"]),
            acting("gateway/2", &["client/*"]),
            acting("gateway/3", &[]),
        ];
        assert!(sections.iter().all(|it| it.problem().is_none()));
        let classes = Classes(Arc::from(sections));
        let may = |role, name, whom, client| {
            let identity = |role, name| Identity::new(role, name).unwrap();
            classes.may_act(&identity(role, name), &identity(whom, client))
        };
        let (gateway, client) = (Role::Gateway, Role::Client);
        let of_a = ["1", "2", "3", "4"].map(|name| may(gateway, name, client, "a"));
        assert_eq!(of_a, [true, true, false, true], "nothing is said of the fourth");
        let of_c = ["1", "2", "3", "4"].map(|name| may(gateway, name, client, "c"));
        assert_eq!(of_c, [false, true, false, true]);
        assert!(!may(gateway, "4", Role::Admin, "a") && !may(client, "a", client, "b"));
        for wrong in [acting("client/a", &["client/b"]), acting("gateway/1", &["admin/*", "a"])] {
            assert!(wrong.problem().is_some(), "{wrong:?}");
        }
    }

    #[test]
    fn nobody_but_who_reads_and_writes_has_rights() {
        for identity in ["client/a", "gateway/*", "admin/alice"] {
            assert_eq!(section(identity, [&[]; 3]).problem(), None);
        }
        for identity in ["", "a", "client", "client/", "client/a b", "node/3", "*/a", "client/a*"] {
            assert!(section(identity, [&[]; 3]).problem().is_some(), "{identity}");
        }
    }
}
