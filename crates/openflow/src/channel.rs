//! The channel to a switch as a machine (6.3): it begins with a HELLO, and then the switch does
//! what it is asked for, one thing after the other.

use crate::flow::{
    COOKIE, COOKIE_MASK, ENTRY, ENTRY_MASK, Exits, PREFIXES, RULES, any_flow, defaults,
};
use crate::message::{ALL_TABLES, Counted, HEADER_LEN, Request, Said, VERSION, echo, len, read};
use content::{Change, Entry};
use machine::Instant;
use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv6Addr;
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
    /// What the switch has of ours, or what of that was asked for.
    Has {
        /// Its entries, and how many packets each has matched.
        entries: Vec<(Entry, u64)>,
        /// Whether what becomes of all other packets is said as well.
        defaults: bool,
    },
}

/// What a switch is asked to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All entries.
    All,
    /// The prefixes of partitions: a table that is small, and says how much they are asked for.
    Prefixes,
}

impl Part {
    fn table(self) -> u8 {
        match self {
            Self::All => ALL_TABLES,
            Self::Prefixes => PREFIXES,
        }
    }

    /// The defaults among it.
    fn defaults(self) -> usize {
        match self {
            Self::All => defaults().len(),
            Self::Prefixes => 1,
        }
    }
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
    exits: Exits,
    stage: Stage,
    datapath: u64,
    tables: u8,
    /// How many flows tables take, if the switch has said so, and the number of the question.
    sizes: BTreeMap<u8, u32>,
    sizes_asked: Option<u32>,
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
    /// What it has; the entries that have come, and how many of the defaults.
    Flows { part: Part, entries: Vec<(Entry, u64)>, defaults: usize },
}

impl Channel {
    /// A channel to a switch that has just connected, and has these exits to members.
    #[must_use]
    pub fn new(now: Instant, exits: Exits) -> Self {
        let mut channel = Self {
            exits,
            stage: Stage::Greeting,
            datapath: 0,
            tables: 0,
            sizes: BTreeMap::new(),
            sizes_asked: None,
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

    /// How many rules and how many prefixes the switch takes, as far as it has said so.
    #[must_use]
    pub fn sizes(&self) -> (Option<u32>, Option<u32>) {
        // One flow says what becomes of all other packets.
        let of = |table| self.sizes.get(&table).map(|flows| flows.saturating_sub(1));
        (of(RULES), of(PREFIXES))
    }

    /// Asks for these changes. Those to members without an exit are refused at once.
    pub fn change(&mut self, changes: &[Change]) {
        let (mut of, mut refused) = (BTreeMap::new(), BTreeMap::new());
        for Change { prefix, via } in changes {
            let request = match via.map(|via| (via, self.exits.flow(*prefix, via))) {
                None => Request::Remove(any_flow(*prefix), ENTRY_MASK),
                Some((_, Some(flow))) => Request::Add(flow),
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

    /// Takes all entries out, with one request.
    pub fn clear(&mut self) {
        self.remove_all(Some((ALL_TABLES, ENTRY, ENTRY_MASK)));
    }

    /// Takes all rules that lead to a member out, with one request.
    pub fn sweep(&mut self, member: Ipv6Addr) {
        // Where it is unknown where one is, nothing leads there.
        let cookie = self.exits.cookie(member);
        self.remove_all(cookie.map(|it| (RULES, it, u64::MAX)));
    }

    fn remove_all(&mut self, of: Option<(u8, u64, u64)>) {
        if let Some((table, cookie, mask)) = of {
            self.ask(Request::RemoveAll { table, cookie, mask });
        }
        self.ask(Request::Barrier);
        self.pending = Some(Pending::Changes { of: BTreeMap::new(), refused: BTreeMap::new() });
    }

    /// Asks what the switch has of ours. What does not lead to its member as the exits say leads to
    /// nobody.
    pub fn list(&mut self, part: Part) {
        self.ask(Request::Flows { table: part.table(), cookie: COOKIE, mask: COOKIE_MASK });
        self.pending = Some(Pending::Flows { part, entries: Vec::new(), defaults: 0 });
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
                self.sizes_asked = Some(self.ask(Request::Tables));
            }
            // It need not say that.
            Said::Error { .. } if Some(number) == self.sizes_asked => {}
            Said::Echo(content) => echo(&mut self.out, number, content),
            Said::Error { kind, code, .. } => self.refuse(number, kind, code)?,
            Said::Barrier => {
                if let Some(Pending::Changes { refused, .. }) = self.pending.take() {
                    self.answer = Some(Answer::Done(refused));
                }
            }
            Said::Tables(sizes, _) => self.sizes.extend(sizes),
            Said::Flows(flows, more) => self.found(flows, more),
            Said::Echoed | Said::Other => {}
        }
        Ok(())
    }

    fn found(&mut self, flows: Vec<Option<Counted>>, more: bool) {
        let Some(Pending::Flows { part, entries, defaults: said }) = &mut self.pending else {
            return;
        };
        for Counted { flow, packets } in flows.into_iter().flatten() {
            match self.exits.entry(&flow) {
                Some(entry) => entries.push((entry, packets)),
                None => *said += usize::from(defaults().contains(&flow)),
            }
        }
        if !more {
            let (entries, defaults) = (std::mem::take(entries), *said == part.defaults());
            self.answer = Some(Answer::Has { entries, defaults });
            self.pending = None;
        }
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
