//! The rules of caches: memory of the kernel, in which the program sees each change at once.
//!
//! What a rule is and where it lies only [`RuleTable`] says, as for a switch in user space.

use crate::layout::Heard;
use crate::link::Mapped;
use crate::plane::tick;
use crate::program::{Error, Program};
use cluster::CacheId;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use switch::{RULES_LAST, RuleBucket, RuleMemory, RuleTable};
use wire::{CACHE_FILTER_WORDS, CACHE_RULE_BUCKETS, CACHES_MAX, KEYSPACE_WORDS};

/// A table of rules in the memory that this program looks at.
pub(crate) fn rules(program: &Arc<Program>) -> Result<RuleTable, Error> {
    let mapped = Mapped::new(&program.map(".data.cached")).map_err(|why| Error::Kernel {
        what: "mapping the rules of caches".into(),
        why: why.into(),
    })?;
    Ok(RuleTable::lying_in(Box::new(InKernel { mapped, program: Arc::clone(program) })))
}

/// The value of the map `.data.cached`, as `bpf/lib/maps.h` has it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Cached {
    buckets: [RuleBucket; CACHE_RULE_BUCKETS],
    keyspaces: [AtomicU64; KEYSPACE_WORDS],
    filter: [AtomicU64; CACHE_FILTER_WORDS],
    /// The program's.
    _until: [AtomicU64; CACHES_MAX],
}

/// Memory that the program looks at, and the program, which has the clock.
#[derive(Debug)]
struct InKernel {
    mapped: Mapped,
    program: Arc<Program>,
}

impl RuleMemory for InKernel {
    fn buckets(&self) -> &[RuleBucket] {
        &self.mapped.value().buckets
    }

    fn keyspaces(&self) -> &[AtomicU64] {
        &self.mapped.value().keyspaces
    }

    fn filter(&self) -> &[AtomicU64] {
        &self.mapped.value().filter
    }

    fn heard(&self, cache: CacheId) {
        let lasts = u32::try_from(RULES_LAST.as_nanos()).expect("less than four seconds");
        let ticks = lasts.checked_div(tick()).unwrap_or(0);
        if let Err(why) = self.program.heard(&Heard { cache: cache.0.into(), ticks }) {
            tracing::error!(%why, "the in-kernel switch was not told that a cache was heard");
        }
    }
}
