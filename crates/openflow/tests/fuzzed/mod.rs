//! What a switch may say to whoever has it do something: anything, in any portions.
//!
//! An input is a list of items, each a byte that says what it is, one that says how long, and as
//! many bytes: of the switch, or of what is wanted of it.

use content::Change;
use machine::Instant;
use openflow::{Answer, Channel, ChannelError, Exit, Exits, Part, Stage};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::Duration;
use wire::AddressPrefix;

/// What an item is: what the switch says, unless it is one of these.
pub(crate) const CHANGE: u8 = 1;
/// The same: the switch is asked what it has.
pub(crate) const LIST: u8 = 2;
/// The same: of its prefixes.
pub(crate) const LIST_PREFIXES: u8 = 3;
/// The same: all that leads to the member is to go.
pub(crate) const SWEEP: u8 = 4;
/// The same: everything is to go.
pub(crate) const CLEAR: u8 = 5;
/// The same: the defaults are to be there.
pub(crate) const DEFAULTS: u8 = 6;
/// The same: so many seconds pass.
pub(crate) const WAIT: u8 = 7;

/// Bytes of a change: where it leads, the length of a prefix, and an address.
const CHANGE_LEN: usize = 18;

/// The member that has an exit.
pub(crate) const MEMBER: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 1, 2);

/// Fails if the channel panics, sends what is no OpenFlow 1.3, or takes the same bytes for
/// something else when they come one by one. Gives how far the channel has come, and how often it
/// has said what became of something.
pub(crate) fn openflow(bytes: &[u8]) -> (Stage, usize) {
    let whole = talk(bytes, usize::MAX);
    let dripped = talk(bytes, 1);
    assert_eq!(whole, dripped);
    assert_sound(&whole.sent);
    (whole.stage, whole.answers.len())
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
struct Talk {
    stage: Stage,
    features: (u64, u8),
    sizes: (Option<u32>, Option<u32>),
    sent: Vec<u8>,
    answers: Vec<Answer>,
    ended: Option<ChannelError>,
}

/// Everything that is said comes in portions of so many bytes.
fn talk(mut items: &[u8], portion: usize) -> Talk {
    let mut now = Instant::from_unix_ms(1_000);
    let mut channel = Channel::new(now, exits());
    let (mut sent, mut answers, mut ended) = (channel.take_out(), Vec::new(), None);
    while let (None, Some(([what, len], rest))) = (&ended, items.split_first_chunk()) {
        let (item, rest) = rest.split_at(usize::from(*len).min(rest.len()));
        items = rest;
        // Nobody asks a switch for something before it is ready, or twice at once.
        match *what {
            CHANGE if channel.stage() == Stage::Ready => channel.change(&changes(item)),
            LIST if channel.stage() == Stage::Ready => channel.list(Part::All),
            LIST_PREFIXES if channel.stage() == Stage::Ready => channel.list(Part::Prefixes),
            SWEEP if channel.stage() == Stage::Ready => channel.sweep(MEMBER),
            CLEAR if channel.stage() == Stage::Ready => channel.clear(),
            DEFAULTS if channel.stage() == Stage::Ready => channel.say_defaults(),
            WAIT => {
                now = now + Duration::from_secs(u64::from(*len));
                ended = channel.handle_timeout(now).err();
            }
            _ => {
                let mut portions = item.chunks(portion);
                ended = portions.find_map(|bytes| channel.handle_bytes(now, bytes).err());
            }
        }
        sent.extend(channel.take_out());
        answers.extend(channel.take_answer());
    }
    let (stage, features, sizes) = (channel.stage(), channel.features(), channel.sizes());
    Talk { stage, features, sizes, sent, answers, ended }
}

fn exits() -> Exits {
    let mac = "02:4b:57:00:01:02".parse().expect("an address");
    [(MEMBER, Exit { mac, port: Some(2) })].into_iter().collect()
}

/// To the member, to nobody that is known, and away.
fn changes(bytes: &[u8]) -> Vec<Change> {
    let (all, _) = bytes.as_chunks::<CHANGE_LEN>();
    let change = |[via, len, addr @ ..]: &[u8; CHANGE_LEN]| {
        let via = match via % 3 {
            0 => None,
            1 => Some(MEMBER),
            _ => Some(Ipv6Addr::LOCALHOST),
        };
        let bits = u128::from_be_bytes(*addr);
        let len = *len % 129;
        let addr = bits.checked_shr((128 - len).into()).unwrap_or(0);
        let addr = addr.checked_shl((128 - len).into()).unwrap_or(0).into();
        Change { prefix: AddressPrefix { addr, len }, via }
    };
    all.iter().map(change).collect()
}

/// Whole messages of version 1.3, each as long as it says.
fn assert_sound(mut sent: &[u8]) {
    let mut numbers = BTreeMap::new();
    while let Some([version, kind, high, low, number @ ..]) = sent.first_chunk::<8>() {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        assert!(*version == 4 && len >= 8, "{sent:?}");
        // Numbers of answers are the switch's.
        if *kind != ECHO_REPLY {
            let number = u32::from_be_bytes(*number);
            assert_eq!(numbers.insert(number, *kind), None, "a number is used once");
        }
        sent = sent.get(len..).expect("it is whole");
    }
    assert!(sent.is_empty(), "{sent:?}");
}

/// `OFPT_ECHO_REPLY`.
const ECHO_REPLY: u8 = 3;
