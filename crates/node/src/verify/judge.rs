//! What members of a chain hold of one key, and which of them is certainly right.

use wire::Version;

/// What a member holds of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) version: Version,
    pub(crate) expiry_ms: u64,
    pub(crate) tombstone: bool,
    /// Of the value.
    pub(crate) hash: u64,
}

/// What a member says of a key, and what one has to know of the member to judge it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// `None`: it holds nothing, not even the mark of a deletion.
    pub(crate) state: Option<State>,
    /// The newest version of any tombstone that it has collected: with nothing held of the key, it
    /// may have collected the deletion of whatever is not newer.
    pub(crate) collected: Version,
    /// The newest version that it has seen of the partition.
    pub(crate) newest: Version,
    /// Up to this version everything is committed on every member, as far as it knows.
    pub(crate) stable: Version,
    /// Of a part of a big value: the version of what it holds under the key of the value, which
    /// says whether the part belongs to anything.
    pub(crate) owner: Version,
}

/// What to think of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All show the same to clients.
    Same,
    /// Somebody has a write that others may not have yet. To be looked at again.
    Moving,
    /// They differ, and the state of the member in this place is the right one for those in the
    /// others.
    Certain { right: usize, wrong: Vec<usize> },
    /// They differ, and it is not certain who is right.
    Uncertain,
}

/// Rules that are broken on purpose, for the simulator to notice.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Broken {
    pub(crate) ignores_deletes: bool,
    pub(crate) mends_minority: bool,
}

/// Judges a key by what all members say. Everything up to the version `stable` was committed on
/// all of them before any of them was asked.
pub(crate) fn judge(views: &[View], stable: Version, broken: Broken) -> Verdict {
    let value = |view: &View| view.state.filter(|state| !state.tombstone);
    let same = |a: &View, b: &View| value(a) == value(b);
    let Some(first) = views.first() else { return Verdict::Same };
    let counts = |view: &&View| !broken.ignores_deletes || value(view).is_some();
    if views
        .iter()
        .filter(counts)
        .all(|view| same(view, views.iter().find(counts).unwrap_or(first)))
    {
        return Verdict::Same;
    }
    let newest_seen = newest_seen(views);
    let version = |view: &View| view.state.map(|state| state.version);
    let plausible = |view: &View| version(view).filter(|version| *version <= newest_seen);
    let newest = views.iter().filter_map(plausible).max().unwrap_or(Version::NONE);
    let owners = views.iter().map(|view| view.owner).filter(|version| *version <= newest_seen);
    if newest > stable || owners.max().is_some_and(|owner| owner > stable) {
        return Verdict::Moving;
    }
    let agree = |view: &View| views.iter().filter(|other| same(view, other)).count();
    let wrong_beside = |right: &View| {
        let differs = |(_, view): &(usize, &View)| !same(view, right);
        views.iter().enumerate().filter(differs).map(|(place, _)| place).collect()
    };
    let majority = |view: &&View| agree(view) * 2 > views.len();
    if let Some(most) = views.iter().find(majority) {
        if broken.mends_minority {
            let few = views.iter().position(|view| !same(view, most)).unwrap_or(0);
            let wrong = wrong_beside(views.get(few).unwrap_or(most));
            return Verdict::Certain { right: few, wrong };
        }
        let others = || views.iter().filter(|view| !same(view, most));
        let holds = |view: &&View| same(view, most);
        // Of those that show no value one with the mark of the deletion says most.
        let in_place = |(_, view): &(usize, &View)| holds(view);
        let right = views.iter().enumerate().filter(in_place).max_by_key(|(_, it)| version(it));
        let (right, newest_of_most) = match right {
            Some((place, view)) => (place, version(view)),
            None => return Verdict::Uncertain,
        };
        let outdated = |view: &View| match (plausible(view), newest_of_most) {
            // Never given out, or older, or the same write with other bytes.
            (None, _) => true,
            (Some(theirs), Some(ours)) => theirs <= ours,
            // Each of the majority may have collected the deletion.
            (Some(theirs), None) => views.iter().filter(holds).all(|it| it.collected >= theirs),
        };
        if others().all(outdated) {
            return Verdict::Certain { right, wrong: wrong_beside(most) };
        }
    }
    lacks(views, newest).unwrap_or(Verdict::Uncertain)
}

/// Nobody gives out a version that none of the members has seen.
fn newest_seen(views: &[View]) -> Version {
    views.iter().map(|view| view.newest).max().unwrap_or(Version::NONE)
}

/// How many hold a version that nobody has given out.
pub(crate) fn absurd(views: &[View]) -> u64 {
    let most = newest_seen(views);
    let absurd = |view: &&View| view.state.is_some_and(|state| state.version > most);
    views.iter().filter(absurd).count() as u64
}

/// A value that was committed everywhere, and of which some hold nothing: neither a mark of its
/// deletion, nor can they have collected one. They lack it, unless they are more than those who
/// have it: that one may as well be a key that nobody wrote.
fn lacks(views: &[View], newest: Version) -> Option<Verdict> {
    let has = |view: &View| view.state.is_some_and(|it| !it.tombstone && it.version == newest);
    let right = views.iter().position(has)?;
    let state = views.get(right)?.state;
    let lost = |view: &View| view.state.is_none() && view.collected < newest;
    let wrong: Vec<usize> =
        (0..views.len()).filter(|at| views.get(*at).is_some_and(lost)).collect();
    let all = views.iter().all(|view| view.state == state || lost(view));
    let few = !wrong.is_empty() && wrong.len() * 2 <= views.len();
    (all && few).then_some(Verdict::Certain { right, wrong })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: Broken = Broken { ignores_deletes: false, mends_minority: false };

    fn value(version: u64, hash: u64) -> View {
        let state = State { version: Version::new(version), expiry_ms: 0, tombstone: false, hash };
        View { state: Some(state), newest: Version::new(20), ..View::default() }
    }

    fn deleted(version: u64) -> View {
        let state =
            State { version: Version::new(version), expiry_ms: 9, tombstone: true, hash: 0 };
        View { state: Some(state), ..value(version, 0) }
    }

    fn nothing(collected: u64) -> View {
        View {
            state: None,
            collected: Version::new(collected),
            newest: Version::new(20),
            ..View::default()
        }
    }

    fn certain(right: usize, wrong: &[usize]) -> Verdict {
        Verdict::Certain { right, wrong: wrong.to_vec() }
    }

    #[test]
    fn what_clients_cannot_tell_apart_is_the_same() {
        for views in [
            [value(3, 1), value(3, 1), value(3, 1)],
            [deleted(3), nothing(9), nothing(0)],
            [nothing(0), nothing(0), nothing(5)],
        ] {
            assert_eq!(judge(&views, Version::new(10), SOUND), Verdict::Same, "{views:?}");
        }
    }

    #[test]
    fn a_write_under_way_is_waited_for() {
        for views in [
            [value(3, 1), value(3, 1), value(11, 2)],
            [nothing(0), nothing(0), value(11, 2)],
            [value(3, 1), value(3, 1), deleted(11)],
            // A part of a value that some have replaced already.
            [value(3, 1), View { owner: Version::new(11), ..nothing(0) }, value(3, 1)],
        ] {
            assert_eq!(judge(&views, Version::new(10), SOUND), Verdict::Moving, "{views:?}");
        }
    }

    #[test]
    fn two_of_three_are_right_unless_the_third_knows_of_something_newer() {
        let judge = |views: [View; 3]| judge(&views, Version::new(10), SOUND);
        // Rot, a stale value, a lost one, one that came back from the dead, a forged version.
        assert_eq!(judge([value(3, 1), value(3, 2), value(3, 1)]), certain(2, &[1]));
        assert_eq!(judge([value(2, 9), value(3, 1), value(3, 1)]), certain(2, &[0]));
        assert_eq!(judge([value(3, 1), nothing(9), value(3, 1)]), certain(2, &[1]));
        assert_eq!(judge([deleted(5), value(3, 1), nothing(5)]), certain(0, &[1]));
        assert_eq!(judge([nothing(5), value(3, 1), nothing(5)]), certain(2, &[1]));
        assert_eq!(judge([value(u64::MAX, 1), value(3, 1), value(3, 1)]), certain(2, &[0]));
        // Two lost what the third has, or the third is from another time.
        assert_eq!(judge([value(5, 1), value(3, 1), value(3, 1)]), Verdict::Uncertain);
        assert_eq!(judge([deleted(5), value(3, 1), value(3, 1)]), Verdict::Uncertain);
        assert_eq!(judge([nothing(9), value(3, 1), nothing(2)]), Verdict::Uncertain);
        assert_eq!(judge([value(5, 1), value(4, 1), value(3, 1)]), Verdict::Uncertain);
    }

    #[test]
    fn who_cannot_have_deleted_a_committed_value_has_lost_it() {
        assert_eq!(judge(&[nothing(2), value(3, 1)], Version::new(10), SOUND), certain(1, &[0]));
        assert_eq!(judge(&[nothing(3), value(3, 1)], Version::new(10), SOUND), Verdict::Uncertain);
        let views = [nothing(2), value(3, 1), nothing(0)];
        assert_eq!(
            judge(&views, Version::new(10), SOUND),
            Verdict::Uncertain,
            "or it is a key of nobody's"
        );
    }

    #[test]
    fn of_two_that_hold_different_things_neither_is_certainly_right() {
        for other in [value(3, 2), value(4, 1), deleted(4), deleted(2)] {
            assert_eq!(
                judge(&[value(3, 1), other], Version::new(10), SOUND),
                Verdict::Uncertain,
                "{other:?}"
            );
        }
    }

    #[test]
    fn the_mutants_change_the_verdict() {
        let back = [deleted(5), value(3, 1), deleted(5)];
        assert_eq!(judge(&back, Version::new(10), SOUND), certain(2, &[1]));
        let broken = Broken { ignores_deletes: true, ..SOUND };
        assert_eq!(judge(&back, Version::new(10), broken), Verdict::Same);
        let broken = Broken { mends_minority: true, ..SOUND };
        assert_eq!(judge(&back, Version::new(10), broken), certain(1, &[0, 2]));
    }
}
