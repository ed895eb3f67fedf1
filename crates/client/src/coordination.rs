//! Who coordinates: finds the nodes that a request is for. The switch does, perhaps with hints from
//! the client; or (to compare with) the client itself, or a coordinator.
//!
//! Whoever is not the switch goes by a map, which may be old. A node that is asked for what it does
//! not have in that epoch says so, and one that is asked past the switch for a hot key says that
//! only the switch knows. Both are asked again by the service address, behind which the newest map
//! is: the former until there is another map, the latter for good.

mod routes;

pub use routes::Routes;
pub(crate) use routes::{Home, Tail, header_of, stamp_address, stamp_read, unstamp};

use std::sync::Arc;
use wire::Endpoint;

/// Who coordinates.
#[derive(Clone, Debug, Default)]
pub enum Coordination {
    /// The switch sends each node what it is for.
    #[default]
    Switch,
    /// The switch too, but of multigets the client sorts keys by node and says where each node's
    /// end: a switch that cannot loop over keys goes by that. What it says may be old or wrong:
    /// that costs time, and no answer.
    Assisted(Arc<Routes>),
    /// The client: it sends each node what it is for, past the switch, and is answered past it.
    Client(Arc<Routes>),
    /// [`Coordinator`](crate::Coordinator)s at these addresses, at least one, which are asked in
    /// turn.
    Coordinators(Arc<[Endpoint]>),
}

impl Coordination {
    /// The map that the client goes by.
    pub(crate) fn directory(&self) -> Option<&Arc<Routes>> {
        match self {
            Self::Switch | Self::Coordinators(_) => None,
            Self::Assisted(directory) | Self::Client(directory) => Some(directory),
        }
    }

    /// Goes by the map of another one of its kind from now on.
    pub(crate) fn follow(&mut self, other: &Self) {
        match (self, other) {
            (Self::Assisted(mine), Self::Assisted(new))
            | (Self::Client(mine), Self::Client(new)) => {
                *mine = Arc::clone(new);
            }
            _ => {}
        }
    }
}

/// Which of these is asked under a number, of which so many copies have left.
pub(crate) fn turn_of(coordinators: &[Endpoint], seq: u64, copies: u32) -> Option<Endpoint> {
    let turn = machine::mix(seq).wrapping_add(u64::from(copies));
    let place = turn.checked_rem(coordinators.len() as u64)?;
    coordinators.get(usize::try_from(place).ok()?).copied()
}
