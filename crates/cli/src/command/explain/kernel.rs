//! What the program in the kernel says, beside what the tables made from the map say.

use cluster::NodeId;
use console::answer::Answer;
use runtime::driver::InKernel;
use std::net::SocketAddr;
use switch::Explanation;
use wire::{DropReason, Endpoint, Revision};
use xdp::Fate;

/// Both, for one match value.
#[derive(Debug)]
pub(super) struct Comparison<'a> {
    model: &'a Explanation,
    said: &'a InKernel,
    /// Of the map that the model was made from.
    revision: Revision,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(model: &'a Explanation, said: &'a InKernel, revision: Revision) -> Self {
        Self { model, said, revision }
    }

    /// Whether reads and writes go the same way.
    pub(super) fn agrees(&self) -> bool {
        self.read_agrees() && self.write_agrees()
    }

    fn read_agrees(&self) -> bool {
        let said = &self.said.read;
        // A learner stands behind the tail, which therefore is not always the last; the address
        // says which one it is.
        let alone = |chain: &[NodeId]| {
            chain.len() == 1 && chain.iter().all(|id| self.model.chain.contains(id))
        };
        self.goes_to(self.model.read, said) && self.grants(said, alone)
    }

    fn write_agrees(&self) -> bool {
        let said = &self.said.write;
        self.goes_to(self.model.write, said) && self.grants(said, |it| it == self.model.chain)
    }

    fn goes_to(&self, wanted: Option<Endpoint>, said: &Fate) -> bool {
        match said {
            Fate::Sent { to, .. } => wanted.map(SocketAddr::from) == Some(SocketAddr::V4(*to)),
            Fate::Dropped { reason } => wanted.is_none() && reason == DropReason::NoNode.name(),
            // The switch's socket gets it, and does what the model does.
            Fate::Left => true,
            Fate::Lost => false,
        }
    }

    fn grants(&self, said: &Fate, chain_is_right: impl Fn(&[NodeId]) -> bool) -> bool {
        let Fate::Sent { partition, epoch, chain, .. } = said else { return true };
        (*partition, *epoch) == (self.model.partition, self.model.epoch) && chain_is_right(chain)
    }

    pub(super) fn add_to(&self, answer: Answer) -> Answer {
        answer.with("in_kernel", self.said).with("in_kernel_agrees", self.agrees())
    }

    pub(super) fn text(&self) -> String {
        let agrees = |agrees| if agrees { "" } else { "  ← NOT WHAT THE MAP SAYS" };
        let mut lines = vec![
            ("in the kernel", format!("revision {}", self.said.revision)),
            ("  reads", words(&self.said.read) + agrees(self.read_agrees())),
            ("  writes", words(&self.said.write) + agrees(self.write_agrees())),
        ];
        if self.said.revision != self.revision {
            let behind = "the map has changed in between, or the switch was not reached: ask again";
            let note = format!("the controller has revision {}: {behind}", self.revision);
            lines.push(("", note));
        }
        lines.iter().map(|(name, what)| format!("{name:<20} {what}\n")).collect()
    }
}

/// What becomes of it, for people.
fn words(fate: &Fate) -> String {
    match fate {
        Fate::Sent { to, port, partition, epoch, chain } => {
            let ids: Vec<String> = chain.iter().map(ToString::to_string).collect();
            let ids = ids.join(", ");
            format!(
                "to {to} through {port}; stamped: partition {partition}, epoch {epoch}, chain {ids}"
            )
        }
        Fate::Dropped { reason } => format!("dropped: {reason}"),
        Fate::Left => "left to the switch's socket: no way to the node is known".to_owned(),
        Fate::Lost => "lost: the way to the node leads through none of the ports".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::{Epoch, Match, PartitionId};

    fn model() -> Explanation {
        let at = |text: &str| Some(Endpoint::from(text.parse::<SocketAddr>().unwrap()));
        Explanation {
            partition: PartitionId(7),
            first: Match::MIN,
            last: Match::MAX,
            epoch: Epoch(3),
            chain: vec![NodeId(1), NodeId(2), NodeId(3)],
            read: at("10.0.0.3:7801"),
            write: at("10.0.0.1:7801"),
        }
    }

    fn sent(to: &str, epoch: u32, chain: &[u16]) -> Fate {
        Fate::Sent {
            to: to.parse().unwrap(),
            port: "p".into(),
            partition: PartitionId(7),
            epoch: Epoch(epoch),
            chain: chain.iter().map(|id| NodeId(*id)).collect(),
        }
    }

    fn said() -> InKernel {
        let read = sent("10.0.0.3:7801", 3, &[3]);
        InKernel { revision: Revision::new(9), read, write: sent("10.0.0.1:7801", 3, &[1, 2, 3]) }
    }

    fn agrees(model: &Explanation, said: &InKernel) -> bool {
        Comparison::new(model, said, Revision::new(9)).agrees()
    }

    #[test]
    fn the_same_way_agrees_and_one_left_to_the_socket_as_well() {
        assert!(agrees(&model(), &said()));
        assert!(agrees(&model(), &InKernel { read: Fate::Left, ..said() }));
        let text = Comparison::new(&model(), &said(), Revision::new(9)).text();
        assert!(text.contains("to 10.0.0.1:7801 through p") && !text.contains("NOT"), "{text}");
        assert!(!text.contains("ask again"), "{text}");
    }

    #[test]
    fn a_tail_with_a_learner_behind_it_is_stamped_alone() {
        let tail = "10.0.0.2:7801";
        let to: SocketAddr = tail.parse().unwrap();
        let joined = Explanation { read: Some(to.into()), ..model() };
        assert!(agrees(&joined, &InKernel { read: sent(tail, 3, &[2]), ..said() }));
        for chain in [&[4][..], &[2, 3]] {
            assert!(!agrees(&joined, &InKernel { read: sent(tail, 3, chain), ..said() }));
        }
    }

    #[test]
    fn another_node_epoch_chain_or_fate_does_not_agree() {
        let wrong = [
            sent("10.0.0.2:7801", 3, &[1, 2, 3]),
            sent("10.0.0.1:7801", 2, &[1, 2, 3]),
            sent("10.0.0.1:7801", 3, &[1, 3]),
            Fate::Dropped { reason: DropReason::NoLease.name().into() },
            Fate::Lost,
        ];
        for write in wrong {
            let said = InKernel { write, ..said() };
            assert!(!agrees(&model(), &said), "{said:?}");
            let text = Comparison::new(&model(), &said, Revision::new(10)).text();
            assert!(text.contains("NOT WHAT THE MAP SAYS") && text.contains("ask again"), "{text}");
        }
    }

    #[test]
    fn dropping_agrees_only_where_the_map_lacks_the_node() {
        let read = Fate::Dropped { reason: DropReason::NoNode.name().into() };
        let said = InKernel { read, ..said() };
        assert!(!agrees(&model(), &said));
        assert!(agrees(&Explanation { read: None, ..model() }, &said));
    }
}
