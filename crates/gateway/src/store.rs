//! What carries out commands about keys, with requests of the native client.

mod access;
mod atomic;
mod big;
mod dispatch;
mod errors;
mod expiry;
mod extended;
mod incoming;
mod integers;
mod keys;
mod limits;
mod looked;
mod many;
mod numbers;
mod ordered;
mod plan;
mod ranges;
mod room;
mod scan;
mod script;
mod settle;
mod strings;
mod terms;
mod times;
mod together;
mod turns;
mod view;

pub(crate) use incoming::Incoming;
pub(crate) use limits::can_be_set;
pub(crate) use plan::{KEYS_MAX, Plan, Settled};
pub(crate) use terms::{Seen, Sights};
pub(crate) use together::{Undone, is_wide};

use crate::acl::User;
use crate::cursors::Cursors;
use crate::hot::HotKeys;
use crate::script::Scripts;
use client::asynchronous::{Inbox, Space};
pub use room::Room;
use std::sync::Arc;
use times::ClusterClock;
use turns::Turns;
use view::View;
pub use view::{Queued, Ran, Watched};

/// Every database that there is, by number, with its keyspace: what one worker has of each.
pub(crate) type Spaces = Arc<[(u8, Space)]>;

/// One keyspace of a cluster, as the keys of a database of a Redis server. Clones share its client.
#[derive(Clone, Debug)]
pub struct Store {
    space: Space,
    /// The number of the database that these keys are, and all databases.
    database: u8,
    databases: Spaces,
    turns: Arc<Turns>,
    /// What the commands of a transaction have read and written so far, within one.
    view: Option<Arc<View>>,
    room: Room,
    hot: Option<HotKeys>,
    cursors: Arc<Cursors>,
    clock: Arc<ClusterClock>,
    scripts: Arc<Scripts>,
    /// Who runs scripts, if not everybody may do everything.
    user: Option<Arc<User>>,
}

impl Store {
    /// The keys of that keyspace, which is a hash keyspace.
    #[must_use]
    pub fn new(space: Space) -> Self {
        let room = Room::default();
        let (turns, cursors, clock) = (Arc::new(Turns::new()), Arc::default(), Arc::default());
        let (scripts, user) = (Arc::default(), None);
        let databases: Spaces = Arc::new([(0, space.clone())]);
        Self {
            space,
            database: 0,
            databases,
            turns,
            view: None,
            room,
            hot: None,
            cursors,
            clock,
            scripts,
            user,
        }
    }

    /// The same, as one database among these, which FLUSHALL is about.
    #[must_use]
    pub(crate) fn with_databases(self, database: u8, databases: Spaces) -> Self {
        Self { database, databases, ..self }
    }

    /// The number of the database that its keys are.
    pub(crate) fn database(&self) -> u8 {
        self.database
    }

    /// Where requests are begun, and their outcomes come, that have no future.
    pub(crate) fn inbox(&self) -> Inbox {
        Inbox::new(&self.space)
    }

    /// The same, which shares its room with others.
    #[must_use]
    pub fn with_room(self, room: Room) -> Self {
        Self { room, ..self }
    }

    /// The same, where OBJECT FREQ is answered if somebody knows the hot keys.
    #[must_use]
    pub fn with_hot(self, hot: Option<HotKeys>) -> Self {
        Self { hot, ..self }
    }

    /// The same, with numbers for SCAN that other stores of the gateway know, too.
    #[must_use]
    pub(crate) fn with_cursors(self, cursors: Arc<Cursors>) -> Self {
        Self { cursors, ..self }
    }

    /// The same, with scripts that other stores of the gateway know, too.
    #[must_use]
    pub(crate) fn with_scripts(self, scripts: Arc<Scripts>) -> Self {
        Self { scripts, ..self }
    }

    /// Whether it is this user's.
    pub(crate) fn is_of(&self, user: Option<&Arc<User>>) -> bool {
        match (&self.user, user) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }

    /// The same, whose scripts may do what this user may.
    #[must_use]
    pub(crate) fn with_user(self, user: Option<Arc<User>>) -> Self {
        Self { user, ..self }
    }
}
