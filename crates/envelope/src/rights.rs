//! What a client may do.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wire::Op;

/// What may be done in a keyspace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Allowed {
    /// GET and MGET.
    pub read: bool,
    /// PUT and DEL; with `read` also CAS, INCR and BATCH, which tell what was there.
    pub write: bool,
    /// RANGE.
    pub scan: bool,
}

impl Allowed {
    /// Everything.
    pub const ALL: Self = Self { read: true, write: true, scan: true };

    /// Whether this request may be made. Whoever knows a keyspace's name may look it up, and a
    /// client's last word changes nothing of others'.
    fn has(self, op: Op) -> bool {
        match op {
            Op::Get | Op::Mget => self.read,
            Op::Range => self.scan,
            Op::Put | Op::Del => self.write,
            Op::Cas | Op::Incr | Op::Batch => self.read && self.write,
            _ => true,
        }
    }
}

/// What the clients of a class may do, in all keyspaces or in some.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rights {
    /// In keyspaces that are not named.
    #[serde(default)]
    pub elsewhere: Allowed,
    /// By the keyspace's id.
    #[serde(default)]
    pub keyspaces: BTreeMap<u16, Allowed>,
}

impl Rights {
    /// Whether an operation is within them.
    #[must_use]
    pub fn allow(&self, op: Op, keyspace: u16) -> bool {
        self.keyspaces.get(&keyspace).unwrap_or(&self.elsewhere).has(op)
    }
}

/// The rights of each class of clients, from class 1 on. A pass has the number of its class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RightsTable(pub Vec<Rights>);

impl RightsTable {
    /// The class of clients that may do everything. It is no part of a table.
    pub const ALL_RIGHTS: u16 = 0;

    /// Gives a class these rights. Those below it that have none may nothing.
    pub fn set(&mut self, class: u16, rights: Rights) {
        let Some(at) = usize::from(class).checked_sub(1) else { return };
        if self.0.len() <= at {
            self.0.resize(at + 1, Rights::default());
        }
        if let Some(place) = self.0.get_mut(at) {
            *place = rights;
        }
    }

    /// Whether clients of this class may do that. Those of a class that is not known may nothing.
    #[must_use]
    pub fn allow(&self, class: u16, op: Op, keyspace: u16) -> bool {
        match usize::from(class).checked_sub(1) {
            None => true,
            Some(at) => self.0.get(at).is_some_and(|rights| rights.allow(op, keyspace)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_needs_its_rights_in_its_keyspace() {
        let read = Allowed { read: true, ..Allowed::default() };
        let write = Allowed { write: true, ..Allowed::default() };
        let rights = |elsewhere, keyspaces: &[(u16, Allowed)]| Rights {
            elsewhere,
            keyspaces: keyspaces.iter().copied().collect(),
        };
        let table = [rights(read, &[]), rights(read, &[(3, write)]), rights(Allowed::ALL, &[])];
        let table = RightsTable(table.into());
        let allowed = |class, keyspace| {
            let ops =
                [Op::Get, Op::Mget, Op::Range, Op::Put, Op::Del, Op::Cas, Op::Incr, Op::Batch];
            ops.map(|op| table.allow(class, op, keyspace))
        };
        let (yes, no) = (true, false);
        assert_eq!(allowed(0, 3), [yes; 8]);
        assert_eq!(allowed(1, 3), [yes, yes, no, no, no, no, no, no]);
        assert_eq!(allowed(2, 3), [no, no, no, yes, yes, no, no, no]);
        assert_eq!(allowed(2, 4), [yes, yes, no, no, no, no, no, no]);
        assert_eq!(allowed(3, 3), [yes; 8]);
        assert_eq!(allowed(4, 3), [no; 8]);
        assert!(table.allow(1, Op::Describe, 3) && table.allow(1, Op::Goodbye, 3));
        assert!(!table.allow(4, Op::Describe, 3));
    }
}
