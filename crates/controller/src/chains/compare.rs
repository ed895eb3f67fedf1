//! Who of a closed chain holds what was acknowledged: pure functions of what its nodes say.
//!
//! Members that have settled in one epoch hold the same. One that does not has come back with less
//! than it had acknowledged: an older copy of its store, or one whose end is missing. It is found
//! here, before the chain opens, and by nothing but what it holds.

use cluster::{MaybeMutant, Mutant, NodeId, Partition, Returned, Settled};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use wire::Version;

/// What came of comparing the nodes of a closed chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Those that do not hold what the chain holds, in its order.
    pub(crate) behind: Vec<NodeId>,
    /// One of those that can be sent what it lacks: all after this version.
    pub(crate) resumes: Option<(NodeId, Version)>,
    /// Whether a key is delegated, so that the chain does not hold all of its writes.
    pub(crate) delegated: bool,
}

/// How far what a member holds is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Trust {
    /// Its store does not remember the incarnation that it was known by: not at all by itself.
    None,
    /// It has begun another incarnation, and what was synced in the one before is there.
    Remembers,
    /// It has been in the chain all the time.
    Stayed,
}

/// Compares the members of a chain, and its learner if that has caught up, which all have settled.
/// `None` if nobody who is left can be believed: an operator has to decide.
pub(crate) fn compare(
    partition: &Partition,
    settled: &BTreeMap<NodeId, Settled>,
    caught_up: bool,
    mutant: MaybeMutant,
) -> Option<Comparison> {
    // Above the last version that there can be nobody could write. Who says to have it has a
    // damaged store, and is the newest only where all say so.
    let believes_all = mutant.is(Mutant::BelieveLastVersion);
    let can_go_on = |newest: Version| newest < Version::MAX || believes_all;
    let of = |node: NodeId| settled.get(&node).copied().unwrap_or_default();
    // Who has not gone through what it was made of cannot be told by what it holds from the others.
    let counted = partition.members().iter().all(|node| of(*node).digest.is_some());
    let held = |node: NodeId| {
        let Settled { newest, history, digest, .. } = of(node);
        (newest, history, digest.filter(|_| counted).unwrap_or_default())
    };
    let known = partition.members().iter().all(|node| of(*node).writes.is_some());
    let counts = known && !mutant.is(Mutant::UncountedWrites);
    let mut groups: BTreeMap<(Version, u64, u64), Vec<NodeId>> = BTreeMap::new();
    for member in partition.members() {
        groups.entry(held(*member)).or_default().push(*member);
    }
    // Of those that have begun another incarnation it is who has committed the most. Where that is
    // not known it is the newest: who is older was put back. Of two that were told the same newest
    // version it is who had more for certain.
    let rank = |((newest, ..), members): &(&(Version, u64, u64), &Vec<NodeId>)| {
        let trust = members.iter().map(|node| trust(partition, *node)).max();
        let base = members.iter().map(|node| of(*node).base.unwrap_or(Version::ABOVE_ALL)).max();
        let writes = members.iter().filter_map(|node| of(*node).writes).max().filter(|_| counts);
        let first = Reverse(members.first().copied());
        (can_go_on(*newest), trust, writes, *newest, base, members.len(), first)
    };
    let (right, agree) = groups.iter().max_by_key(rank)?;
    if agree.iter().all(|node| trust(partition, *node) == Trust::None) {
        return None;
    }
    let learner = partition.learner().filter(|_| caught_up);
    let compared = partition.members().iter().copied().chain(learner);
    let behind: Vec<NodeId> = compared.filter(|node| held(*node) != *right).collect();
    // A tombstone that is collected is sent to nobody, so whoever lacks one of those lacks more
    // than can be sent. Who is wrong after it was sent what it lacked holds what nobody knows of.
    let collected = agree.iter().map(|node| of(*node).collected).max().unwrap_or(Version::NONE);
    let again = |node: NodeId| partition.resumes.is_some() && partition.learner() == Some(node);
    let can_resume = |node: NodeId| {
        let base = of(node).base.filter(|base| *base >= collected && !again(node));
        base.filter(|_| can_go_on(of(node).newest))
    };
    let taken = partition.learner().is_some() && learner.is_none();
    let resumes = behind.iter().find_map(|node| Some((*node, can_resume(*node)?)));
    let delegated = agree.iter().any(|node| of(*node).delegated);
    Some(Comparison { resumes: resumes.filter(|_| !taken), behind, delegated })
}

fn trust(partition: &Partition, node: NodeId) -> Trust {
    match partition.returned.iter().find(|it| it.node == node) {
        None => Trust::Stayed,
        Some(Returned { remembers: true, .. }) => Trust::Remembers,
        Some(Returned { remembers: false, .. }) => Trust::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cluster::Epoch;
    use wire::Revision;

    /// A chain of nodes 1 to 3, who has returned of them (and whether that remembers), and what
    /// each holds: newest version, digest, base.
    fn case(
        returned: &[(u16, bool)],
        held: [(u64, u64, Option<u64>); 3],
    ) -> (Partition, BTreeMap<NodeId, Settled>) {
        let returned = returned.iter();
        let returned = returned.map(|(id, remembers)| Returned {
            node: NodeId(*id),
            remembers: *remembers,
            left: false,
        });
        let partition = Partition {
            epoch: Epoch(5),
            chain: [1, 2, 3].map(NodeId).to_vec(),
            since: vec![Revision::new(1); 3],
            returned: returned.collect(),
            ..Partition::default()
        };
        let settled = (1..).zip(held).map(|(id, (newest, digest, base))| {
            (
                NodeId(id),
                Settled {
                    newest: Version::new(newest),
                    digest: Some(digest),
                    base: base.map(Version::new),
                    collected: Version::new(40),
                    ..Settled::default()
                },
            )
        });
        (partition, settled.collect())
    }

    fn judge(
        partition: &Partition,
        settled: &BTreeMap<NodeId, Settled>,
        caught_up: bool,
    ) -> Option<Comparison> {
        compare(partition, settled, caught_up, MaybeMutant::default())
    }

    fn behind(returned: &[(u16, bool)], held: [(u64, u64, Option<u64>); 3]) -> Option<Vec<u16>> {
        let (partition, settled) = case(returned, held);
        let comparison = judge(&partition, &settled, false)?;
        Some(comparison.behind.iter().map(|node| node.0).collect())
    }

    const SAME: (u64, u64, Option<u64>) = (105, 7, None);

    #[test]
    fn those_that_hold_the_same_are_all_members() {
        assert_eq!(behind(&[], [SAME; 3]), Some(vec![]));
        assert_eq!(behind(&[(1, true), (2, false)], [SAME; 3]), Some(vec![]));
    }

    #[test]
    fn who_stayed_is_right_about_who_came_back() {
        let old = (60, 3, Some(50));
        assert_eq!(behind(&[(2, true)], [SAME, old, SAME]), Some(vec![2]));
        // Were there two that came back with the same old store, or one that knows too much.
        assert_eq!(behind(&[(2, true), (3, true)], [SAME, old, old]), Some(vec![2, 3]));
        assert_eq!(behind(&[(2, true)], [SAME, (200, 9, Some(99)), SAME]), Some(vec![2]));
    }

    #[test]
    fn of_those_that_all_came_back_the_newest_is_right() {
        let all = [(1, true), (2, true), (3, true)];
        assert_eq!(behind(&all, [SAME, (60, 3, Some(50)), (60, 3, Some(50))]), Some(vec![2, 3]));
        // Told the newest version by the others, two have the same hole.
        let (full, hole) = ((105, 7, Some(103)), (105, 8, Some(50)));
        assert_eq!(behind(&all, [full, hole, hole]), Some(vec![2, 3]));
    }

    /// Both came back, and each took from the other what was pending there. The first lacks two
    /// writes that the second had committed.
    #[test]
    fn of_those_that_all_came_back_who_has_committed_the_most_is_right() {
        let all = [(1, true), (2, true), (3, true)];
        let hole = (20, 8, Some(15));
        let (partition, mut settled) = case(&all, [hole, (20, 9, Some(15)), hole]);
        let mut counted = |writes: [Option<u64>; 3]| {
            for (settled, writes) in settled.values_mut().zip(writes) {
                settled.writes = writes;
            }
            judge(&partition, &settled, false).unwrap().behind
        };
        assert_eq!(counted([Some(16), Some(18), Some(16)]), [1, 3].map(NodeId));
        assert_eq!(counted([Some(18), Some(16), Some(18)]), [NodeId(2)]);
        assert_eq!(counted([Some(16), None, Some(16)]), [NodeId(2)], "who does not count may be");
    }

    #[test]
    fn a_newest_version_that_cannot_be_is_no_reason_to_believe_anybody() {
        let end = (Version::MAX.get(), 9, Some(100));
        let all = [(1, true), (2, true), (3, true)];
        assert_eq!(behind(&all, [SAME, end, SAME]), Some(vec![2]));
        assert_eq!(behind(&all, [end, SAME, end]), Some(vec![1, 3]), "however many there are");
        assert_eq!(behind(&[(1, true), (3, true)], [SAME, end, SAME]), Some(vec![2]));
        assert_eq!(behind(&all, [end; 3]), Some(vec![]), "there is nobody else");
        let (partition, settled) = case(&all, [SAME, end, SAME]);
        let found = judge(&partition, &settled, false).unwrap();
        assert_eq!(found.resumes, None, "it would keep that number");
    }

    #[test]
    fn who_does_not_remember_is_believed_only_with_another() {
        let all = [(1, false), (2, false), (3, false)];
        assert_eq!(behind(&all, [SAME; 3]), None);
        let some = [(1, false), (2, false), (3, true)];
        let old = (60, 3, Some(50));
        assert_eq!(behind(&some, [SAME, SAME, old]), Some(vec![1, 2]));
    }

    #[test]
    fn who_is_behind_is_sent_what_it_lacks_if_no_lost_deletion_is_among_it() {
        for (base, resumes) in
            [(50, Some((NodeId(2), 50))), (40, Some((NodeId(2), 40))), (39, None)]
        {
            let (partition, settled) = case(&[(2, true)], [SAME, (60, 3, Some(base)), SAME]);
            let found = judge(&partition, &settled, false).unwrap();
            assert_eq!(found.resumes, resumes.map(|(node, base)| (node, Version::new(base))));
        }
        let (partition, settled) = case(&[(2, true)], [SAME, (60, 3, None), SAME]);
        assert_eq!(judge(&partition, &settled, false).unwrap().resumes, None);
    }

    #[test]
    fn a_learner_is_compared_when_it_has_caught_up_and_never_right_against_the_members() {
        let (partition, settled) = case(&[], [SAME, SAME, (300, 9, None)]);
        let partition = Partition { has_learner: true, ..partition };
        assert_eq!(judge(&partition, &settled, false), Some(Comparison::default()));
        assert_eq!(judge(&partition, &settled, true).unwrap().behind, [NodeId(3)]);
    }
}
