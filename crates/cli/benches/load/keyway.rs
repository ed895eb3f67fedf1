//! Keyway's datagrams, to the switch or past it.

use super::closed_loop::{Connection, Reply, Request};
use super::contents::{Contents, KEY_LEN};
use client::Routes;
use cluster::{Keyspace, Map, Match};
use runtime::net::{Inbound, Outbound, Socket};
use runtime::up::HASH_KEYSPACE;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use wire::{Body, Endpoint, Fields as _, Header, Op, Packet, PutBody};

/// Partitions of each keyspace.
pub(crate) const PARTITIONS: u32 = 128;

/// How a client reaches a cluster.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    pub(crate) service: SocketAddr,
    pub(crate) map: Map,
    /// The client's own address.
    local: Ipv4Addr,
}

impl Reach {
    /// Fetches the map from the controller's admin server.
    pub(crate) fn ask(admin: SocketAddr, service: SocketAddr, local: Ipv4Addr) -> Self {
        let answer = ureq::get(format!("http://{admin}/v1/map")).call();
        let map = answer.and_then(|mut answer| answer.body_mut().read_json());
        Self { service, map: map.expect("the admin server gives the map"), local }
    }

    /// The keyspace of all benchmarks.
    pub(crate) fn keyspace(&self) -> &Keyspace {
        self.map.keyspace(HASH_KEYSPACE).expect("every cluster has it")
    }

    /// A socket of a client.
    pub(crate) fn bind(&self) -> io::Result<Socket> {
        Socket::bind(SocketAddr::from((self.local, 0)))
    }
}

/// Who finds the node that serves a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coordination {
    /// The switch: requests go to the service address.
    Switch,
    /// The client: it grants what the switch would, and sends to the node itself.
    Client,
}

/// One socket of a client.
pub(crate) struct Keyway {
    socket: Socket,
    inbound: Inbound,
    outbound: Outbound,
    client: u64,
    /// The way to each key, if the client finds it itself.
    routes: Option<Routes>,
    known: Known,
    datagram: Vec<u8>,
}

/// What a client knows of its cluster and its keys.
#[derive(Debug)]
struct Known {
    keyspace: u16,
    service: Endpoint,
    keys: Vec<Hashed>,
}

/// What is computed of a key beforehand.
#[derive(Clone, Copy, Debug)]
struct Hashed {
    match_value: u128,
    keyhash: u64,
}

impl Keyway {
    /// A client with a map of its own.
    pub(crate) fn connect(
        reach: &Reach,
        contents: &Contents,
        coordination: Coordination,
    ) -> io::Result<Self> {
        let socket = reach.bind()?;
        let routes = (coordination == Coordination::Client)
            .then(|| Routes::new(&reach.map, socket.local().into()));
        Ok(Self {
            inbound: Inbound::new(socket.family()),
            outbound: Outbound::new(socket.family()),
            socket,
            client: runtime::entropy::draw()?,
            routes,
            known: Known::of(reach, contents),
            datagram: Vec::new(),
        })
    }
}

impl Known {
    /// What the map says of these keys.
    fn of(reach: &Reach, contents: &Contents) -> Self {
        let Reach { service, .. } = reach;
        let keyspace = reach.keyspace();
        Self {
            keyspace: keyspace.id.0,
            service: (*service).into(),
            keys: contents.names().map(|key| Hashed::of(key, keyspace)).collect(),
        }
    }

    /// The header of a request for one key, as a client sends it.
    fn header(&self, op: Op, index: usize) -> Header {
        let hashed = self.keys.get(index).expect("the index of a key");
        Header {
            op: op as u8,
            keyspace: self.keyspace,
            key_len: u16::try_from(KEY_LEN).expect("a short key"),
            match_value: hashed.match_value,
            keyhash: hashed.keyhash,
            ..Header::default()
        }
    }
}

impl Hashed {
    fn of(key: &[u8; KEY_LEN], keyspace: &Keyspace) -> Self {
        let Match(match_value) = keyspace.match_value(key);
        Self { match_value, keyhash: keyspace.keyhash(key) }
    }
}

impl Connection for Keyway {
    fn queue(&mut self, request: &Request<'_>) {
        let op = if request.value.is_some() { Op::Put } else { Op::Get };
        let header = Header {
            client: self.client,
            seq: request.seq,
            lag: u16::try_from(request.seq - request.oldest).expect("a small window"),
            ..self.known.header(op, request.index)
        };
        self.datagram.clear();
        match request.value {
            None => wire::emit(&mut self.datagram, &header, &[request.key]),
            Some(value) => {
                let fixed = PutBody { expiry_ms: 0 }.to_bytes();
                wire::emit(&mut self.datagram, &header, &[&fixed, request.key, value])
            }
        };
        let to = match &self.routes {
            None => self.known.service,
            Some(routes) => {
                let local = self.socket.local().into();
                routes.stamp(op, local, &mut self.datagram).expect("partitions leave no gap")
            }
        };
        self.outbound.push(to, &self.datagram);
    }

    fn send(&mut self) -> io::Result<()> {
        // What the kernel refuses is sent again like anything that gets lost.
        self.outbound.send(&self.socket);
        Ok(())
    }

    fn is_blocked(&self) -> bool {
        false
    }

    fn receive(&mut self, take: &mut dyn FnMut(u64, Reply<'_>)) -> io::Result<()> {
        self.inbound.receive(&self.socket)?;
        for received in self.inbound.iter_mut() {
            let packet = Packet::parse(received.payload);
            let packet = packet.unwrap_or_else(|reason| panic!("a reply is {}", reason.name()));
            let header = packet.header();
            assert_eq!(header.client(), self.client, "a reply to somebody else");
            let reply = match (packet.body(), header.code()) {
                (Ok(Body::GetReply(entry)), 0) => Reply::Value(entry.value),
                (Ok(Body::PutReply), 0) => Reply::Done,
                (body, code) => Reply::Failed(format!("{body:?}, code {code}")),
            };
            take(header.seq(), reply);
        }
        Ok(())
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn may_lose(&self) -> bool {
        true
    }
}
