//! Which coherence directory a pipeline uses. Nothing else asks.

use crate::directory::View;
use crate::pass::Pass;
use crate::{ClockReading, CoherenceDirectory, HotRead, RuleTable, WriteRoute};
use cluster::{KeyspaceId, Match, NodeId};
use wire::{DropReason, Endpoint, HEADER_LEN, Op};

/// The directory that a pipeline uses: the one that it shares with others, or that of the switch
/// which it is behind.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Coherence<'p> {
    Shared(&'p View),
    Behind(&'p dyn CoherenceDirectory),
}

impl<'p> Coherence<'p> {
    /// The one that the pipeline is behind, if it is, else the one that it shares.
    #[inline]
    pub(crate) fn of(shared: &'p View, behind: Option<&'p dyn CoherenceDirectory>) -> Self {
        behind.map_or(Self::Shared(shared), Self::Behind)
    }
}

impl CoherenceDirectory for Coherence<'_> {
    #[inline]
    fn clock(&self) -> ClockReading {
        match self {
            Self::Shared(it) => it.clock(),
            Self::Behind(it) => it.clock(),
        }
    }

    fn note(
        &self,
        pass: &mut Pass<'_>,
        (op, sender): (Op, NodeId),
        header: &[u8; HEADER_LEN],
    ) -> Result<(), DropReason> {
        match self {
            Self::Shared(it) => it.note(pass, (op, sender), header),
            Self::Behind(it) => it.note(pass, (op, sender), header),
        }
    }

    #[inline]
    fn select_replica(
        &self,
        pass: &mut Pass<'_>,
        key: (KeyspaceId, u64),
        at: Match,
        at_home: bool,
    ) -> Option<HotRead> {
        match self {
            Self::Shared(it) => it.select_replica(pass, key, at, at_home),
            Self::Behind(it) => it.select_replica(pass, key, at, at_home),
        }
    }

    #[inline]
    fn count_write(&self, pass: &mut Pass<'_>, header: &[u8; HEADER_LEN]) {
        match self {
            Self::Shared(it) => it.count_write(pass, header),
            Self::Behind(it) => it.count_write(pass, header),
        }
    }

    #[inline]
    fn delegates(&self) -> bool {
        match self {
            Self::Shared(it) => it.delegates(),
            Self::Behind(it) => it.delegates(),
        }
    }

    fn delegate(
        &self,
        pass: &mut Pass<'_>,
        header: &mut [u8; HEADER_LEN],
        home: Option<Endpoint>,
    ) -> Result<WriteRoute, DropReason> {
        match self {
            Self::Shared(it) => it.delegate(pass, header, home),
            Self::Behind(it) => it.delegate(pass, header, home),
        }
    }

    #[inline]
    fn cache_rules(&self) -> &RuleTable {
        match self {
            Self::Shared(it) => it.cache_rules(),
            Self::Behind(it) => it.cache_rules(),
        }
    }
}
