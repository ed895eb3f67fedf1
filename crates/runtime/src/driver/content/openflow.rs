//! A switch that speaks OpenFlow 1.3, and connects to this process.

use super::{Device, DeviceKind, Sweep};
use crate::clock::Clock;
use cluster::{Capabilities, TableSizes};
use content::{Budget, Change, Entry};
use machine::Instant;
use openflow::{Answer, Channel, Exits, Part, Stage};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::num::NonZero;
use std::time::Duration;
use wire::{AddressPrefix, ContentClass};

/// Where switches connect, and the one that has done so.
pub(super) struct OpenFlowSwitch {
    listener: TcpListener,
    exits: Exits,
    rules_per_second: NonZero<u32>,
    budget: Budget,
    clock: Clock,
    /// The switch.
    link: Option<Link>,
    /// Who has connected last, and has not said who that is.
    stranger: Option<Link>,
    /// When all that the switch has is looked at next, whether or not something has happened.
    lists: Instant,
}

struct Link {
    stream: TcpStream,
    from: SocketAddr,
    channel: Channel,
}

impl OpenFlowSwitch {
    /// Waits there for a switch that takes so many changes in a second.
    pub(super) fn listen(
        at: SocketAddr,
        exits: Exits,
        rules_per_second: NonZero<u32>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        let mut clock = Clock::new();
        let now = clock.now();
        let budget = Budget::new(now, rules_per_second);
        Ok(Self {
            listener,
            exits,
            rules_per_second,
            budget,
            clock,
            link: None,
            stranger: None,
            lists: now,
        })
    }

    /// Sees who connects. Says whether that is the switch.
    fn accept(&mut self) -> Result<bool, String> {
        let now = self.clock.now();
        match self.listener.accept() {
            Ok((stream, from)) => {
                let ready = stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true));
                let channel = Channel::new(now, self.exits.clone());
                self.stranger = ready.ok().map(|()| Link { stream, from, channel });
            }
            Err(why) if why.kind() == ErrorKind::WouldBlock => {}
            Err(why) => return Err(format!("no switch can connect: {why}")),
        }
        let Some(mut stranger) = self.stranger.take() else { return Ok(false) };
        let from = stranger.from;
        match stranger.turn(now) {
            Ok(()) if stranger.channel.stage() == Stage::Ready => {}
            Ok(()) => {
                self.stranger = Some(stranger);
                return Ok(false);
            }
            Err(why) => {
                tracing::warn!(%from, %why, "a connection to the OpenFlow port is closed");
                return Ok(false);
            }
        }
        let (id, tables) = stranger.channel.features();
        let datapath = format!("{id:016x}");
        // The same one has been started anew, or has given its other connection up.
        let another = self.link.as_ref().is_some_and(|it| it.channel.features().0 != id);
        if another {
            tracing::warn!(%from, datapath, "a second OpenFlow switch is sent away");
            return Ok(false);
        }
        let waits = stranger.stream.set_nonblocking(false);
        let waits = waits.and_then(|()| stranger.stream.set_read_timeout(Some(PIECE)));
        let waits = waits.and_then(|()| stranger.stream.set_write_timeout(Some(ANSWER_MAX)));
        waits.map_err(|why| why.to_string())?;
        tracing::info!(%from, datapath, tables, "an OpenFlow switch has connected");
        self.link = Some(stranger);
        Ok(true)
    }

    /// Asks the switch for something, and waits for what becomes of it. If that fails, the
    /// connection is closed.
    fn ask(&mut self, ask: impl FnOnce(&mut Channel)) -> Result<Answer, String> {
        let link = self.link.as_mut().ok_or_else(|| NOBODY.to_owned())?;
        ask(&mut link.channel);
        let answer = link.wait(&mut self.clock);
        if answer.is_err() {
            self.link = None;
        }
        answer
    }

    /// Asks it for changes, and says which it has refused.
    fn change(
        &mut self,
        ask: impl FnOnce(&mut Channel),
    ) -> Result<BTreeMap<AddressPrefix, String>, String> {
        match self.ask(ask)? {
            Answer::Done(refused) => Ok(refused),
            Answer::Has { .. } => Err(OTHERWISE.to_owned()),
        }
    }

    /// What it has, with counts, and whether it knows what becomes of all other packets.
    fn has(&mut self, part: Part) -> Result<(Vec<(Entry, u64)>, bool), String> {
        match self.ask(|channel| channel.list(part))? {
            Answer::Has { entries, defaults } => Ok((entries, defaults)),
            Answer::Done(_) => Err(OTHERWISE.to_owned()),
        }
    }

    /// All that it has; what becomes of all other packets is said first.
    fn list(&mut self) -> Result<Vec<Entry>, String> {
        let began = self.clock.now();
        let (entries, defaults) = self.has(Part::All)?;
        if !defaults {
            self.change(|channel| {
                channel.say_defaults();
                channel.change(&[]);
            })?;
        }
        let now = self.clock.now();
        self.lists = now + LIST_EVERY.max(now.since(began) * LIST_PART);
        Ok(entries.into_iter().map(|(entry, _)| entry).collect())
    }
}

impl Link {
    /// Lets the channel work until the switch has answered.
    fn wait(&mut self, clock: &mut Clock) -> Result<Answer, String> {
        let give_up = clock.now() + ANSWER_MAX;
        loop {
            self.turn(clock.now())?;
            if let Some(answer) = self.channel.take_answer() {
                return Ok(answer);
            }
            if clock.now() >= give_up {
                return Err(format!("the switch at {} does not answer", self.from));
            }
        }
    }

    /// Sends what there is, and takes what comes.
    fn turn(&mut self, now: Instant) -> Result<(), String> {
        let told = |why: &dyn std::fmt::Display| format!("the switch at {}: {why}", self.from);
        self.stream.write_all(&self.channel.take_out()).map_err(|why| told(&why))?;
        let mut room = [0; ROOM];
        match self.stream.read(&mut room) {
            Ok(0) => return Err(format!("the switch at {} has gone", self.from)),
            Ok(len) => {
                let bytes = room.get(..len).unwrap_or_default();
                self.channel.handle_bytes(now, bytes).map_err(|why| told(&why))?;
            }
            Err(why) if matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(why) => return Err(told(&why)),
        }
        self.channel.handle_timeout(now).map_err(|why| told(&why))?;
        self.stream.write_all(&self.channel.take_out()).map_err(|why| told(&why))
    }
}

impl Device for OpenFlowSwitch {
    fn kind(&self) -> DeviceKind {
        let capabilities = Capabilities { counts: true, ..Capabilities::ADDRESSES };
        let changes_per_second = Some(self.rules_per_second.get());
        DeviceKind { plane: "openflow", capabilities, changes_per_second }
    }

    fn sizes(&self) -> TableSizes {
        let (rules, prefixes) = self.link.as_ref().map_or((None, None), |it| it.channel.sizes());
        // A prefix for each class.
        let partitions = prefixes.map(|prefixes| u64::from(prefixes) / CLASSES);
        TableSizes { partitions, hot_keys: None, rules: rules.map(u64::from) }
    }

    fn look(
        &mut self,
        must: bool,
        _: &dyn Fn(AddressPrefix) -> Option<Ipv6Addr>,
    ) -> Result<Option<Vec<Entry>>, String> {
        let new = self.accept()?;
        let now = self.clock.now();
        let link = self.link.as_mut().ok_or_else(|| NOBODY.to_owned())?;
        if let Err(why) = link.turn(now) {
            self.link = None;
            return Err(why);
        }
        (new || must || now >= self.lists).then(|| self.list()).transpose()
    }

    fn room(&self, now: Instant) -> usize {
        self.budget.allowed(now)
    }

    fn apply(
        &mut self,
        now: Instant,
        changes: &[Change],
    ) -> Result<BTreeMap<AddressPrefix, String>, String> {
        self.budget.spend(now, changes.len());
        self.change(|channel| channel.change(changes))
    }

    fn sweeps(&self) -> bool {
        true
    }

    fn sweep(&mut self, now: Instant, what: Sweep) -> Result<(), String> {
        self.budget.spend(now, 1);
        let refused = self.change(|channel| match what {
            Sweep::RulesTo(member) => channel.sweep(member),
            Sweep::All => channel.clear(),
        });
        refused.map(|_| ())
    }

    fn counts(&mut self) -> Result<Option<Vec<(AddressPrefix, u64)>>, String> {
        let (entries, defaults) = self.has(Part::Prefixes)?;
        if !defaults {
            // Somebody has taken them out, and what else?
            self.lists = self.clock.now();
        }
        Ok(Some(entries.into_iter().map(|(entry, packets)| (entry.prefix, packets)).collect()))
    }
}

/// Prefixes of a partition.
const CLASSES: u64 = ContentClass::ALL.len() as u64;

/// Why nothing can be done.
const NOBODY: &str = "no switch is connected";

/// The other thing that is wrong.
const OTHERWISE: &str = "the switch answers something else than it was asked";

/// For how long to wait for something to come. Then there may be something to send, or to do.
const PIECE: Duration = Duration::from_millis(2);

/// Bytes that are taken at once.
const ROOM: usize = 64 << 10;

/// How long a switch may take for a batch of changes: slow ones make some hundreds in a second.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// How often all that a switch has is looked at, if nothing else is a reason to: somebody may have
/// changed its flows, of which it says nothing.
const LIST_EVERY: Duration = Duration::from_secs(10);

/// That takes a switch this part of its time at most.
const LIST_PART: u32 = 20;
