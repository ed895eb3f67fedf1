//! The store that several controllers share, as it is to them: keys that are changed one call after
//! the other on conditions, and the lease that the leader's key is bound to.
//!
//! It is a process with a clock and links. While it is stopped, what it is asked waits, and is done
//! when it goes on, whoever still wants it: to those who asked it is not known whether it was.

use super::World;
use super::process::Parcel;
use crate::queue::Event;
use crate::role::Role;
use cluster::{Incarnation, Mutant};
use controller::Saved;
use controller::election::LEASE_S;
use machine::Instant;
use std::sync::Arc;
use std::time::Duration;

/// What it holds beside the map, which is [`World::saved`].
#[derive(Debug, Default)]
pub(super) struct Store {
    /// Counts all changes.
    revision: i64,
    seat: Option<Seat>,
    /// The leader's key as it was before it was changed last: what a member knows that is behind.
    before: Option<Seat>,
    /// When the map was changed last.
    map_changed: i64,
    /// Who wrote it: the seat, and which of that leader's maps it is.
    head: Option<(i64, u64)>,
    /// It takes nothing that needs room.
    pub(super) is_full: bool,
}

/// The leader's key.
#[derive(Clone, Copy, Debug)]
struct Seat {
    /// Whose it is.
    who: (u16, Incarnation),
    changed: i64,
    /// The change with which its leader gave its last sign, if there was room for one.
    sign: Option<i64>,
    /// When its lease ends.
    until: Instant,
    /// When it became so, by the world's clock.
    taken_at: Instant,
}

/// Something that a controller asks of it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(super) controller: u16,
    pub(super) incarnation: Incarnation,
    pub(super) number: u64,
    pub(super) ask: Ask,
}

#[derive(Clone, Debug)]
pub(super) enum Ask {
    /// Who has the leader's key, what was its last sign, and what is left of its lease.
    Look,
    /// To have the key, if it was changed last then, and its leader has given no sign since.
    Take {
        found: i64,
        sign: Option<i64>,
    },
    /// To have its lease renewed and give a sign, and to hear whose the key is.
    Renew {
        seat: i64,
    },
    Load,
    /// To replace the map, if the key is this leader's and the map as it knows it.
    Save {
        seat: i64,
        known: i64,
        number: u64,
        saved: Arc<Saved>,
    },
}

/// What it says to that.
#[derive(Clone, Debug)]
pub(crate) struct Told {
    pub(super) controller: u16,
    pub(super) incarnation: Incarnation,
    pub(super) number: u64,
    /// `None`: nothing, for so long that nobody waits any more.
    pub(super) said: Option<Said>,
}

#[derive(Clone, Debug)]
pub(super) enum Said {
    /// Nobody has the key (0), or somebody whose it has been since that change; whether the lease
    /// is the asker's own, the last sign, and the whole seconds that are left.
    Seat {
        found: i64,
        mine: bool,
        sign: Option<i64>,
        left_s: i64,
    },
    /// Whether it is the asker's now, since that change.
    Taken(Option<i64>),
    Renewed(bool),
    /// The map, and when it was changed last.
    Loaded(i64, Option<Arc<Saved>>),
    Saved(i64),
    /// The conditions are not so: whose the key is, when the map was changed, and who wrote it.
    Refused {
        seat: Option<i64>,
        changed: i64,
        head: Option<(i64, u64)>,
    },
    /// There is no room.
    Full,
}

impl Store {
    /// Ends what has to end, by the store's own clock.
    fn look_at_the_time(&mut self, local: Instant) {
        if self.seat.is_some_and(|seat| seat.until <= local) {
            self.revision += 1;
            self.change(None);
        }
    }

    fn change(&mut self, seat: Option<Seat>) {
        self.before = std::mem::replace(&mut self.seat, seat);
    }

    /// Since when somebody else has the leader's key, if somebody else has.
    pub(super) fn is_of_another_since(&self, who: (u16, Incarnation)) -> Option<Instant> {
        self.seat.filter(|seat| seat.who != who).map(|seat| seat.taken_at)
    }

    /// Its own leader is a new one, which knows of no lease when it was renewed: all begin anew.
    pub(super) fn renew_all(&mut self, local: Instant) {
        if let Some(seat) = &mut self.seat {
            seat.until = local + LEASE;
        }
    }
}

impl World {
    /// A controller asks something of the store; there is an answer, or none in time.
    pub(super) fn call(&mut self, call: Call, patience: Duration) {
        let Call { controller, incarnation, number, .. } = call;
        let silence = Told { controller, incarnation, number, said: None };
        self.queue.schedule(self.now + patience, Event::Told(silence));
        let from = Role::Controller(controller);
        for at in self.net.carry_stream(self.now, from, Role::Store).into_iter().flatten() {
            self.queue.schedule(at, Event::Call(call.clone()));
        }
    }

    pub(super) fn call_arrives(&mut self, call: Call) {
        self.arrive(Role::Store, Parcel::Call(call));
    }

    /// The store does what it is asked, and says so.
    pub(super) fn take_call(&mut self, call: Call) {
        let local = self.local(Role::Store);
        self.store.look_at_the_time(local);
        let Call { controller, incarnation, number, ask } = call;
        let said = self.serve_call(local, (controller, incarnation), ask);
        let told = Told { controller, incarnation, number, said: Some(said) };
        let to = Role::Controller(controller);
        for at in self.net.carry_stream(self.now, Role::Store, to).into_iter().flatten() {
            self.queue.schedule(at, Event::Told(told.clone()));
        }
    }

    fn serve_call(&mut self, local: Instant, who: (u16, Incarnation), ask: Ask) -> Said {
        let (store, taken_at) = (&mut self.store, self.now);
        let changed = store.seat.map(|seat| seat.changed);
        match ask {
            Ask::Look => {
                let behind = self.rng.chance(1, BEHIND_ONE_IN);
                match if behind { store.before } else { store.seat } {
                    None => Said::Seat { found: 0, mine: false, sign: None, left_s: -1 },
                    Some(Seat { who: of, changed, sign, .. }) => {
                        let until = store.seat.map_or(local, |it| it.until);
                        let left_s = i64::try_from(until.since(local).as_secs()).expect("short");
                        Said::Seat { found: changed, mine: of == who, sign, left_s }
                    }
                }
            }
            Ask::Take { .. } if store.is_full => Said::Full,
            Ask::Take { found, sign } => {
                let is = store.seat.map_or((0, None), |it| (it.changed, it.sign));
                let early = self.options.mutant == Some(Mutant::TakeOverEarly);
                if is != (found, sign) && !(early && is.0 == found) {
                    return Said::Taken(None);
                }
                // Without a sign it may have been renewed since the look (T8).
                let before = store.seat.map(|it| it.who).filter(|_| sign.is_some());
                if before.is_some_and(|before| before != who && self.leads_still(before)) {
                    let text = format!("controller {} leads before another one has ended", who.0);
                    self.history.violation(text);
                }
                let store = &mut self.store;
                store.revision += 1;
                let changed = store.revision;
                let until = local + LEASE;
                store.change(Some(Seat { who, changed, sign: Some(changed), until, taken_at }));
                self.note(format_args!("controller {} has the leader's key", who.0));
                Said::Taken(Some(changed))
            }
            Ask::Renew { seat } => Said::Renewed(match store.seat {
                Some(it) if it.changed == seat => {
                    store.revision += 1;
                    // Without room it takes the last one away.
                    let sign = (!store.is_full).then_some(store.revision);
                    store.change(Some(Seat { sign, until: local + LEASE, ..it }));
                    true
                }
                _ => false,
            }),
            Ask::Load => Said::Loaded(store.map_changed, self.saved.clone().map(Arc::new)),
            Ask::Save { .. } if store.is_full => Said::Full,
            Ask::Save { seat, known, number, saved } => {
                let anyway = self.options.mutant == Some(Mutant::SaveAnyway);
                let may = changed == Some(seat) && store.map_changed == known;
                if !may && !anyway {
                    let head = store.head;
                    return Said::Refused { seat: changed, changed: store.map_changed, head };
                }
                store.revision += 1;
                (store.map_changed, store.head) = (store.revision, Some((seat, number)));
                let changed = store.map_changed;
                self.replace_saved(Saved::clone(&saved));
                Said::Saved(changed)
            }
        }
    }
}

/// One of so many looks is answered by a member that is behind.
const BEHIND_ONE_IN: u64 = 8;

/// How long the leader's lease lasts.
const LEASE: Duration = Duration::from_secs(LEASE_S.unsigned_abs());
