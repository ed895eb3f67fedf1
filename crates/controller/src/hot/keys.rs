//! The hot keys: which come in, which go, and what is known of each.

use super::caches::{Copied, WhyCopied};
use super::delegations::{Delegated, DelegationInputs, Delegations};
use super::fit::{Fit, has_lasted};
use super::load::{ENOUGH, Gauge, RateCount, Ratio, WINDOW_MAX, per_second};
use super::log::{HotAction, HotEffect, HotLog};
use super::places::Places;
use super::policy::{Asked, COLD_AFTER, Known, Policy, Rates, named};
use super::seen::ChoiceInputs;
use cluster::{HotCount, HotEntry, HotKey, KeyName, KeyspaceId, Match, MaybeMutant, Mutant};
use machine::Instant;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::{Generation, Revision};

/// Keys that one order takes in at most, beside pinned ones: their copies are all made at once, and
/// each takes a write of its chain for its mark.
pub(crate) const NEW_PER_ORDER: usize = 64;

/// Where there is no room, a key comes in that is asked for so many times as often as another.
const HOTTER: u64 = 2;

/// The rate of writes is taken over so much time at most once it is known: of a few writes per
/// second, those of one second say too little for a ratio.
const WRITES_WINDOW_MAX: Duration = Duration::from_secs(4);

/// One hot key.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    keyhash: u64,
    /// Where it lies.
    at: Match,
    /// Number of its present generation.
    generation: Generation,
    /// ReaderPlace of the first of its readers.
    first: u16,
    /// How many nodes are to hold copies.
    pub(crate) readers: u64,
    /// When it became hot.
    pub(crate) since: Instant,
    /// What was asked of it then.
    pub(crate) before: Rates,
    /// What is asked of it.
    pub(crate) rates: Rates,
    /// Reads per second that go to copies.
    pub(crate) spread: u64,
    /// Whether as many have copies as would pay.
    fit: Fit,
    /// Whether an operator wanted it at the last look.
    pinned: bool,
    /// Since when it has been too cold to stay.
    cold_since: Option<Instant>,
    /// Why it is copied and not held by a cache.
    pub(crate) copied: Copied,
    /// What the switch counts of it, and its writes that only nodes count.
    counted: Option<Counted>,
    /// Writes that no switch can count.
    steps: RateCount,
    /// Whether `rates` are of what the switch counts: exact, while each node tells of its hottest
    /// keys only.
    exact: bool,
    /// Its reads and the ratio to its writes, once these have been counted long enough.
    together: Option<Asked>,
    delegations: Delegations,
    /// Number of the last decision about it, if there was one.
    decision: Option<u64>,
}

/// What a switch counts of a key.
#[derive(Clone, Copy, Debug)]
struct Counted {
    reads: Gauge,
    writes: Gauge,
    ratio: Ratio,
    /// Reads that had gone to copies, and writes, when the rate of reads was last taken.
    spread: u64,
    written: u64,
}

impl Key {
    /// The delegation that it is under.
    pub(crate) fn delegated(&self) -> Option<&Delegated> {
        self.delegations.delegated()
    }

    /// As many readers as pay; none for a key that is here for its writes alone and waits for a
    /// delegation: copies would be more work for its home, which has too much already.
    fn readers(&self, seen: &ChoiceInputs<'_>, name: &KeyName) -> u64 {
        let policy = seen.policy;
        let none = if self.readers == 0 {
            !policy.is_hot(self.rates)
        } else {
            policy.is_cold(self.rates) && !seen.is_cold(name, self.rates)
        };
        if none && !self.pinned {
            return 0;
        }
        policy.readers(self.asked(policy), self.readers)
    }

    /// How many nodes are to hold copies; and which, or under a delegation may be written to, by
    /// their ids.
    pub(crate) fn copies(&self, places: &Places) -> (u64, String) {
        let all = self.delegated().map(|_| places.nodes());
        let many = all.unwrap_or_else(|| usize::try_from(self.readers).unwrap_or(usize::MAX));
        (self.readers, places.named(self.first, many))
    }

    /// Why so many nodes are to hold copies from now on.
    fn why(&self, policy: Policy, readers: u64) -> String {
        let (before, asked) = (self.readers, self.asked(policy));
        match asked.per_write {
            _ if readers == 0 => format!("{before} before; it is here for its writes alone"),
            u64::MAX => format!("{before} before; it is not written"),
            reads => {
                let pays = policy.pays(asked);
                format!("{before} before; {reads} reads for each write pay {pays}")
            }
        }
    }

    /// Notes a decision about it, which has so many copies there from now on.
    fn note(
        &mut self,
        now: Instant,
        name: &KeyName,
        did: (HotAction, String),
        copies: (u64, String),
        log: &mut HotLog,
    ) {
        self.decision = Some(log.note(now, name, did, self.rates, copies, self.decision));
    }

    /// Notes that it is hot no longer, and so under no delegation.
    fn note_end(&mut self, now: Instant, name: &KeyName, why: String, log: &mut HotLog) {
        let nowhere = || (0, String::new());
        if self.delegations.end() {
            self.note(now, name, (HotAction::DelegationEnded, why.clone()), nowhere(), log);
        }
        self.note(now, name, (HotAction::Removed, why), nowhere(), log);
    }

    fn known(&self) -> Known {
        Known { pinned: self.pinned, counted: self.together.is_some() }
    }

    /// What its copies are made by, with as many writes as there may be: of a key that is read 20
    /// times and written once a second no write is seen in every third second, and copies on all
    /// nodes would cost more than its reads. One that an operator has pinned may be asked for much
    /// more soon.
    ///
    /// And with as many reads as there were in the same time, or are now if that is more.
    fn asked(&self, policy: Policy) -> Asked {
        let Rates { reads, writes } = self.rates;
        match self.together {
            None => policy.asked_at_first(self.rates),
            Some(it) if self.pinned => Rates { reads: reads.max(it.reads), writes }.into(),
            Some(it) if reads <= it.reads => it,
            Some(it) => {
                let more = it.per_write.saturating_mul(reads) / it.reads.max(1);
                Asked { reads, per_write: more }
            }
        }
    }

    /// Sees to it that it is delegated if it is to be.
    fn travel(
        &mut self,
        seen: &ChoiceInputs<'_>,
        name: &KeyName,
        [home_only, missed]: [u64; 2],
        log: &mut HotLog,
    ) {
        let (now, policy) = (seen.now, seen.policy);
        let replicas = seen.delegated(name).map(|keyspace| keyspace.replicas);
        // Of none that may be delegated, nothing is worth a delegation.
        let known = self.known();
        let worth = |worth: fn(Policy, Rates, u8, Known) -> bool| {
            replicas.is_some_and(|replicas| worth(policy, self.rates, replicas, known))
        };
        let outlook = DelegationInputs {
            now,
            revision: seen.revision,
            replicas,
            places: seen.places,
            informed: &seen.informed,
            holders: policy.holders(self.asked(policy), self.delegations.holders()),
            rates_known: known.counted,
            worth: [worth(Policy::is_worth_delegation), worth(Policy::keeps_delegation)],
            from: policy.delegation_from(self.pinned),
            home_only,
            missed,
            reads: self.rates.reads,
            keeps_delegations: seen.mutant.is(Mutant::KeepDelegationAfterLoss),
        };
        for did in self.delegations.look(&outlook).into_iter().flatten() {
            let copies = self.copies(seen.places);
            self.note(now, name, did, copies, log);
        }
    }
}

/// All hot keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    keys: BTreeMap<KeyName, Key>,
}

impl Keys {
    pub(crate) fn get(&self, name: &KeyName) -> Option<&Key> {
        self.keys.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&KeyName, &Key)> {
        self.keys.iter()
    }

    /// A new generation begins for each: the directory knows nothing of the one before. So all
    /// delegations end.
    pub(crate) fn renew(
        &mut self,
        now: Instant,
        generation: Generation,
        places: &Places,
        log: &mut HotLog,
    ) {
        for (name, key) in &mut self.keys {
            (key.generation, key.counted, key.spread) = (generation, None, 0);
            (key.exact, key.together, key.fit) = (false, None, Fit::default());
            if key.delegations.end() {
                let why = "the switch knows nothing of it any more".to_owned();
                let did = (HotAction::DelegationEnded, why);
                let copies = key.copies(places);
                key.note(now, name, did, copies, log);
            }
        }
    }

    /// Takes what a switch with the order of this revision has counted.
    pub(crate) fn count(
        &mut self,
        now: Instant,
        revision: Revision,
        counts: &[HotCount],
        log: &mut HotLog,
    ) {
        let counts: BTreeMap<(KeyspaceId, u64), &HotCount> =
            counts.iter().map(|it| ((it.keyspace, it.keyhash), it)).collect();
        for (name, key) in
            self.keys.iter_mut().filter(|(_, key)| key.generation.order() <= revision)
        {
            let Some(count) = counts.get(&(name.keyspace, key.keyhash)) else { continue };
            let written = count.writes.saturating_add(key.steps.counted(now));
            let Some(counted) = &mut key.counted else {
                let gauge = |counted| Gauge::new(now, counted);
                let (reads, writes) = (gauge(count.reads), gauge(written));
                let ratio = Ratio::new(now, count.reads, written);
                let spread = count.spread;
                key.counted = Some(Counted { reads, writes, ratio, spread, written });
                continue;
            };
            let most = key.together.map_or(WINDOW_MAX, |_| WRITES_WINDOW_MAX);
            if let Some(writes) = counted.writes.read(now, written, (ENOUGH, most)) {
                key.rates.writes = writes.per_second();
            }
            key.together = counted.ratio.read(now, (count.reads, written), most).or(key.together);
            if let Some(reads) = counted.reads.read(now, count.reads, (ENOUGH, WINDOW_MAX)) {
                let before = std::mem::replace(&mut counted.spread, count.spread);
                let spread = count.spread.saturating_sub(before);
                let before = std::mem::replace(&mut counted.written, written);
                let writes = written.saturating_sub(before);
                let effect =
                    HotEffect::of(reads, spread, writes, key.delegations.delegated().is_some());
                log.count(key.decision, effect);
                key.spread = per_second(spread, reads.time);
                (key.rates.reads, key.exact) = (reads.per_second(), true);
            }
        }
    }

    /// Lets go what has become cold, takes in what has become hot, and gives each as many readers
    /// as pay.
    pub(crate) fn choose(&mut self, seen: &ChoiceInputs<'_>, log: &mut HotLog) {
        let told: BTreeMap<KeyName, &HotKey> = seen.list.iter().map(|it| (named(it), it)).collect();
        self.take_rates(seen.now, &told);
        self.let_go(seen, log);
        self.take_in(seen, &told, log);
        for (name, key) in &mut self.keys {
            let readers = key.readers(seen, name);
            if key.fit.is_over(seen.now, key.readers, readers, key.known().counted) {
                let did = (HotAction::Readers, key.why(seen.policy, readers));
                key.readers = readers;
                let copies = key.copies(seen.places);
                key.note(seen.now, name, did, copies, log);
            }
            let missed = told.get(name).map_or([0; 2], |it| [it.home_only, it.missed]);
            key.travel(seen, name, missed, log);
        }
    }

    /// The order's entries.
    pub(crate) fn entries(&self, places: &Places) -> Vec<HotEntry> {
        let entry = |(name, key): (&KeyName, &Key)| {
            let delegation = key.delegated().map(|delegated| delegated.delegation);
            let span = |nodes| places.span(key.first, usize::try_from(nodes).unwrap_or(usize::MAX));
            let all = || u16::try_from(places.list().len()).expect("NODES_MAX at most");
            HotEntry {
                keyspace: name.keyspace,
                key: name.key.clone(),
                keyhash: key.keyhash,
                match_value: key.at,
                generation: key.generation,
                first: key.first,
                readers: delegation.map_or_else(|| span(key.readers), |_| all()),
                delegation,
            }
        };
        self.keys.iter().map(entry).collect()
    }

    /// What nodes say of keys that no switch has counted yet. They say less of a key once others
    /// answer for it: what they have said holds until a switch may have counted. And what no switch
    /// counts at all.
    fn take_rates(&mut self, now: Instant, told: &BTreeMap<KeyName, &HotKey>) {
        for (name, key) in &mut self.keys {
            key.steps.tell(now, told.get(name).map_or(0, |it| it.steps));
        }
        for (name, key) in self.keys.iter_mut().filter(|(_, key)| !key.exact) {
            let Rates { reads, writes } = rates(told, name);
            let said = if now.since(key.since) < WINDOW_MAX { key.rates } else { Rates::default() };
            key.rates = Rates { reads: reads.max(said.reads), writes: writes.max(said.writes) };
        }
    }

    fn let_go(&mut self, seen: &ChoiceInputs<'_>, log: &mut HotLog) {
        let ChoiceInputs { now, policy, .. } = *seen;
        let few = policy.keys_max() == 0;
        self.keys.retain(|name, key| {
            let pinned = seen.pins.contains(name);
            // What only an operator kept here goes with the wish.
            let was_pinned = std::mem::replace(&mut key.pinned, pinned);
            let is_either = seen.is_either(name);
            let wanted = (!is_either || key.copied.why.is_some())
                && seen.is_wanted(name, key.rates, Known { pinned, ..key.known() });
            let back = key.copied.is_over((now, is_either && !pinned), &seen.caches, key.rates);
            let unwanted = was_pinned && !pinned && !wanted;
            let cold = !pinned && seen.is_cold(name, key.rates);
            key.cold_since = key.cold_since.or(Some(now)).filter(|_| cold);
            let over = has_lasted(key.cold_since, COLD_AFTER, now);
            let why = match seen.keyspace(name.keyspace) {
                None => "its keyspace has no copies of hot keys".to_owned(),
                Some(_) if few => "too few nodes answer".to_owned(),
                Some(_) if unwanted => "nobody wants it any more, and it is not hot".to_owned(),
                Some(_) if over => cold_text(policy, key.rates),
                Some(_) if back => "caches can help it again".to_owned(),
                Some(_) => return true,
            };
            key.note_end(now, name, why, log);
            false
        });
    }

    fn take_in(
        &mut self,
        seen: &ChoiceInputs<'_>,
        told: &BTreeMap<KeyName, &HotKey>,
        log: &mut HotLog,
    ) {
        let ChoiceInputs { policy, pins, .. } = *seen;
        if policy.keys_max() == 0 {
            return;
        }
        for name in pins {
            self.add(seen, name, rates(told, name), (None, "it is pinned".to_owned()), log);
        }
        let mut room = NEW_PER_ORDER;
        for it in seen.list {
            let (name, rates) = (named(it), Rates::from(it));
            let reads = policy.is_hot(rates);
            // What can only be answered at home does not go away from there.
            let delegation = it.home_only == 0 && seen.is_wanted(&name, rates, Known::default());
            if room == 0 || !(reads || delegation) || self.keys.contains_key(&name) {
                continue;
            }
            let Some(copied) = seen.copies(&name, rates) else { continue };
            let held = self.keys.keys().filter(|name| !pins.contains(name)).count();
            if held >= policy.keys_max() && !self.evict(seen, rates, log) {
                return;
            }
            let why = match (copied, reads) {
                (Some(copied), _) => copied.to_string(),
                (None, true) => {
                    format!("it is read {} times per second or more", policy.threshold())
                }
                (None, false) => format!("it is written {} times per second", rates.writes),
            };
            room -= usize::from(self.add(seen, &name, rates, (copied, why), log));
        }
    }

    /// Takes a key in, unless it is in, or may not be.
    fn add(
        &mut self,
        seen: &ChoiceInputs<'_>,
        name: &KeyName,
        rates: Rates,
        (copied, why): (Option<WhyCopied>, String),
        log: &mut HotLog,
    ) -> bool {
        let Some(keyspace) = seen.keyspace(name.keyspace) else { return false };
        let (now, keyhash) = (seen.now, keyspace.keyhash(&name.key));
        let (places, pinned) = (seen.places.list().len() as u64, seen.pins.contains(name));
        if places == 0 || name.key.len() > wire::KEY_MAX || self.keys.contains_key(name) {
            return false;
        }
        let first = KeyName { keyspace: name.keyspace, key: Vec::new() };
        let mut others = self.keys.range(first..).take_while(|(it, _)| it.keyspace == keyspace.id);
        // The switch knows but one key of a hash.
        if let Some((other, it)) = others.find(|(_, it)| it.keyhash == keyhash) {
            if !pinned || it.pinned {
                return false;
            }
            let other = other.clone();
            self.remove(now, &other, "a pinned key has the same keyhash".to_owned(), log);
        }
        let mut key = Key {
            keyhash,
            at: keyspace.match_value(&name.key),
            generation: generation(seen.revision, seen.mutant),
            first: u16::try_from(keyhash % places).unwrap_or(0),
            readers: 0,
            since: now,
            before: rates,
            rates,
            spread: 0,
            pinned,
            cold_since: None,
            copied: Copied::new(copied),
            counted: None,
            steps: RateCount::default(),
            exact: false,
            together: None,
            fit: Fit::default(),
            delegations: Delegations::default(),
            decision: None,
        };
        key.readers = key.readers(seen, name);
        let copies = key.copies(seen.places);
        key.note(now, name, (HotAction::Added, why), copies, log);
        self.keys.insert(name.clone(), key);
        true
    }

    /// Makes room for a key of which so much is asked: the coldest of those that are about to go
    /// for being cold goes, or of all that nobody has pinned, if so much less is asked of it that
    /// the two will not change places all the time.
    fn evict(&mut self, seen: &ChoiceInputs<'_>, hotter: Rates, log: &mut HotLog) -> bool {
        let free = self.keys.iter().filter(|(_, key)| !key.pinned);
        let coldest = free.min_by_key(|(_, key)| (key.cold_since.is_none(), key.rates.all()));
        let Some((name, key)) = coldest else { return false };
        let (asked, cold) = (key.rates.all(), key.cold_since.is_some());
        if !cold && asked.saturating_mul(HOTTER) > hotter.all() {
            return false;
        }
        let why = match cold {
            true => cold_text(seen.policy, key.rates),
            false => format!("{asked} times per second is little beside {}", hotter.all()),
        };
        let name = name.clone();
        self.remove(seen.now, &name, format!("hotter keys need the room; {why}"), log);
        true
    }

    fn remove(&mut self, now: Instant, name: &KeyName, why: String, log: &mut HotLog) {
        if let Some(mut key) = self.keys.remove(name) {
            key.note_end(now, name, why, log);
        }
    }
}

fn rates(told: &BTreeMap<KeyName, &HotKey>, name: &KeyName) -> Rates {
    told.get(name).map_or_else(Rates::default, |it| Rates::from(*it))
}

fn cold_text(policy: Policy, rates: Rates) -> String {
    let bound = policy.threshold() / 2;
    if rates.reads < bound {
        format!("it is read less than {bound} times per second")
    } else {
        "it is written too often for copies to pay".to_owned()
    }
}

/// Number of the generation that an order of this revision begins: a new one, but in a mutant.
pub(super) fn generation(revision: Revision, mutant: MaybeMutant) -> Generation {
    let repeats = mutant.is(Mutant::RepeatGenerations);
    if repeats { Generation::new(1) } else { Generation::begun_by(revision) }
}
