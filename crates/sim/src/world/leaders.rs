//! Controllers that share a store: each stands for election, and leads as long as the store says
//! so. It asks what the driver of a real one asks of etcd, and makes of it what that one makes
//! ([`controller::election`]).

use super::faults::{Harm, Relief};
use super::placement::Placed;
use super::store::{Ask, Call, Said, Told};
use super::{Master, Unit, World};
use crate::queue::Event;
use crate::role::Role;
use cluster::{Incarnation, Mutant, Term};
use controller::election::{
    DOUBT_WAIT, LEAD_FOR, LEASE_S, LOOK_PATIENCE, Meaning, RENEW_EVERY, RENEW_PATIENCE, Refusal,
    SAVE_AGAIN, STAND_AGAIN, STAND_EVERY, TAKE_PATIENCE, Vigil, WRITE_AGAIN, is_kept, overlap,
};
use controller::{Controller, Saved};
use machine::Instant;
use std::sync::Arc;
use std::time::Duration;
use wire::Revision;

/// How a controller stands with the store.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidate {
    /// Calls so far.
    calls: u64,
    /// The call of the election that is not answered yet, and when it was sent.
    asked: Option<(u64, Instant)>,
    /// When it asks next, unless it leads.
    next_at: Instant,
    /// The highest term that a member was heard to obey.
    heard: Term,
    vigil: Vigil,
    tenure: Option<Tenure>,
}

/// Of one that has the leader's key.
#[derive(Clone, Debug)]
struct Tenure {
    /// The change with which it became its own.
    seat: i64,
    /// Until when it counts on itself.
    until: Instant,
    /// The call that renews that is not answered yet, and when it was sent.
    renewing: Option<(u64, Instant)>,
    renew_at: Instant,
    /// When the map was changed last, as far as it knows.
    known: i64,
    /// Maps that it has written or tried to.
    maps: u64,
    saving: Option<Attempt>,
    /// What is decided and not saved, and when that is tried again.
    unsaved: Option<Saved>,
    save_at: Instant,
    /// In doubt it does nothing until then.
    rests_until: Instant,
}

/// A map that is being saved, for as long as the store does not say what became of it.
#[derive(Clone, Debug)]
struct Attempt {
    revision: Revision,
    saved: Arc<Saved>,
    /// The call that is not answered yet.
    asked: Option<u64>,
    again_at: Instant,
}

impl Candidate {
    /// One that has just started.
    pub(super) fn new(now: Instant) -> Self {
        Self { next_at: now, ..Self::default() }
    }

    /// When it has to ask something.
    fn due(&self) -> Option<Instant> {
        let Some(tenure) = &self.tenure else {
            return self.asked.is_none().then_some(self.next_at);
        };
        let renews = tenure.renewing.is_none().then_some(tenure.renew_at);
        let saves = match &tenure.saving {
            Some(attempt) => attempt.asked.is_none().then_some(attempt.again_at),
            None => tenure.unsaved.is_some().then_some(tenure.save_at),
        };
        renews.into_iter().chain(saves).min()
    }

    /// When its controller may be called that wants to be called then.
    fn may_act_at(&self, wanted: Instant) -> Instant {
        self.tenure.as_ref().map_or(wanted, |tenure| wanted.max(tenure.rests_until))
    }

    /// The patience of whoever waits for this call has ended, or it was answered.
    fn end(asked: &mut Option<(u64, Instant)>, number: u64) -> Option<Instant> {
        asked.take_if(|(of, _)| *of == number).map(|(_, sent)| sent)
    }
}

impl World {
    /// When a controller wants to be called, for itself or to ask something of the store.
    pub(super) fn timeout_of_controller(&self, index: usize) -> Option<Instant> {
        let master = self.controllers.get(index)?;
        let machine = master.machine.as_ref().and_then(Controller::poll_timeout);
        let Some(candidate) = &master.candidate else { return machine };
        let machine = machine.map(|at| candidate.may_act_at(at));
        machine.into_iter().chain(candidate.due()).min()
    }

    /// Asks the store what has to be asked by now.
    pub(super) fn ask_the_store(&mut self, index: usize, local: Instant) {
        let Some(candidate) = self.candidate(index) else { return };
        let Some(tenure) = &mut candidate.tenure else {
            if candidate.asked.is_none() && candidate.next_at <= local {
                self.ask_for_the_seat(index, local, Ask::Look);
            }
            return;
        };
        let seat = tenure.seat;
        if tenure.renewing.is_none() && tenure.renew_at <= local {
            candidate.calls += 1;
            tenure.renewing = Some((candidate.calls, local));
            tenure.renew_at = local + RENEW_EVERY;
            let number = candidate.calls;
            self.ask(index, number, Ask::Renew { seat }, RENEW_PATIENCE);
        }
        self.write(index, local);
    }

    fn ask_for_the_seat(&mut self, index: usize, local: Instant, ask: Ask) {
        let Some(candidate) = self.candidate(index) else { return };
        candidate.calls += 1;
        let number = candidate.calls;
        candidate.asked = Some((number, local));
        let patience = match ask {
            Ask::Look => LOOK_PATIENCE,
            Ask::Take { .. } => TAKE_PATIENCE,
            Ask::Load | Ask::Renew { .. } | Ask::Save { .. } => PATIENCE,
        };
        self.ask(index, number, ask, patience);
    }

    fn ask(&mut self, index: usize, number: u64, ask: Ask, patience: Duration) {
        let role = self.role_of_unit(Unit::Master(index));
        let controller = u16::try_from(index).expect("few controllers");
        let incarnation = self.process(role).incarnation;
        self.call(Call { controller, incarnation, number, ask }, patience);
    }

    /// Writes what is to be saved, unless that is under way.
    fn write(&mut self, index: usize, local: Instant) {
        let Some(candidate) = self.candidate(index) else { return };
        let Some(tenure) = &mut candidate.tenure else { return };
        if tenure.saving.is_none() && tenure.save_at <= local {
            tenure.saving = tenure.unsaved.as_ref().map(|saved| {
                tenure.maps += 1;
                let (revision, saved) = (saved.map.revision, Arc::new(saved.clone()));
                Attempt { revision, saved, asked: None, again_at: local }
            });
        }
        let Some(attempt) = &mut tenure.saving else { return };
        if attempt.asked.is_some() || attempt.again_at > local {
            return;
        }
        candidate.calls += 1;
        let number = candidate.calls;
        attempt.asked = Some(number);
        let (seat, known, saved) = (tenure.seat, tenure.known, Arc::clone(&attempt.saved));
        let ask = Ask::Save { seat, known, number: tenure.maps, saved };
        self.ask(index, number, ask, PATIENCE);
    }

    /// Begins to save what the controller decided. Says whether it lives on.
    pub(super) fn save_in_store(&mut self, index: usize) -> bool {
        let role = self.role_of_unit(Unit::Master(index));
        let local = self.local(role);
        let Some(master) = self.controllers.get_mut(index) else { return false };
        let (Some(machine), Some(candidate)) = (&mut master.machine, &mut master.candidate) else {
            return false;
        };
        let Some(tenure) = &mut candidate.tenure else { return false };
        let news = machine.poll_save();
        let is_news = news.is_some();
        tenure.unsaved = news.or(tenure.unsaved.take());
        self.write(index, local);
        let fragile = !self.options.faults.controller_every.is_zero() && !self.healed;
        if is_news && fragile && self.keyspaces.is_some() && self.rng.chance(1, 60) {
            self.crash_for_a_while(role, Harm::None);
            return false;
        }
        true
    }

    /// Whether orders of this controller may leave. In doubt it rests a little.
    pub(super) fn may_order(&mut self, index: usize) -> bool {
        let local = self.local(self.role_of_unit(Unit::Master(index)));
        let leads_on = self.options.mutant == Some(Mutant::LeadOn);
        if let Some(deposed) = self.controllers.get(index).and_then(|it| it.deposed_by()) {
            self.step_down(index, local, deposed);
            return false;
        }
        let Some(candidate) = self.candidate(index) else { return true };
        let Some(tenure) = &mut candidate.tenure else { return false };
        let leads = local < tenure.until || leads_on;
        if !leads {
            tenure.rests_until = local + DOUBT_WAIT;
        }
        leads
    }

    /// Nobody gives an order when somebody else has had the leader's key for so long that no lease
    /// is counted on that is given from then on.
    pub(super) fn check_leads(&mut self, index: usize) {
        let role = self.role_of_unit(Unit::Master(index));
        let who = (u16::try_from(index).expect("few controllers"), self.process(role).incarnation);
        let since = self.store.is_of_another_since(who);
        if since.is_some_and(|since| self.now > since + overlap()) {
            self.history.violation(format!("{role} gives an order, and another one leads"));
        }
    }

    /// Somebody else leads, or may do so.
    fn step_down(&mut self, index: usize, local: Instant, newest: Term) {
        let controller = u16::try_from(index).expect("few controllers");
        self.check_equal(controller);
        let Some(master) = self.controllers.get_mut(index) else { return };
        master.machine = None;
        master.couriers.clear();
        // The next one knows nothing of what this one has changed.
        master.placed = Placed::default();
        if let Some(candidate) = &mut master.candidate {
            candidate.tenure = None;
            candidate.asked = None;
            candidate.next_at = local + STAND_AGAIN;
            candidate.heard = candidate.heard.max(newest);
            self.look_who_leads();
        } else {
            let incarnation = self.process(Role::Controller(controller)).incarnation;
            let relief = Relief::TakeUp(controller, incarnation.0, newest);
            self.queue.schedule(self.now + STAND_AGAIN, Event::Relief(relief));
        }
        self.stats.deposed += 1;
        self.note(format_args!("controller {index} leads no more"));
    }

    /// A controller that has a store of its own takes that up again, above the term of which it was
    /// told.
    pub(super) fn take_store_up(&mut self, controller: u16, incarnation: u64, heard: Term) {
        let role = Role::Controller(controller);
        let process = self.process(role);
        if !process.is_up() || process.incarnation.0 != incarnation {
            return;
        }
        let saved = self.saved.clone().map(|saved| saved.above(heard));
        let local = self.local(role);
        self.lead_alone(controller, saved, local);
        self.pump(Unit::Master(usize::from(controller)));
    }

    pub(super) fn told_arrives(&mut self, told: Told) {
        self.arrive(Role::Controller(told.controller), super::process::Parcel::Told(told));
    }

    /// A controller hears what the store says, or that it says nothing.
    pub(super) fn take_told(&mut self, told: Told) {
        let Told { controller, incarnation, number, said } = told;
        let role = Role::Controller(controller);
        if self.process(role).incarnation != incarnation {
            return;
        }
        let (index, local) = (usize::from(controller), self.local(role));
        let Some(candidate) = self.candidate(index) else { return };
        if let Some(sent) = Candidate::end(&mut candidate.asked, number) {
            self.hear_of_the_seat(index, (local, sent), said);
        } else if let Some(tenure) = &mut candidate.tenure {
            if let Some(sent) = Candidate::end(&mut tenure.renewing, number) {
                match said {
                    Some(Said::Renewed(true)) => tenure.until = tenure.until.max(sent + LEAD_FOR),
                    Some(_) => self.step_down(index, local, Term::default()),
                    None => {}
                }
            } else if tenure.saving.as_ref().is_some_and(|it| it.asked == Some(number)) {
                self.hear_of_the_map(index, local, said);
            }
        }
        self.pump(Unit::Master(index));
    }

    fn hear_of_the_seat(
        &mut self,
        index: usize,
        (local, sent): (Instant, Instant),
        said: Option<Said>,
    ) {
        // Once the world has healed nobody would lead for long.
        let early = self.options.mutant == Some(Mutant::TakeOverEarly) && !self.healed;
        let Some(candidate) = self.candidate(index) else { return };
        match said {
            Some(Said::Seat { found, mine, sign, left_s }) => {
                let is_silent = match sign {
                    Some(sign) => candidate.vigil.is_over(local, sign),
                    None => !is_kept(left_s, LEASE_S),
                };
                if found == 0 || mine || early || is_silent {
                    return self.ask_for_the_seat(index, local, Ask::Take { found, sign });
                }
                candidate.next_at = local + STAND_EVERY;
            }
            Some(Said::Taken(Some(seat))) => {
                candidate.tenure = Some(Tenure {
                    seat,
                    until: sent + LEAD_FOR,
                    renewing: None,
                    renew_at: sent + RENEW_EVERY,
                    known: 0,
                    maps: 0,
                    saving: None,
                    unsaved: None,
                    save_at: local,
                    rests_until: local,
                });
                self.ask_for_the_seat(index, local, Ask::Load);
            }
            Some(Said::Taken(None)) => candidate.next_at = local + STAND_EVERY,
            Some(Said::Loaded(changed, saved)) => {
                if let Some(tenure) = &mut candidate.tenure {
                    tenure.known = changed;
                    self.begin_to_lead(index, local, saved.map(Arc::unwrap_or_clone));
                }
            }
            // One that cannot load the map gives the key back.
            Some(_) | None => {
                candidate.tenure = None;
                candidate.next_at = local + STAND_AGAIN;
            }
        }
    }

    fn begin_to_lead(&mut self, index: usize, local: Instant, saved: Option<Saved>) {
        let mut config = self.controller_config();
        let early = self.options.mutant == Some(Mutant::TakeOverEarly);
        config.overlap = if early { Duration::ZERO } else { overlap() };
        let heard = self.candidate(index).map_or(Term::default(), |it| it.heard);
        let saved = saved.map(|saved| saved.above(heard));
        let machine = Controller::new(config, saved, local).expect("a sound configuration");
        let machine = self.mutated(machine);
        self.note(format_args!("controller {index} leads, in term {}", machine.term()));
        self.stats.takeovers += 1;
        if let Some(master) = self.controllers.get_mut(index) {
            master.machine = Some(machine);
        }
        self.look_who_leads();
    }

    /// Of those that take themselves for the leader, whoever has had the key last.
    fn look_who_leads(&mut self) {
        let led = (0..).zip(&self.controllers).filter(|(_, it)| it.machine.is_some());
        let seat = |it: &Master| Some(it.candidate.as_ref()?.tenure.as_ref()?.seat);
        let newest = led.filter_map(|(index, it)| Some((seat(it)?, index))).max();
        self.leader = newest.map_or(self.leader, |(_, index)| index);
    }

    fn hear_of_the_map(&mut self, index: usize, local: Instant, said: Option<Said>) {
        let Some(master) = self.controllers.get_mut(index) else { return };
        let Some(tenure) = master.candidate.as_mut().and_then(|it| it.tenure.as_mut()) else {
            return;
        };
        let Some(attempt) = &mut tenure.saving else { return };
        attempt.asked = None;
        let meaning = match said {
            Some(Said::Saved(changed)) => {
                tenure.known = changed;
                Meaning::Saved
            }
            Some(Said::Refused { seat, changed, head }) => {
                let name = |number: u64| number.to_string();
                let head = head.map(|(by, number)| (by, name(number)));
                let map = head.as_ref().map(|(by, number)| (*by, number.as_str()));
                let meaning = Refusal { seat, map }.meaning(tenure.seat, &name(tenure.maps));
                tenure.known = changed;
                meaning
            }
            Some(Said::Full) => {
                (tenure.saving, tenure.save_at) = (None, local + SAVE_AGAIN);
                return;
            }
            Some(_) | None => {
                attempt.again_at = local + WRITE_AGAIN;
                return;
            }
        };
        match meaning {
            Meaning::Saved => {
                let revision = attempt.revision;
                tenure.saving = None;
                tenure.unsaved = tenure.unsaved.take().filter(|it| it.map.revision > revision);
                if let Some(machine) = &mut master.machine {
                    machine.handle_saved(local, revision);
                }
                self.show_keyspaces();
            }
            Meaning::Again => attempt.again_at = local,
            Meaning::Deposed => self.step_down(index, local, Term::default()),
            Meaning::Overwritten => {
                if self.options.mutant.is_none() {
                    self.history.violation("somebody who did not lead has saved".into());
                }
                let role = self.role_of_unit(Unit::Master(index));
                self.crash_for_a_while(role, Harm::None);
            }
        }
    }

    fn candidate(&mut self, index: usize) -> Option<&mut Candidate> {
        self.controllers.get_mut(index)?.candidate.as_mut()
    }

    /// Whether this incarnation of a controller still counts on itself.
    pub(super) fn leads_still(&self, (controller, incarnation): (u16, Incarnation)) -> bool {
        let role = Role::Controller(controller);
        let process = self.process(role);
        let local = process.clock.clone().read(self.now);
        let candidate =
            self.controllers.get(usize::from(controller)).and_then(|it| it.candidate.as_ref());
        let tenure = candidate.and_then(|it| it.tenure.as_ref());
        process.is_up()
            && process.incarnation == incarnation
            && tenure.is_some_and(|tenure| local < tenure.until)
    }

    /// Where the store is concerned: who has the key as far as anybody knows, and what it may hold.
    pub(super) fn has_tenure(&self, index: u16) -> bool {
        let master = self.controllers.get(usize::from(index));
        master.and_then(|it| it.candidate.as_ref()).is_some_and(|it| it.tenure.is_some())
    }
}

/// How long a call may take.
const PATIENCE: Duration = Duration::from_secs(1);
