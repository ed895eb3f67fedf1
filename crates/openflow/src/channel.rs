//! The channel to a switch as a machine (6.3): it begins with a HELLO, and then the switch does
//! what it is asked for, one thing after the other.

use crate::flow::{COOKIE, COOKIE_MASK, Exits, any_flow, defaults, entry, flow};
use crate::message::{HEADER_LEN, Request, Said, VERSION, echo, len, read};
use content::{Change, Entry};
use machine::Instant;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use wire::AddressPrefix;

/// How far the beginning of a channel has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The switch has not said which versions it speaks.
    Greeting,
    /// It has not said what it is.
    Asking,
    /// It takes requests.
    Ready,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All changes are made but these; why those are not.
    Done(BTreeMap<AddressPrefix, String>),
    /// What the switch has of ours.
    Has {
        /// Its entries.
        entries: Vec<Entry>,
        /// How many packets each has matched, in the same order.
        packets: Vec<u64>,
        /// Whether what becomes of all other packets is said as well.
        defaults: bool,
    },
}

/// Why a channel has to be closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelError {
    /// The switch speaks other versions only.
    Version,
    /// It says something that is not OpenFlow 1.3.
    Unsound,
    /// It says nothing.
    Silent,
    /// It refuses something without which there is no content table.
    Refused(String),
}

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version => f.write_str("the switch does not speak OpenFlow 1.3"),
            Self::Unsound => f.write_str("the switch says something that is not OpenFlow 1.3"),
            Self::Silent => f.write_str("the switch does not answer"),
            Self::Refused(why) => write!(f, "the switch refuses what a content table takes: {why}"),
        }
    }
}

impl std::error::Error for ChannelError {}

/// A channel. Whoever drives it sends what [`take_out`](Self::take_out) has, and hands in what
/// comes.
#[derive(Debug)]
pub struct Channel {
    stage: Stage,
    datapath: u64,
    tables: u8,
    /// Bytes of a message that is not whole.
    received: Vec<u8>,
    out: Vec<u8>,
    next: u32,
    pending: Option<Pending>,
    answer: Option<Answer>,
    heard: Instant,
    /// When the switch was asked whether it is there, if it has said nothing since.
    asked: Option<Instant>,
}

/// What the switch has not answered yet.
#[derive(Debug)]
enum Pending {
    /// These changes, by their numbers, and the barrier behind them.
    Changes { of: BTreeMap<u32, AddressPrefix>, refused: BTreeMap<AddressPrefix, String> },
    /// What it has; the part of it that has come.
    Flows(Vec<(Entry, u64)>, usize, Exits),
}

impl Channel {
    /// A channel to a switch that has just connected.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        let mut channel = Self {
            stage: Stage::Greeting,
            datapath: 0,
            tables: 0,
            received: Vec::new(),
            out: Vec::new(),
            next: 1,
            pending: None,
            answer: None,
            heard: now,
            asked: None,
        };
        channel.ask(Request::Hello);
        channel
    }

    /// How far it has come.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The number of the switch, and of its tables, when it has said so.
    #[must_use]
    pub fn features(&self) -> (u64, u8) {
        (self.datapath, self.tables)
    }

    /// Asks for these changes. Those to members without an exit are refused at once.
    pub fn change(&mut self, changes: &[Change], exits: &Exits) {
        let (mut of, mut refused) = (BTreeMap::new(), BTreeMap::new());
        for Change { prefix, via } in changes {
            let request = match via.map(|via| (via, exits.get(&via))) {
                None => Request::Remove(any_flow(*prefix), COOKIE_MASK),
                Some((via, Some(exit))) => Request::Add(flow(*prefix, via, *exit)),
                Some((via, None)) => {
                    refused.insert(*prefix, format!("nobody says where {via} is"));
                    continue;
                }
            };
            of.insert(self.ask(request), *prefix);
        }
        self.ask(Request::Barrier);
        self.pending = Some(Pending::Changes { of, refused });
    }

    /// Says what becomes of packets that nothing else is said about. They are passed on as by a
    /// switch without OpenFlow.
    pub fn say_defaults(&mut self) {
        for flow in defaults() {
            self.ask(Request::Add(flow));
        }
    }

    /// Takes all of ours out but for that, with one request.
    pub fn clear(&mut self) {
        self.ask(Request::RemoveAll { cookie: COOKIE, mask: COOKIE_MASK });
        self.say_defaults();
        self.ask(Request::Barrier);
        self.pending = Some(Pending::Changes { of: BTreeMap::new(), refused: BTreeMap::new() });
    }

    /// Asks what the switch has of ours; what does not lead there as these say leads to nobody.
    pub fn list(&mut self, exits: &Exits) {
        self.ask(Request::Flows { cookie: COOKIE, mask: COOKIE_MASK });
        self.pending = Some(Pending::Flows(Vec::new(), 0, exits.clone()));
    }

    /// What became of what was asked for last, once.
    pub fn take_answer(&mut self) -> Option<Answer> {
        self.answer.take()
    }

    /// Bytes for the switch.
    pub fn take_out(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// Time passes.
    ///
    /// # Errors
    ///
    /// If nothing has been heard for too long.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), ChannelError> {
        match self.asked {
            Some(asked) if now >= asked + ANSWER_WAIT => Err(ChannelError::Silent),
            None if now >= self.heard + ECHO_AFTER => {
                self.asked = Some(now);
                if self.stage == Stage::Ready {
                    self.ask(Request::Echo);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Takes what the switch has sent.
    ///
    /// # Errors
    ///
    /// If the channel has to be closed.
    pub fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) -> Result<(), ChannelError> {
        (self.heard, self.asked) = (now, None);
        self.received.extend(bytes);
        let received = std::mem::take(&mut self.received);
        let mut rest = received.as_slice();
        while let Some(len) = len(rest) {
            if len < HEADER_LEN {
                return Err(ChannelError::Unsound);
            }
            let Some((message, after)) = rest.split_at_checked(len) else { break };
            let (number, said) = read(message).ok_or(ChannelError::Unsound)?;
            self.handle(number, said)?;
            rest = after;
        }
        self.received = rest.to_vec();
        Ok(())
    }

    fn handle(&mut self, number: u32, said: Said<'_>) -> Result<(), ChannelError> {
        match said {
            Said::Hello { highest, versions } => {
                let speaks = versions.map_or(highest >= VERSION, |all| all >> VERSION & 1 == 1);
                if !speaks {
                    return Err(ChannelError::Version);
                }
                if self.stage == Stage::Greeting {
                    self.stage = Stage::Asking;
                    self.ask(Request::Features);
                }
            }
            Said::Features { datapath, tables } => {
                (self.datapath, self.tables, self.stage) = (datapath, tables, Stage::Ready);
            }
            Said::Echo(content) => echo(&mut self.out, number, content),
            Said::Error { kind, code, .. } => self.refuse(number, kind, code)?,
            Said::Barrier => {
                if let Some(Pending::Changes { refused, .. }) = self.pending.take() {
                    self.answer = Some(Answer::Done(refused));
                }
            }
            Said::Flows(flows, more) => self.found(flows, more),
            Said::Echoed | Said::Other => {}
        }
        Ok(())
    }

    fn found(&mut self, flows: Vec<Option<crate::message::Counted>>, more: bool) {
        let Some(Pending::Flows(entries, others, exits)) = &mut self.pending else { return };
        for counted in flows.into_iter().flatten() {
            match entry(&counted.flow, exits) {
                Some(entry) => entries.push((entry, counted.packets)),
                None => *others += usize::from(defaults().contains(&counted.flow)),
            }
        }
        if more {
            return;
        }
        let defaults = *others == defaults().len();
        let (entries, packets) = std::mem::take(entries).into_iter().unzip();
        self.answer = Some(Answer::Has { entries, packets, defaults });
        self.pending = None;
    }

    fn refuse(&mut self, number: u32, kind: u16, code: u16) -> Result<(), ChannelError> {
        let why = match (kind, code) {
            (HELLO_FAILED, _) => return Err(ChannelError::Version),
            (FLOW_MOD_FAILED, TABLE_FULL) => "its table is full".to_owned(),
            (kind, code) => format!("it complains with an error of type {kind}, code {code}"),
        };
        let Some(Pending::Changes { of, refused }) = &mut self.pending else {
            return Err(ChannelError::Refused(why));
        };
        let prefix = of.get(&number).ok_or(ChannelError::Refused(why.clone()))?;
        refused.insert(*prefix, why);
        Ok(())
    }

    fn ask(&mut self, request: Request) -> u32 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        request.push(&mut self.out, number);
        number
    }
}

/// `OFPET_HELLO_FAILED`.
const HELLO_FAILED: u16 = 0;
/// `OFPET_FLOW_MOD_FAILED`.
const FLOW_MOD_FAILED: u16 = 5;
/// `OFPFMFC_TABLE_FULL`.
const TABLE_FULL: u16 = 1;

/// A switch that has said nothing for so long is asked whether it is there.
const ECHO_AFTER: Duration = Duration::from_secs(2);

/// How long it may take to answer; a switch that makes a batch of changes may take some.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
