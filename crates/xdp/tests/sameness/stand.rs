//! A place to run the programs: a namespace of its own with one interface, whose other end shows
//! what is really sent.

use crate::wrapped::{Disguise, keys, ring};
use cluster::{Incarnation, Lease, SwitchControl as _, SwitchTables};
use machine::Instant;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, socket};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant as WallInstant};
use testkit::frame::{self, Addresses};
use testkit::oracle::counts::Counts;
use testkit::oracle::model::Sent;
use testkit::skip;
use testkit::wires::Room;
use wire::{Endpoint, Revision};
use xdp::{Plane, Program};

/// The service address.
pub(crate) const SERVICE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 9, 9, 9), 7700);
/// Whose address everything without a nearer way is sent to.
pub(crate) const GATEWAY: [u8; 6] = [2, 0, 0, 0, 1, 2];
/// That of the interface.
pub(crate) const OWN: [u8; 6] = [2, 0, 0, 0, 1, 1];

const NOW: Instant = Instant::from_unix_ms(1_000);
const INCARNATION: Incarnation = Incarnation(1);

/// The interface and its other end. Everything runs on the thread that made it, which is in the
/// namespace from then on.
pub(crate) struct Stand {
    pub(crate) ifindex: u32,
    far: OwnedFd,
    _room: Room,
}

/// A stand and the loaded program, or nothing, and that is said.
pub(crate) fn ready(test: &str) -> Option<(Stand, Program)> {
    let made = Stand::set_up().and_then(|stand| {
        let program = Program::load(SERVICE, None).map_err(|e| e.to_string())?;
        Ok((stand, program))
    });
    made.map_err(|why| skip::report(test, &why)).ok()
}

/// What came of a datagram.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The programs dealt with it.
    Dealt(Vec<Sent>),
    /// They left it to the kernel, as it was.
    Left,
}

impl Stand {
    /// Why it cannot be set up here, if so.
    pub(crate) fn set_up() -> Result<Self, String> {
        let room = Room::of_gateway()?;
        let far = room.run(listen).map_err(|e| e.to_string())?;
        let ifindex = nix::net::if_::if_nametoindex("near").map_err(|e| e.to_string())?;
        Ok(Self { ifindex, far, _room: room })
    }

    /// A switch that takes the interface for its port.
    pub(crate) fn switch(&self, program: impl Into<Arc<Program>>, leased: bool) -> Switch<'_> {
        let clock = now as fn() -> Instant;
        let mut plane = Plane::with_program(program, SERVICE, INCARNATION, clock).unwrap();
        plane.pretend_port(self.ifindex).unwrap();
        if leased {
            plane.renew(
                NOW,
                &Lease {
                    cluster: cluster::ClusterId(0),
                    incarnation: INCARNATION,
                    revision: Revision::NONE,
                    from: NOW,
                    duration_ms: 3_600_000,
                },
            );
        }
        Switch { stand: self, plane, disguise: None }
    }

    /// A switch whose packets are in envelopes, which those who use it see nothing of.
    pub(crate) fn sealed_switch(&self, program: impl Into<Arc<Program>>) -> Switch<'_> {
        let mut switch = self.switch(program, true);
        switch.plane.install_keys(&keys(Disguise::PERIOD)).unwrap();
        switch.disguise = Some(Disguise::default());
        switch
    }

    /// The next frame that came out at the other end, if there is one within this time.
    pub(crate) fn came_out(&self, patience: Duration) -> Option<Vec<u8>> {
        let end = WallInstant::now() + patience;
        let mut frame = vec![0; 4096];
        loop {
            match recv(self.far.as_raw_fd(), &mut frame, MsgFlags::MSG_DONTWAIT) {
                // The kernel's own (IPv6 makes itself known) do not begin like that.
                Ok(len) if frame.get(6..12) == Some(&OWN[..]) && frame[12..14] == [8, 0] => {
                    frame.truncate(len);
                    return Some(frame);
                }
                Ok(_) => {}
                Err(_) if WallInstant::now() >= end => return None,
                Err(_) => std::thread::yield_now(),
            }
        }
    }
}

fn now() -> Instant {
    NOW
}

fn listen() -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK;
    socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll)
}

/// A switch in the kernel that is handed one frame at a time.
pub(crate) struct Switch<'s> {
    stand: &'s Stand,
    pub(crate) plane: Plane<fn() -> Instant>,
    /// Puts packets into envelopes and takes them out.
    disguise: Option<Disguise>,
}

impl Switch<'_> {
    /// Installs tables and says how every node and cache with an IPv4 address is reached.
    pub(crate) fn install(&mut self, tables: &SwitchTables) {
        if let Some(disguise) = &mut self.disguise {
            disguise.ring = ring(tables);
            self.plane.install_ring(&disguise.ring).unwrap();
        }
        self.plane.install(tables).unwrap();
        for node in tables.nodes.iter().filter(|node| frame::v4(node.endpoint).is_some()) {
            let way = [mac(1, node.id.0), OWN];
            self.plane.set_way(node.id, self.stand.ifindex, way).unwrap();
        }
        for cache in tables.caches.iter().filter(|cache| frame::v4(cache.endpoint).is_some()) {
            let way = [mac(2, cache.id.0), OWN];
            self.plane.set_way_to_cache(cache.id, self.stand.ifindex, way).unwrap();
        }
    }

    /// Hands a datagram to the programs, as the driver and tc would.
    pub(crate) fn process(&self, from: Endpoint, datagram: &[u8]) -> Outcome {
        let Some(v4) = frame::v4(from) else { return Outcome::Left };
        let to = (*SERVICE.ip(), SERVICE.port());
        let framed = |bytes: &[u8]| {
            frame::build(&Addresses { dmac: OWN, smac: GATEWAY, from: v4, to }, bytes)
        };
        let Some(disguise) = &self.disguise else { return self.hand(&framed(datagram)) };
        match self.hand(&framed(&disguise.wrap(from, datagram))) {
            Outcome::Dealt(sent) => {
                let unwrap = |(to, bytes): Sent| (to, disguise.unwrap(to, &bytes, datagram));
                Outcome::Dealt(sent.into_iter().map(unwrap).collect())
            }
            Outcome::Left => Outcome::Left,
        }
    }

    /// A read as of a client that has a pass, if packets are in envelopes.
    pub(crate) fn named(&self, datagram: Vec<u8>) -> Vec<u8> {
        if self.disguise.is_some() { Disguise::named(datagram) } else { datagram }
    }

    /// Whether a datagram may come, and is not the socket's, if packets are in envelopes.
    pub(crate) fn takes(&self, from: Endpoint, datagram: &[u8]) -> bool {
        self.disguise.as_ref().is_none_or(|it| it.takes(from, datagram))
    }

    /// Hands a frame to the programs.
    pub(crate) fn hand(&self, whole: &[u8]) -> Outcome {
        let run = |name| self.plane.program().run(name, whole, self.stand.ifindex, 1).unwrap();
        let one = run("keyway_one");
        match one.action {
            XDP_DROP => Outcome::Dealt(Vec::new()),
            XDP_REDIRECT => Outcome::Dealt(vec![self.sent(&one.frame)]),
            XDP_PASS => {
                assert_eq!(one.frame, whole, "what is left to the kernel is untouched");
                let many = run("keyway_many");
                match many.action {
                    TC_ACT_OK => {
                        assert_eq!(many.frame, whole, "what is left to the kernel is untouched");
                        Outcome::Left
                    }
                    TC_ACT_SHOT => Outcome::Dealt(self.clones()),
                    TC_ACT_REDIRECT => {
                        let mut sent = self.clones();
                        sent.push(self.sent(&many.frame));
                        Outcome::Dealt(sent)
                    }
                    action => panic!("tc says {action}"),
                }
            }
            action => panic!("XDP says {action}"),
        }
    }

    /// Clones that were sent on. They are there when the program has returned.
    fn clones(&self) -> Vec<Sent> {
        let frames = std::iter::from_fn(|| self.stand.came_out(Duration::ZERO));
        frames.map(|frame| self.sent(&frame)).collect()
    }

    /// What a frame brings to whom. Everything around the datagram has to be right.
    fn sent(&self, whole: &[u8]) -> Sent {
        let (Addresses { dmac, smac, from, to }, datagram) = frame::parse(whole).unwrap();
        assert_eq!((smac, from), (OWN, (*SERVICE.ip(), SERVICE.port())));
        assert!(dmac[0] == 2, "somebody's address: {dmac:02x?}");
        let to = SocketAddrV4::new(to.0, to.1);
        (Endpoint::from(std::net::SocketAddr::V4(to)), datagram.to_vec())
    }

    /// What it has counted.
    pub(crate) fn counts(&self) -> Counts {
        let loads = self.plane.read_loads().unwrap();
        Counts::of(&self.plane.read_counters().unwrap(), &loads)
    }
}

/// The Ethernet address of a node or cache.
fn mac(kind: u8, id: u16) -> [u8; 6] {
    let [high, low] = id.to_be_bytes();
    [2, 0, 0, kind, high, low]
}

pub(crate) const XDP_DROP: u32 = 1;
pub(crate) const XDP_PASS: u32 = 2;
pub(crate) const XDP_REDIRECT: u32 = 4;
const TC_ACT_OK: u32 = 0;
const TC_ACT_SHOT: u32 = 2;
const TC_ACT_REDIRECT: u32 = 7;
