//! The rules of a node: section 4 of the protocol, and what section 6 asks of a member.

use crate::bug::Bug;
use crate::history::Request;
use crate::state::{
    Bits, Chain, Effect, Message, Node, Outcome, Piece, Record, VERSIONS_MAX, Value, Volatile, Way,
    Write,
};
use cluster::Mutant;

/// One step of one node: who it is, and what comes out.
pub(crate) struct Turn<'a> {
    pub(crate) me: u8,
    pub(crate) requests: &'a [Request],
    pub(crate) bug: Option<Bug>,
    /// What it sends to other nodes.
    pub(crate) sent: Vec<Message>,
    /// What it tells clients.
    pub(crate) answers: Vec<(u8, Outcome)>,
}

impl<'a> Turn<'a> {
    pub(crate) fn new(me: u8, requests: &'a [Request], bug: Option<Bug>) -> Self {
        Self { me, requests, bug, sent: Vec::new(), answers: Vec::new() }
    }

    pub(crate) fn has(&self, bug: impl Into<Bug>) -> bool {
        self.bug == Some(bug.into())
    }
}

impl Node {
    /// The chain of the installed assignment.
    pub(crate) fn chain(&self) -> Option<&Chain> {
        self.place.as_ref().map(|place| &place.chain)
    }

    fn is(&self, turn: &Turn<'_>, role: impl Fn(&Chain) -> Option<u8>) -> bool {
        self.chain().and_then(role) == Some(turn.me)
    }

    fn is_last(&self, turn: &Turn<'_>) -> bool {
        self.is(turn, Chain::last)
    }

    fn is_learner(&self, turn: &Turn<'_>) -> bool {
        self.is(turn, Chain::learner)
    }

    pub(crate) fn session(&self, request: u8) -> Option<Outcome> {
        self.sessions.get(usize::from(request)).copied().flatten()
    }

    /// Whether a retry of this request would be recognized here.
    pub(crate) fn knows(&self, request: u8) -> bool {
        self.session(request).is_some()
            || self.ended.has(request)
            || self.pending.iter().any(|write| write.request == request)
    }

    /// The version of the newest state of the key here, committed or pending.
    pub(crate) fn state_version(&self) -> u8 {
        self.newest_pending().map_or(0, |write| write.version).max(self.committed_version())
    }

    fn committed_version(&self) -> u8 {
        if self.record.version > 0 { self.record.version } else { self.collected }
    }

    /// The newest pending write that has an effect.
    pub(crate) fn newest_pending(&self) -> Option<&Write> {
        self.pending.iter().rev().find(|write| write.effect != Effect::None)
    }

    fn newest_state(&self) -> (u8, Value) {
        match self.newest_pending().filter(|write| write.version > self.record.version) {
            Some(Write { version, effect: Effect::Put(value), .. }) => (*version, *value),
            Some(Write { version, .. }) => (*version, Value::default()),
            None => (self.record.version, self.record.value),
        }
    }

    /// The head takes a request. `ended` are those below its client's low-water mark.
    pub(crate) fn take_request(&mut self, turn: &mut Turn<'_>, request: u8, ended: Bits) {
        if !turn.has(Mutant::ForgetRequests) {
            if let Some(outcome) = self.session(request) {
                turn.answers.push((request, outcome));
                return;
            }
            if self.knows(request) {
                return;
            }
        }
        let Some(kind) = turn.requests.get(usize::from(request)).map(|r| r.kind) else { return };
        let (base, value) = self.newest_state();
        let (effect, result) = kind.apply(request, value);
        self.newest += 1;
        assert!(self.newest <= VERSIONS_MAX, "the bounds of the scope give out fewer versions");
        let base = kind.is_ordered().then_some(base);
        let write = Write { version: self.newest, request, base, effect, result, ended };
        if turn.has(Mutant::AnswerAtHead) {
            turn.answers.push((request, write.outcome()));
        }
        self.take(turn, write);
    }

    /// Records a write and sends it on, or commits it if nobody comes after.
    fn take(&mut self, turn: &mut Turn<'_>, write: Write) {
        self.newest = self.newest.max(write.version);
        if self.is_last(turn) {
            self.commit(turn, write);
        } else {
            let at = self.pending.partition_point(|other| other.version < write.version);
            self.pending.insert(at, write);
            self.ended = self.ended.or(write.ended);
        }
    }

    fn send_on(&self, turn: &mut Turn<'_>, write: Write) {
        if let Some(way) = self.way(turn, Chain::successor) {
            turn.sent.push(Message::Write(way, write, self.stable));
        }
    }

    /// The way to somebody in the chain, if there is one.
    fn way(&self, turn: &Turn<'_>, whom: impl Fn(&Chain, u8) -> Option<u8>) -> Option<Way> {
        let chain = self.chain()?;
        Some(Way { epoch: chain.epoch, from: turn.me, to: whom(chain, turn.me)? })
    }

    /// Takes a message of another node. The caller has checked lease, epoch and sender.
    pub(crate) fn take_message(&mut self, turn: &mut Turn<'_>, message: Message) {
        match message {
            Message::Write(_, write, stable) => self.take_chain_write(turn, write, stable),
            Message::Commit(_, version) => self.take_commit(turn, version),
            Message::Stable(_, stable) => {
                self.newest = self.newest.max(stable);
                self.raise_stable(stable);
                if self.pending.is_empty()
                    && let Some(place) = &mut self.place
                {
                    place.settled = !place.chain.open;
                }
            }
            Message::Copy(_, _, piece) => self.take_piece(turn, piece),
        }
    }

    fn take_chain_write(&mut self, turn: &mut Turn<'_>, write: Write, stable: u8) {
        if self.is_committed(write.version) {
            self.tell_committed(turn, write.version);
            return;
        }
        self.raise_stable(stable);
        if self.pending.iter().any(|other| other.version == write.version) {
            return;
        }
        let ready = write.base.is_none_or(|base| self.knows_version(base));
        if ready || turn.has(Mutant::IgnoreBase) {
            self.take(turn, write);
        }
    }

    fn knows_version(&self, version: u8) -> bool {
        self.is_committed(version)
            || self.record.version == version
            || self.pending.iter().any(|write| write.version == version)
    }

    fn is_committed(&self, version: u8) -> bool {
        version <= self.stable || self.committed.has(version)
    }

    fn tell_committed(&self, turn: &mut Turn<'_>, version: u8) {
        if let Some(way) = self.way(turn, Chain::predecessor) {
            turn.sent.push(Message::Commit(way, version));
        }
    }

    /// The successor has committed a write. What it was computed from is committed here first: the
    /// answer to a write without effect would else tell of a state that nobody can read yet.
    fn take_commit(&mut self, turn: &mut Turn<'_>, version: u8) {
        let write = self.pending.iter().find(|write| write.version == version);
        let base = write.and_then(|write| write.base);
        let early = base.is_some_and(|base| self.pending.iter().any(|w| w.version == base));
        if !early || turn.has(Bug::CommitBeforeBase) {
            self.commit_pending(turn, version);
        }
    }

    fn commit_pending(&mut self, turn: &mut Turn<'_>, version: u8) {
        let at = self.pending.iter().position(|write| write.version == version);
        if let Some(write) = at.and_then(|at| self.pending.pop_at(at)) {
            self.commit(turn, write);
        }
    }

    fn commit(&mut self, turn: &mut Turn<'_>, write: Write) {
        let version = write.version;
        if self.committed_version() < version {
            match write.effect {
                Effect::Put(value) => self.record = Record { version, value },
                Effect::Delete if turn.has(Mutant::CollectAtOnce) => {
                    self.record = Record::default();
                }
                Effect::Delete => self.record = Record { version, value: Value::default() },
                Effect::None => {}
            }
        }
        self.committed.insert(version);
        self.keep_outcome(write.request, write.outcome(), write.ended);
        if self.is(turn, Chain::tail) {
            turn.answers.push((write.request, write.outcome()));
        }
        self.tell_committed(turn, version);
        self.settle(turn);
    }

    fn keep_outcome(&mut self, request: u8, outcome: Outcome, ended: Bits) {
        self.ended = self.ended.or(ended);
        for (number, session) in (0..).zip(&mut self.sessions) {
            if number == request {
                *session = Some(outcome);
            } else if ended.has(number) {
                *session = None;
            }
        }
    }

    fn raise_stable(&mut self, stable: u8) {
        self.stable = self.stable.max(stable);
        self.forget_committed();
    }

    /// What is at or below `stable` need not be remembered one by one.
    fn forget_committed(&mut self) {
        self.committed = self.committed.iter().filter(|version| *version > self.stable).collect();
    }

    /// A head knows from its pending writes what is stable; a closed one with none has settled.
    fn settle(&mut self, turn: &Turn<'_>) {
        if !self.is(turn, Chain::head) {
            return;
        }
        let stable = self.pending.first().map_or(self.newest, |oldest| oldest.version - 1);
        self.raise_stable(stable);
        if self.pending.is_empty()
            && let Some(place) = &mut self.place
        {
            place.settled = !place.chain.open;
        }
    }

    /// What a node sends again and again: what is pending, with what it knows to be stable by now,
    /// and CHAIN_STABLE if it is a head with nothing pending. (In an open chain that is of use only
    /// to those who collect tombstones.)
    pub(crate) fn resend(&self, turn: &mut Turn<'_>, collects: bool) {
        let Some(Volatile { chain, .. }) = &self.place else { return };
        for write in &self.pending {
            self.send_on(turn, *write);
        }
        if chain.head() == Some(turn.me) && self.pending.is_empty() && (collects || !chain.open) {
            for to in chain.nodes().skip(1) {
                let way = Way { epoch: chain.epoch, from: turn.me, to };
                turn.sent.push(Message::Stable(way, self.newest));
            }
        }
    }

    /// Installs an assignment in which the node has this replica, and enters the epoch.
    pub(crate) fn install(&mut self, turn: &mut Turn<'_>, chain: &Chain, since: u8) {
        if self.since != since {
            if !turn.has(Mutant::KeepLeftovers) {
                let Self { lease, store, runs, .. } = *self;
                *self = Self { lease, store, runs, ..Self::default() };
            }
            self.since = since;
            self.caught_up = false;
        }
        let chain = chain.clone();
        self.place = Some(Volatile { chain, settled: false, sent: 0, copied: Bits::default() });
        if !self.is_learner(turn) {
            self.caught_up = true;
        }
        if turn.has(Mutant::DropPending) {
            self.pending.clear();
        }
        for write in self.pending.clone() {
            if self.is_last(turn) {
                self.commit_pending(turn, write.version);
            }
        }
        self.settle(turn);
    }

    /// Stops and comes back with its disk: assignment, lease and what was known of versions above
    /// `stable` are gone.
    pub(crate) fn restart(&mut self) {
        self.lease = false;
        self.committed = Bits::default();
        if self.place.take().is_some_and(|place| place.sent > 0) {
            self.runs += 1;
        }
    }

    /// Whether there is a tombstone that may be collected.
    pub(crate) fn may_collect(&self) -> bool {
        let Record { version, value } = self.record;
        let tombstone = version > 0 && value == Value::default();
        tombstone && version <= self.stable && self.caught_up
    }

    /// Collects it.
    pub(crate) fn collect(&mut self) {
        self.collected = self.collected.max(self.record.version);
        self.record = Record::default();
    }

    /// The tail's next piece of a copy, if there is one to send now.
    pub(crate) fn next_piece(&self, turn: &Turn<'_>) -> Option<Piece> {
        let place = self.place.as_ref()?;
        if !place.chain.has_learner || place.chain.tail() != Some(turn.me) {
            return None;
        }
        match place.sent {
            0 => Some(Piece::Record(self.record)),
            1 if turn.has(Mutant::DropSessions) => Some(Piece::Sessions([None; 3], Bits(0))),
            1 if turn.has(Bug::MarksStayBehind) => Some(Piece::Sessions(self.sessions, Bits(0))),
            1 => Some(Piece::Sessions(self.sessions, self.ended.and(self.registrations(turn)))),
            2 if place.copied == Bits(3) => {
                Some(Piece::End(self.newest, self.stable, self.collected))
            }
            _ => None,
        }
    }

    /// The requests of clients of which there is a session: low-water marks travel with those.
    fn registrations(&self, turn: &Turn<'_>) -> Bits {
        let held = (0..).zip(turn.requests).filter(|(number, _)| self.session(*number).is_some());
        let clients: Bits = held.map(|(_, request)| request.client).collect();
        let all = (0..).zip(turn.requests).filter(|(_, request)| clients.has(request.client));
        all.map(|(number, _)| number).collect()
    }

    /// The tail sends it.
    pub(crate) fn send_piece(&mut self, turn: &mut Turn<'_>) {
        let (piece, way) = (self.next_piece(turn), self.way(turn, Chain::successor));
        if let (Some(piece), Some(way), Some(place)) = (piece, way, &mut self.place) {
            place.sent += 1;
            turn.sent.push(Message::Copy(way, self.runs, piece));
        }
    }

    /// CHAIN_COPIED, as the tail takes it.
    pub(crate) fn take_copied(&mut self, epoch: u8, run: u8, piece: Piece) {
        let number = match piece {
            Piece::Record(_) => 0,
            Piece::Sessions(..) => 1,
            Piece::End(..) => return,
        };
        if let Some(place) = &mut self.place
            && self.lease
            && place.chain.epoch == epoch
            && self.runs == run
            && place.sent > number
        {
            place.copied.insert(number);
        }
    }

    /// The learner takes a piece of the copy.
    fn take_piece(&mut self, turn: &Turn<'_>, piece: Piece) {
        if self.caught_up && !turn.has(Bug::CaughtUpTakesPieces) {
            return;
        }
        match piece {
            Piece::Record(record) => {
                let newer = record.version > self.record.version;
                if newer || turn.has(Mutant::CopyOverwrites) {
                    self.record = record;
                }
            }
            Piece::Sessions(sessions, ended) => {
                for (request, outcome) in (0..).zip(sessions) {
                    if let Some(outcome) = outcome.filter(|_| !self.knows(request)) {
                        self.keep_outcome(request, outcome, ended);
                    }
                }
                self.ended = self.ended.or(ended);
            }
            Piece::End(newest, stable, collected) => {
                self.newest = self.newest.max(newest);
                self.collected = self.collected.max(collected);
                self.raise_stable(stable);
                self.caught_up = true;
            }
        }
        if turn.has(Mutant::CaughtUpTooSoon) {
            self.caught_up = true;
        }
    }
}
