//! The coherence directory that the pipelines of a switch share, as one of them uses it.

use crate::directory::View;
use crate::grants::Grants;
use crate::pass::Pass;
use crate::{ClockReading, CoherenceDirectory, HotRead, RuleTable, WriteRoute, observe};
use cluster::{KeyspaceId, Match, Mutant, NodeId};
use wire::{DropReason, Endpoint, Fields as _, HEADER_LEN, Op};

impl CoherenceDirectory for View {
    #[inline]
    fn clock(&self) -> ClockReading {
        self.directory().clock()
    }

    fn note(
        &self,
        pass: &mut Pass<'_>,
        (op, sender): (Op, NodeId),
        header: &[u8; HEADER_LEN],
    ) -> Result<(), DropReason> {
        let known = observe::from_reply(self.table(), op, sender, header, pass.mutant);
        pass.counters.count_doubted(u64::from(!known));
        if op == Op::PutReply && !self.table().is_empty() {
            self.observe_put(pass, sender, header);
        }
        Ok(())
    }

    // Left to itself the compiler calls it, which costs a hot read a tenth of its instructions.
    #[inline(always)]
    fn select_replica(
        &self,
        pass: &mut Pass<'_>,
        key: (KeyspaceId, u64),
        at: Match,
        at_home: bool,
    ) -> Option<HotRead> {
        let row = pass.row(key, at)?;
        let selected = pass.select(row, at_home);
        pass.counters.count_hot_read(row.counter.into(), selected.is_some());
        let (reader, floor) = match selected {
            Some(it) => (Some(it.node), Some(it.floor)),
            None => (None, row.floor_at_home()),
        };
        Some(HotRead { generation: row.entry.generation(), floor, reader })
    }

    #[inline]
    fn count_write(&self, pass: &mut Pass<'_>, header: &[u8; HEADER_LEN]) {
        if let Some(row) = pass.row_of(header) {
            pass.counters.count_hot_write(row.counter.into());
        }
        let grants = self.directory().grants();
        if header.op() == Op::Goodbye as u8 && grants.any() {
            end(grants, pass, header.client());
        }
    }

    #[inline]
    fn delegates(&self) -> bool {
        self.table().delegates() || self.directory().grants().any()
    }

    fn delegate(
        &self,
        pass: &mut Pass<'_>,
        header: &mut [u8; HEADER_LEN],
        home: Option<Endpoint>,
    ) -> Result<WriteRoute, DropReason> {
        self.delegate_or_not(pass, header, home)
    }

    #[inline]
    fn cache_rules(&self) -> &RuleTable {
        self.directory().cache_rules()
    }
}

/// A client has said goodbye.
fn end(grants: &Grants, pass: &Pass<'_>, client: u64) {
    if pass.mutant.is(Mutant::GoodbyeForgetsGrants) {
        return grants.forget(client);
    }
    let another = pass.mutant.is(Mutant::GoodbyeEndsAnother);
    let ended = another.then(|| grants.other_than(client)).flatten().unwrap_or(client);
    grants.end(pass.now, ended);
}
