//! What the user-space switch makes of the same datagrams.

use cluster::{Incarnation, SwitchControl as _};
use machine::{Instant, Outbox};
use switch::Pipeline;
use testkit::oracle::compare::before_tables;
use testkit::oracle::counts::Counts;
use testkit::oracle::model::Sent;
use wire::Endpoint;

/// A pipeline with a lease.
pub(crate) struct Reference {
    pub(crate) pipeline: Pipeline,
}

const NOW: Instant = Instant::from_unix_ms(1_000);

impl Reference {
    pub(crate) fn new() -> Self {
        let mut pipeline = Pipeline::new(Incarnation(1));
        pipeline.renew(NOW, &before_tables(Incarnation(1), NOW));
        Self { pipeline }
    }

    /// Takes a datagram and gives what it sends.
    pub(crate) fn process(&mut self, from: Endpoint, datagram: &[u8]) -> Vec<Sent> {
        let mut out = Outbox::default();
        // A drop is counted, and the counts are compared.
        let _ = self.pipeline.process(NOW, from, &mut datagram.to_vec(), &mut out);
        std::iter::from_fn(|| out.pop().map(|d| (d.to, d.payload.to_vec()))).collect()
    }

    pub(crate) fn counts(&self) -> Counts {
        Counts::of(self.pipeline.counters_ref(), self.pipeline.loads())
    }
}
