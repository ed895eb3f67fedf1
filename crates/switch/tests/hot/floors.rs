//! What holds of floors and holders, whatever comes.

use crate::rack::{
    INCARNATION, KEYHASH, KEYSPACE, NOTHING, Says, TAIL, at, copied, endpoint, get, get_at_home,
    lease, mget, new, order, prove, reply, tables, warm,
};
use cluster::{Mutant, NodeId, Selection, SwitchControl as _};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use switch::{Directory, HotExplanation, Pipeline, explain_hot};
use wire::{Code, DropReason, Generation, Header, Op, Revision, Version};

#[derive(Clone, Copy, Debug)]
enum Step {
    Get,
    GetAtHome,
    Mget,
    Proof {
        op: usize,
        version: u64,
        own: bool,
    },
    Shown {
        op: usize,
        version: u64,
    },
    Undecided {
        version: u64,
    },
    NotHere {
        op: usize,
        reader: u16,
        own: bool,
    },
    /// The home of a delegated key has nothing that is new enough, but proves what it has.
    Delegated {
        version: u64,
    },
    Copied {
        reader: u16,
        version: u64,
    },
    AllCopied,
    Order {
        other_generation: bool,
    },
}

fn any_step() -> impl Strategy<Value = Step> {
    let version =
        || prop_oneof![3 => 0u64..20, 1 => 250u64..280, 1 => 0..=wire::VERSION_MAX as u64];
    prop_oneof![
        4 => Just(Step::Get),
        1 => Just(Step::GetAtHome),
        2 => Just(Step::Mget),
        1 => (0usize..2, version(), any::<bool>())
            .prop_map(|(op, version, own)| Step::Proof { op, version, own }),
        1 => (0usize..6, version()).prop_map(|(op, version)| Step::Shown { op, version }),
        1 => version().prop_map(|version| Step::Undecided { version }),
        1 => (0usize..2, any::<u16>(), any::<bool>())
            .prop_map(|(op, reader, own)| Step::NotHere { op, reader, own }),
        1 => version().prop_map(|version| Step::Delegated { version }),
        2 => (any::<u16>(), version())
            .prop_map(|(reader, version)| Step::Copied { reader, version }),
        1 => Just(Step::AllCopied),
        1 => prop_oneof![3 => Just(false), 1 => Just(true)]
            .prop_map(|other_generation| Step::Order { other_generation }),
    ]
}

const SHOW: [Op; 6] =
    [Op::GetReply, Op::PutReply, Op::DelReply, Op::CasReply, Op::IncrReply, Op::HotPublish];

/// Those that say what a GET is told, or would be.
const SAY: [Op; 2] = [Op::GetReply, Op::HotPublish];

/// What is to be expected.
#[derive(Default)]
struct Known {
    /// Highest version that was let through in this generation, which is the floor.
    shown: u64,
    proven: bool,
    /// What each reader last said to hold.
    held: BTreeMap<u16, u64>,
}

struct Play {
    pipeline: Pipeline,
    readers: u16,
    selection: Selection,
    revision: u64,
    generation: u64,
    known: Known,
}

impl Play {
    fn step(&mut self, step: Step) {
        let pipeline = &mut self.pipeline;
        let reader = |drawn: u16| 1 + drawn % self.readers;
        match step {
            Step::Get => {
                let stamped = get(pipeline, at(0));
                assert_eq!((stamped.hot, stamped.generation), (true, self.generation));
                let spread = stamped.node != TAIL;
                assert_eq!(stamped.floor, if spread { self.known.shown } else { u64::MAX });
                self.answers(stamped.node, stamped.node != TAIL);
            }
            Step::GetAtHome => {
                let stamped = get_at_home(pipeline, at(0));
                assert_eq!((stamped.node, stamped.generation), (TAIL, self.generation));
                assert_eq!(stamped.floor, u64::MAX);
            }
            Step::Mget => {
                let (node, floor) = mget(pipeline, at(0));
                assert!(floor.is_none_or(|floor| floor == self.known.shown));
                self.answers(node, floor.is_some());
            }
            Step::Proof { op, version, own } => {
                let generation = if own { self.generation } else { self.generation + 1 };
                let op = SAY[op];
                reply(pipeline, at(0), Says { op, generation, version, newest: true, ..NOTHING });
                self.known.shown = self.known.shown.max(version);
                self.known.proven |= own;
            }
            Step::Shown { op, version } => {
                reply(pipeline, at(0), Says { op: SHOW[op], version, ..NOTHING });
                self.known.shown = self.known.shown.max(version);
            }
            Step::Undecided { version } => {
                let code = Code::Expiring;
                reply(pipeline, at(0), Says { op: Op::GetReply, code, version, ..NOTHING });
            }
            Step::NotHere { op, reader: drawn, own } => {
                let (op, node, code) = (SAY[op], reader(drawn), Code::NotHere);
                let generation = if own { self.generation } else { self.generation + 1 };
                reply(pipeline, at(0), Says { op, node, code, generation, ..NOTHING });
                if own {
                    self.known.held.remove(&node);
                }
            }
            Step::Delegated { version } => self.prove_from_delegated(version),
            Step::Copied { reader: drawn, version } => {
                copied(pipeline, reader(drawn), version);
                if version >= self.known.shown {
                    self.known.held.insert(reader(drawn), version);
                }
            }
            Step::AllCopied => {
                for node in 1..=self.readers {
                    copied(pipeline, node, self.known.shown);
                    self.known.held.insert(node, self.known.shown);
                }
            }
            Step::Order { other_generation } => {
                self.revision += 1;
                if other_generation {
                    (self.generation, self.known) = (self.revision, Known::default());
                }
                let order = order(self.revision, self.generation, self.readers, self.selection);
                pipeline.install_hot(&order).unwrap();
                assert_eq!(pipeline.hot_revision(), Revision::new(self.revision));
            }
        }
    }

    fn prove_from_delegated(&mut self, version: u64) {
        let (code, generation) = (Code::NotHere, self.generation);
        let says = Says { op: Op::GetReply, code, version, generation, newest: true, ..NOTHING };
        reply(&mut self.pipeline, at(0), says);
        self.known.shown = self.known.shown.max(version);
        self.known.proven = true;
    }

    /// This node may answer.
    fn answers(&self, node: u16, from_copy: bool) {
        let floor_mark = self.known.shown % 255;
        let holds = |node: u16| self.known.held.get(&node).map(|held| held % 255);
        if from_copy {
            assert!(self.known.proven, "no proof, no copy");
            assert_eq!(holds(node), Some(floor_mark), "only whoever holds the floor");
        } else {
            assert_eq!(node, TAIL);
            let everybody = (1..=self.readers).all(|node| holds(node) == Some(floor_mark));
            assert!(!self.known.proven || !everybody, "the tail gets what others can answer");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn floors_never_fall_and_cover_what_was_shown(
        readers in 1u16..=64, selection in 0usize..3, steps in vec(any_step(), 1..120),
    ) {
        let selections = [Selection::Random, Selection::Reported, Selection::Predicted];
        let selection = selections[selection];
        let pipeline = new(readers, selection);
        let known = Known::default();
        let mut play = Play { pipeline, readers, selection, revision: 1, generation: 1, known };
        for step in steps {
            play.step(step);
        }
    }
}

/// A warm key of two readers at a switch with this bug, perhaps.
fn with_mutant(mutant: Option<Mutant>) -> Pipeline {
    let mut pipeline = new(2, Selection::Random);
    if let Some(mutant) = mutant {
        pipeline.mutant(mutant);
    }
    warm(&mut pipeline, 2, 7);
    assert_ne!(get(&mut pipeline, at(0)).node, TAIL);
    pipeline
}

#[test]
fn a_switch_without_a_lease_for_an_instant_forgets() {
    for (mutant, kept) in [(None, false), (Some(Mutant::KeepDirectory), true)] {
        let mut pipeline = with_mutant(mutant);
        let end = at(3_600_000_000);
        pipeline.renew(end, &lease(end, 1_000));
        assert_eq!(get(&mut pipeline, end).hot, kept);
        assert_eq!((pipeline.hot_revision(), pipeline.counters().hot_revision), {
            let revision = Revision::new(kept.into());
            (revision, revision)
        });
        assert_eq!(pipeline.counters().hot.len(), usize::from(kept));
    }
}

#[test]
fn a_switch_whose_lease_goes_on_forgets_nothing() {
    let mut pipeline = with_mutant(None);
    let late = at(3_599_999_999);
    pipeline.renew(late, &lease(late, 1_000));
    assert_ne!(get(&mut pipeline, late).node, TAIL);
}

#[test]
fn a_switch_that_stands_by_forgets() {
    for (mutant, kept) in [(None, false), (Some(Mutant::KeepDirectory), true)] {
        let mut pipeline = with_mutant(mutant);
        let mut standby = tables(2, 3, &[TAIL]);
        standby.active = false;
        pipeline.install(&standby).unwrap();
        pipeline.install_hot(&order(2, 2, 2, Selection::Random)).unwrap();
        pipeline.install(&tables(3, 3, &[TAIL])).unwrap();
        assert_eq!(get(&mut pipeline, at(0)).hot, kept);
        assert_eq!(
            pipeline.hot_revision(),
            Revision::new(u64::from(kept)),
            "nor does it take an order"
        );
    }
}

#[test]
fn a_switch_that_stands_by_passes_no_replies_on() {
    let reply = Header { op: Op::PutReply as u8, node: 1, reply_port: 1, ..Header::default() };
    let mut bytes = Vec::new();
    wire::emit(&mut bytes, &reply, &[]);
    let mut pipeline = with_mutant(None);
    let mut process = |tables: cluster::SwitchTables| {
        pipeline.install(&tables).unwrap();
        let mut out = machine::Outbox::default();
        pipeline.process(at(0), endpoint(1), &mut bytes.clone(), &mut out)
    };
    let standby = cluster::SwitchTables { active: false, ..tables(2, 3, &[TAIL]) };
    assert_eq!(process(standby), Err(DropReason::Standby));
    assert_eq!(process(tables(3, 3, &[TAIL])), Ok(()));
}

#[test]
fn mutants_break_what_they_say() {
    let late_proof = |mutant| {
        let mut pipeline = with_mutant(mutant);
        pipeline.install_hot(&order(2, 2, 2, Selection::Random)).unwrap();
        prove(&mut pipeline, 1, 7);
        copied(&mut pipeline, 1, 7);
        copied(&mut pipeline, 2, 7);
        get(&mut pipeline, at(0)).node
    };
    assert_eq!(late_proof(None), TAIL);
    assert_ne!(late_proof(Some(Mutant::BelieveAnyProof)), TAIL);
    let node_after_write = |mutant| {
        let mut pipeline = with_mutant(mutant);
        reply(&mut pipeline, at(0), Says { version: 8, ..NOTHING });
        get(&mut pipeline, at(0)).node
    };
    assert_eq!(node_after_write(None), TAIL, "nobody else has 8");
    assert_ne!(node_after_write(Some(Mutant::FloorFromReads)), TAIL);
}

#[test]
fn explain_says_what_the_directory_knows() {
    let directory = Arc::new(Directory::new(INCARNATION));
    let mut pipeline = Pipeline::sharing(INCARNATION, directory.clone());
    crate::rack::started(&mut pipeline, 3, Selection::Random);
    prove(&mut pipeline, 1, 7);
    copied(&mut pipeline, 2, 7);
    copied(&mut pipeline, 3, 6);
    let wanted = HotExplanation {
        delegation: None,
        generation: Generation::new(1),
        floor: Version::new(7),
        proven: true,
        readers: vec![(NodeId(1), false), (NodeId(2), true), (NodeId(3), false)],
    };
    assert_eq!(explain_hot(&directory, KEYSPACE, KEYHASH), Some(wanted));
    assert_eq!(explain_hot(&directory, KEYSPACE, 1), None);
}
