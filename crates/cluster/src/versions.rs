//! Versions of what controllers and members say to each other.
//!
//! Orders and reports are JSON: fields may come at any time, and have a default for who does not
//! know them. The version goes up when that is not enough, for a field goes or means something
//! else. A build works with the version before its own, so that members are upgraded one by one.

use serde::{Deserialize, Serialize};

/// Version of orders and reports.
pub const ORDERS_VERSION: u16 = 1;

/// The oldest version of orders and reports that this build works with. 0 is that of builds that
/// said none.
pub const ORDERS_VERSION_MIN: u16 = 0;

/// Version of what the members of a chain do together. Since 1 they can send writes on before these
/// are on their disks, and unite what is pending in a closed chain. Since 2 they can make what they
/// hold of a partition of what they hold of others.
pub const CHAIN_VERSION: u16 = 2;

/// What a member speaks, as it says in each report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// The program's own version, for people.
    pub build: String,
    /// Version of packets.
    pub wire: u8,
    /// Newest version of orders and reports.
    pub orders: u16,
    /// Oldest version of these that it works with.
    pub orders_min: u16,
    /// Newest version of what members of a chain do together; 0 for builds that said none.
    #[serde(default)]
    pub chain: u16,
    /// Format of what it keeps in files of its own; 0 for who keeps nothing there.
    #[serde(default)]
    pub store: u32,
}

impl Versions {
    /// Those of this build.
    #[must_use]
    pub fn ours() -> Self {
        Self {
            build: env!("CARGO_PKG_VERSION").to_owned(),
            wire: wire::layout::VERSION,
            orders: ORDERS_VERSION,
            orders_min: ORDERS_VERSION_MIN,
            chain: CHAIN_VERSION,
            store: 0,
        }
    }

    /// Whether a member of a chain can send writes on before these are on its disk.
    #[must_use]
    pub fn sends_early(&self) -> bool {
        self.chain >= 1
    }

    /// Whether it can make what it holds of a partition of what it holds of others.
    #[must_use]
    pub fn splits(&self) -> bool {
        self.chain >= 2
    }

    /// Why who speaks these cannot be in one cluster with this build, with what to do about it. A
    /// member that says nothing of versions is of a build before there were any, which goes.
    #[must_use]
    pub fn conflict(&self) -> Option<String> {
        let ours = Self::ours();
        if *self == Self::default() {
            return None;
        }
        if self.wire != ours.wire {
            return Some(format!(
                "its packets have version {}, and those of this cluster have {}: {BETWEEN}",
                self.wire, ours.wire
            ));
        }
        if self.orders < ours.orders_min {
            return Some(format!(
                "it speaks version {} of orders, and this controller (version {} of keyway) speaks \
                 {} to {}: upgrade it to a version in between first",
                self.orders, ours.build, ours.orders_min, ours.orders
            ));
        }
        if self.orders_min > ours.orders {
            return Some(format!(
                "it speaks version {} of orders or newer, and this controller (version {} of \
                 keyway) speaks up to {}: upgrade the controllers first",
                self.orders_min, ours.build, ours.orders
            ));
        }
        None
    }

    /// The newest version of orders that both this build and who speaks these can.
    #[must_use]
    pub fn common_orders(&self) -> u16 {
        self.orders.min(ORDERS_VERSION)
    }
}

const BETWEEN: &str = "upgrade by a version of keyway that works with both, one process at a time";

#[cfg(test)]
mod tests {
    use super::*;

    fn speaks(orders_min: u16, orders: u16) -> Versions {
        Versions { orders_min, orders, ..Versions::ours() }
    }

    #[test]
    fn who_shares_a_version_goes_and_others_are_told_what_to_do() {
        assert_eq!(Versions::default().conflict(), None, "a build before there were versions");
        assert_eq!(Versions::ours().conflict(), None);
        assert_eq!(speaks(ORDERS_VERSION, ORDERS_VERSION + 1).conflict(), None, "the next one");
        let newer = speaks(ORDERS_VERSION + 1, ORDERS_VERSION + 2).conflict().expect("too new");
        assert!(newer.ends_with("upgrade the controllers first"), "{newer}");
        let other = Versions { wire: 9, ..Versions::ours() }.conflict().expect("other packets");
        assert!(other.contains("version 9"), "{other}");
    }

    #[test]
    fn what_all_can_is_used() {
        assert_eq!(speaks(0, ORDERS_VERSION + 1).common_orders(), ORDERS_VERSION);
        assert_eq!(Versions::default().common_orders(), 0);
    }
}
