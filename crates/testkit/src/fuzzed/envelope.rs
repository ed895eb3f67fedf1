//! Envelopes: what somebody sends to a switch, a node, a cache or a client, who may have keys or
//! not, and what somebody else changes on the way.
//!
//! An input is of this form: who sends it, who receives it, how, where it is changed (2 bytes) and
//! by which bits; then a packet, or a datagram of somebody without keys.

use envelope::{
    Allowed, ClientEnvelopes, ClientOpened, Counts, ENVELOPE_LEN, Key, MemberEnvelopes, MemberRole,
    Pass, PassNumber, Passes, Period, Refused, Rights, RightsTable, Ring, RingPorts, Secret,
};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;
use wire::{Endpoint, Fields as _, HEADER_LEN, Op};

/// Bytes before the packet or datagram.
pub(super) const FORM_LEN: usize = 6;
/// How: by somebody without keys, who has made all of it.
pub(super) const MADE_UP: u8 = 0;
/// How: by somebody with keys.
pub(super) const SEALED: u8 = 1;
/// Who: the parties in their order.
const PARTIES: [Party; 5] =
    [Party::Switch, Party::Node, Party::Cache, Party::Client, Party::Reader];
/// The place of the switch among them.
pub(super) const SWITCH: u8 = 0;
/// The place of the node.
pub(super) const NODE: u8 = 1;
/// The place of the client that may do everything.
pub(super) const CLIENT: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Party {
    Switch,
    Node,
    Cache,
    /// May do everything.
    Client,
    /// May read.
    Reader,
}

impl Party {
    fn address(self) -> Endpoint {
        let address = match self {
            Self::Switch => "10.0.0.1:7700",
            Self::Node => "10.0.0.2:7700",
            Self::Cache => "10.0.0.3:7700",
            Self::Client => "10.0.9.1:4444",
            Self::Reader => "10.0.9.2:4444",
        };
        address.parse::<SocketAddr>().unwrap().into()
    }

    fn is_client(self) -> bool {
        matches!(self, Self::Client | Self::Reader)
    }

    fn pass_number(self) -> PassNumber {
        PassNumber::new(u16::from(self == Self::Reader), 5).unwrap()
    }
}

const CURRENT: Period = Period(0x1_00fe);

fn secret() -> Secret {
    Secret::new([7; 32])
}

fn client(party: Party) -> ClientEnvelopes {
    let number = party.pass_number();
    let periods = secret().key_set(CURRENT, true).periods;
    let periods = periods.iter().map(|it| it.of_client(number).unwrap()).collect();
    let ticket = Key([0; 16]);
    let pass = Pass { number, ticket, current: CURRENT, periods, renew_in_ms: 1 };
    ClientEnvelopes::new(Passes::new(pass))
}

fn member(role: MemberRole) -> MemberEnvelopes {
    let mut it = MemberEnvelopes::new(role);
    it.set_keys(&secret().key_set(CURRENT, role != MemberRole::Switch));
    let members = [Party::Switch, Party::Node, Party::Cache];
    let members = members.map(|it| RingPorts { first: it.address().into(), ports: 1 });
    it.set_ring(Ring::new(&members, None));
    let read = Allowed { read: true, ..Allowed::default() };
    it.set_rights(RightsTable(vec![Rights { elsewhere: read, ..Rights::default() }]));
    it
}

/// Everybody, with their keys.
struct World {
    switch: MemberEnvelopes,
    node: MemberEnvelopes,
    cache: MemberEnvelopes,
    client: ClientEnvelopes,
    reader: ClientEnvelopes,
}

thread_local! {
    static WORLD: RefCell<World> = RefCell::new(World::new());
}

/// Nothing panics; what was made up or changed is refused by whoever reads it, and gets no cookie;
/// what is as it was written arrives, and only what its author may do. Gives how many have read it.
pub fn envelope(bytes: &[u8]) -> usize {
    let Some(([from, to, how, high, low, bits], rest)) = bytes.split_first_chunk::<FORM_LEN>()
    else {
        return 0;
    };
    let party = |place: &u8| PARTIES[usize::from(*place) % PARTIES.len()];
    let (from, to) = (party(from), party(to));
    WORLD.with_borrow_mut(|world| {
        world.begin();
        if *how == MADE_UP {
            assert!(world.receive(to, from, &mut rest.to_vec()).is_none(), "it was made up");
            return 0;
        }
        let packet = of_client(if from.is_client() { from } else { to }, rest);
        let Some(mut datagram) = world.seal(from, to, &packet) else { return 0 };
        let change = Change { at: u16::from_be_bytes([*high, *low]).into(), bits: *bits };
        let changed = change.make(&mut datagram);
        world.travel(from, to, datagram, &packet, changed)
    })
}

/// The packet as one of this client's, or of the one that may do everything, if it is a client's.
fn of_client(party: Party, packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if let Some(header) = packet.first_chunk_mut::<HEADER_LEN>().filter(|it| it.client() != 0) {
        let client = if party.is_client() { party } else { Party::Client };
        header.set_client(client.pass_number().client(2));
    }
    packet
}

/// What somebody on the way does.
struct Change {
    at: usize,
    bits: u8,
}

impl Change {
    /// Where it has changed something.
    fn make(&self, datagram: &mut [u8]) -> Option<usize> {
        let byte = datagram.get_mut(self.at).filter(|_| self.bits != 0)?;
        *byte ^= self.bits;
        Some(self.at)
    }
}

impl World {
    fn new() -> Self {
        Self {
            switch: member(MemberRole::Switch),
            node: member(MemberRole::Node),
            cache: member(MemberRole::Cache),
            client: client(Party::Client),
            reader: client(Party::Reader),
        }
    }

    /// Nothing of the input before is left that this one could meet.
    fn begin(&mut self) {
        (self.client, self.reader) = (client(Party::Client), client(Party::Reader));
        self.switch.end_turn();
    }

    fn member(&mut self, party: Party) -> Option<&mut MemberEnvelopes> {
        match party {
            Party::Switch => Some(&mut self.switch),
            Party::Node => Some(&mut self.node),
            Party::Cache => Some(&mut self.cache),
            Party::Client | Party::Reader => None,
        }
    }

    fn client(&mut self, party: Party) -> &mut ClientEnvelopes {
        if party == Party::Reader { &mut self.reader } else { &mut self.client }
    }

    /// The datagram in which this party sends a packet, with a cookie if it needs one.
    fn seal(&mut self, from: Party, to: Party, packet: &[u8]) -> Option<Vec<u8>> {
        if let Some(member) = self.member(from) {
            return Some([&member.seal(to.address(), packet)?[..], packet].concat());
        }
        let mut sent = Vec::new();
        let client = self.client(from);
        client.seal(Duration::ZERO, to.address(), packet, |it| sent = [it, packet].concat());
        let refused = self.member(to)?.open(from.address(), &mut sent).err()?;
        let mut cookie = refused.cookie?;
        let client = self.client(from);
        assert_eq!(client.open(to.address(), &mut cookie), Ok(ClientOpened::Cookie));
        let mut again = None;
        client.resend(|_, it, packet| again = Some([it, packet].concat()));
        again
    }

    /// What the party lets through. Each datagram that it does not is counted once.
    fn receive(&mut self, at: Party, from: Party, datagram: &mut [u8]) -> Option<Vec<u8>> {
        let Some(member) = self.member(at) else {
            let opened = self.client(at).open(from.address(), datagram);
            return match opened {
                Ok(ClientOpened::Packet(packet)) => Some(packet.to_vec()),
                Ok(ClientOpened::Cookie) => panic!("nobody has sent one"),
                Err(_) => None,
            };
        };
        let sum = |counts: &Counts| counts.iter().map(|(_, count)| count).sum::<u64>();
        let before = sum(member.counts());
        let opened = member.open(from.address(), datagram).map(|packet| packet.to_vec());
        let refused = u64::from(opened.is_err());
        assert_eq!(sum(member.counts()), before + refused);
        if let Err(Refused { cookie, .. }) = opened {
            assert_eq!(cookie, None, "only who has asked without one is sent one");
        }
        opened.ok()
    }

    /// From the party that has sealed it to those who can read it; how many have.
    fn travel(
        &mut self,
        from: Party,
        to: Party,
        mut datagram: Vec<u8>,
        packet: &[u8],
        changed: Option<usize>,
    ) -> usize {
        let Some(passed) = self.receive(to, from, &mut datagram) else { return 0 };
        if to != Party::Switch {
            expect(from, packet, &passed, changed.is_some());
            return 1;
        }
        // A switch sees what it looks at, the others the rest.
        assert!(changed.is_none_or(|at| at >= ENVELOPE_LEN + HEADER_LEN), "{changed:?}");
        let mut readers = 0;
        for next in PARTIES.into_iter().filter(|next| *next != Party::Switch) {
            let Some(envelope) = self.switch.seal(next.address(), &passed) else { continue };
            if let Some(read) = self.receive(next, to, &mut [&envelope[..], &passed].concat()) {
                expect(from, packet, &read, changed.is_some());
                readers += 1;
            }
        }
        readers
    }
}

/// What was read is what was written, by somebody who may.
fn expect(author: Party, written: &[u8], read: &[u8], changed: bool) {
    assert!(!changed, "it was changed on the way");
    assert_eq!(read, written);
    let op = Op::from_wire(read.first_chunk::<HEADER_LEN>().unwrap().op()).unwrap();
    let may = match author {
        Party::Client => !op.is_reply() && !op.is_chain() && !op.is_of_caches(),
        Party::Reader => matches!(op, Op::Get | Op::Mget | Op::Describe | Op::Goodbye),
        Party::Switch | Party::Node | Party::Cache => true,
    };
    assert!(may, "{op:?} of {author:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Header, hop_flag};

    fn input(from: u8, to: u8, packet: &[u8]) -> Vec<u8> {
        [&[from, to, SEALED, 0, 0, 0], packet].concat()
    }

    fn packet(op: Op, hop_flags: u8) -> Vec<u8> {
        let header = Header { client: 1, seq: 7, op: op as u8, hop_flags, ..Header::default() };
        let mut out = Vec::new();
        wire::emit(&mut out, &header, &[b"key"]);
        out
    }

    #[test]
    fn what_somebody_with_keys_sends_arrives_and_nothing_else_does() {
        let reader = 4;
        let (get, put) = (packet(Op::Get, 0), packet(Op::Put, 0));
        let direct = packet(Op::Get, hop_flag::DIRECT);
        let reply = packet(Op::GetReply, 0);
        let arrives: [(u8, u8, &[u8], usize); 8] = [
            (CLIENT, SWITCH, &get, 2),
            (CLIENT, SWITCH, &put, 2),
            (reader, SWITCH, &get, 2),
            (reader, SWITCH, &put, 0),
            (CLIENT, NODE, &direct, 1),
            (CLIENT, NODE, &get, 0),
            (NODE, CLIENT, &reply, 1),
            (NODE, SWITCH, &reply, 3),
        ];
        for (from, to, packet, readers) in arrives {
            let mut input = input(from, to, packet);
            assert_eq!(envelope(&input), readers, "from {from} to {to}");
            // As a datagram that nobody has sealed.
            input[2] = MADE_UP;
            assert_eq!(envelope(&input), 0);
            for at in 0..u16::try_from(ENVELOPE_LEN + packet.len()).unwrap() {
                let [high, low] = at.to_be_bytes();
                input[2..FORM_LEN].copy_from_slice(&[SEALED, high, low, 0x10]);
                assert_eq!(envelope(&input), 0, "byte {at} from {from} to {to}");
            }
        }
    }
}
