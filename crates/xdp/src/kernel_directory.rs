//! The directory in the kernel as the sockets behind the program see it.

use crate::hot::Bits;
use crate::layout::Rule;
use crate::maps;
use crate::program::{Error, PASS, Program, TX};
use cluster::{KeyspaceId, Match, NodeId};
use libbpf_rs::MapHandle;
use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use switch::{ClockReading, CoherenceDirectory, HotRead, Pass, RuleTable, SharedClock, WriteRoute};
use wire::{
    DirectoryClock, DropReason, Endpoint, Fields as _, HEADER_LEN, Header, HomeWrite, HotGet, Op,
    Version, flag, hop_flag,
};

/// Has the kernel take note of replies that come to a socket of the switch and not to the program,
/// and grant writes of delegated keys. Every version that the switch lets through is counted, and
/// every grant given, in one place, whichever way a packet goes.
///
/// It is a program of its own on the maps of the attached one, which may be replaced meanwhile.
#[derive(Debug)]
pub struct KernelDirectory {
    program: Program,
    rule: MapHandle,
    bits: Arc<Bits>,
    clock: Arc<SharedClock>,
    delegates: Arc<AtomicBool>,
    cache_rules: Arc<RuleTable>,
}

impl KernelDirectory {
    pub(crate) fn new(
        of: &Program,
        service: SocketAddrV4,
        (bits, clock, delegates): (Arc<Bits>, Arc<SharedClock>, Arc<AtomicBool>),
        cache_rules: Arc<RuleTable>,
    ) -> Result<Self, Error> {
        let program = Program::load(service, Some(of))?;
        let rule = program.map(".data.rule");
        Ok(Self { rule, program, bits, clock, delegates, cache_rules })
    }

    /// The switch's clock: delegations that begin in the kernel raise it there.
    fn present(&self) -> Result<DirectoryClock, Error> {
        let rule = Rule::from_bytes(&maps::one(&self.rule)?);
        Ok(rule.map_or(DirectoryClock::NONE, |rule| rule.directory_clock))
    }

    /// Has the kernel take note of what a reply says of a key; says whether it may be sent on.
    #[must_use]
    pub fn note(&self, header: &[u8; HEADER_LEN]) -> bool {
        if !self.bits.has(header.keyhash()) {
            return true;
        }
        match self.program.run("note", header, 0, 1) {
            Ok(verdict) => verdict.action == PASS,
            Err(why) => {
                tracing::error!(%why, "a reply for a hot key was not noted, and is dropped");
                false
            }
        }
    }

    /// What becomes of a write that may be delegated, whose header says when it was first sent: if
    /// it is, it is stamped with all but the partition. It is counted.
    ///
    /// # Errors
    ///
    /// The reason for which it is to be dropped.
    pub fn delegate(&self, header: &mut [u8; HEADER_LEN]) -> Result<WriteRoute, DropReason> {
        let verdict = match self.program.run("delegate", header, 0, 1) {
            Ok(verdict) => verdict,
            Err(why) => {
                tracing::error!(%why, "a write was not looked for among the grants: dropped");
                return Err(DropReason::Contended);
            }
        };
        let given = verdict.frame.first_chunk::<HEADER_LEN>().ok_or(DropReason::Contended)?;
        match verdict.action {
            PASS => Ok(WriteRoute::Home {
                version: HomeWrite::read(given).granted,
                crowded: given.hop_flags() & hop_flag::CROWDED != 0,
            }),
            TX => {
                *header = *given;
                Ok(WriteRoute::Delegated)
            }
            _ => Err(DropReason::from_wire(given.code()).unwrap_or(DropReason::Contended)),
        }
    }
}

impl CoherenceDirectory for KernelDirectory {
    fn clock(&self) -> ClockReading {
        let present = self.present().unwrap_or_else(|why| {
            tracing::error!(%why, "the kernel does not say how far delegations are");
            DirectoryClock::NONE
        });
        // In this order: whoever sees the clock of an order sees the beginning that it
        // made.
        ClockReading { present, beginning: self.clock.now().beginning }
    }

    fn note(
        &self,
        _: &mut Pass<'_>,
        _: (Op, NodeId),
        header: &[u8; HEADER_LEN],
    ) -> Result<(), DropReason> {
        if Self::note(self, header) { Ok(()) } else { Err(DropReason::Contended) }
    }

    fn select_replica(
        &self,
        _: &mut Pass<'_>,
        (keyspace, keyhash): (KeyspaceId, u64),
        at: Match,
        at_home: bool,
    ) -> Option<HotRead> {
        if !self.bits.has(keyhash) {
            return None;
        }
        let flags = if at_home { flag::AT_HOME } else { 0 };
        let (keyspace, match_value) = (keyspace.0, at.0);
        let asked = Header { keyspace, keyhash, match_value, flags, ..Header::default() };
        let mut header = [0; HEADER_LEN];
        asked.write(&mut header);
        let verdict = self.program.run("spread", &header, 0, 1).inspect_err(|why| {
            tracing::error!(%why, "a read of a hot key goes to its tail");
        });
        let verdict = verdict.ok().filter(|verdict| verdict.action == TX)?;
        let given = verdict.frame.first_chunk::<HEADER_LEN>()?;
        let [high, low, ..] = given.chain();
        let reader = (given.chain_len() != 0).then(|| NodeId(u16::from_be_bytes([high, low])));
        let HotGet { floor, generation } = HotGet::read(given);
        let floor = Some(floor).filter(|floor| *floor != Version::ABOVE_ALL);
        Some(HotRead { generation, floor, reader })
    }

    /// The programs count writes of hot keys.
    fn count_write(&self, _: &mut Pass<'_>, _: &[u8; HEADER_LEN]) {}

    fn delegates(&self) -> bool {
        self.delegates.load(Ordering::SeqCst)
    }

    fn delegate(
        &self,
        _: &mut Pass<'_>,
        header: &mut [u8; HEADER_LEN],
        _: Option<Endpoint>,
    ) -> Result<WriteRoute, DropReason> {
        Self::delegate(self, header)
    }

    fn cache_rules(&self) -> &RuleTable {
        &self.cache_rules
    }
}
