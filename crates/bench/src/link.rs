//! A client machine on a socket of its own, driven by the thread that uses it.

use super::directory::Directory;
use super::plan;
use anyhow::{Context, anyhow};
use client::{
    Channel, Client, ClientConfig, Coordination, Outcome, Reply, RetransmitBounds, Routes,
};
use cluster::Keyspace;
use console::connect;
use console::exit::Failure;
use envelope::Passes;
use machine::{Datagram, Instant, Rng};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use runtime::clock::Clock;
use runtime::net::Socket;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;
use wire::{Endpoint, Revision};

/// One client, its socket and its clock.
#[derive(Debug)]
pub(crate) struct Link {
    clock: Clock,
    channel: Channel,
    services: Vec<SocketAddr>,
    pub(crate) client: Client,
    /// By what it coordinates itself, if it does: how new that is, and where it is answered.
    known: Option<(Arc<Directory>, Revision, SocketAddr)>,
}

impl Link {
    /// Opens a socket; nothing is sent yet.
    pub(crate) fn open(
        services: &[SocketAddr],
        deadline: Duration,
        retransmit: RetransmitBounds,
        in_flight_max: usize,
        passes: Option<&Passes>,
    ) -> Result<Self, Failure> {
        let any = if services.iter().any(SocketAddr::is_ipv6) {
            SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))
        } else {
            SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))
        };
        let socket = Socket::bind(any).context("cannot open a socket")?;
        let draw = || runtime::entropy::draw().context("cannot draw a client id");
        let seat = passes.map(|it| it.seat().context("the pass has had all its clients"));
        let seat = seat.transpose()?;
        let id = seat.as_ref().map_or_else(|| draw().map(|id| id.max(1)), |seat| Ok(seat.client()));
        let mut config = ClientConfig::new(services, id?);
        config.deadline = deadline;
        config.retransmit = retransmit;
        config.in_flight_max = in_flight_max;
        Ok(Self {
            clock: Clock::new(),
            channel: Channel::new(socket, seat.as_ref()),
            services: services.to_vec(),
            client: Client::new(config, Rng::new(draw()?)),
            known: None,
        })
    }

    /// Has somebody find the nodes that requests are for.
    pub(crate) fn coordinate(&mut self, coordination: &plan::Coordination) -> Result<(), Failure> {
        let coordination = match coordination {
            plan::Coordination::Switch => Coordination::Switch,
            plan::Coordination::Coordinators(all) => {
                Coordination::Coordinators(all.iter().map(|at| (*at).into()).collect())
            }
            plan::Coordination::Assisted(map) => {
                Coordination::Assisted(Arc::new(Routes::new(map, Endpoint::default())))
            }
            plan::Coordination::Client(directory) => {
                let reply_to = self.reachable().context("no way to the nodes")?;
                let map = directory.latest();
                let routes = Routes::new(&map, reply_to.into());
                self.known = Some((Arc::clone(directory), map.revision, reply_to));
                Coordination::Client(Arc::new(routes))
            }
        };
        self.client.coordinate(coordination);
        Ok(())
    }

    /// Goes by a newer map, if there is one; else it is asked for.
    fn renew_routes(&mut self) {
        let Some((directory, revision, reply_to)) = &mut self.known else { return };
        if let Some(map) = directory.after(*revision) {
            *revision = map.revision;
            let routes = Routes::new(&map, (*reply_to).into());
            self.client.coordinate(Coordination::Client(Arc::new(routes)));
        }
    }

    /// The address at which others reach the socket, which is bound to all of this host.
    fn reachable(&self) -> std::io::Result<SocketAddr> {
        let local = self.channel.socket().local();
        let probe = UdpSocket::bind((local.ip(), 0))?;
        probe.connect(self.services.as_slice())?;
        Ok(SocketAddr::new(probe.local_addr()?.ip(), local.port()))
    }

    /// The present.
    pub(crate) fn now(&mut self) -> Instant {
        self.clock.now()
    }

    /// Sends what there is to send, takes what has come, and waits, if nothing has, for a datagram,
    /// the client's timer or `until`.
    pub(crate) fn turn(&mut self, until: Instant) -> Result<(), Failure> {
        self.transmit();
        if self.receive()? == 0 {
            self.wait(until)?;
            self.receive()?;
        }
        let now = self.clock.now();
        if self.client.poll_timeout().is_some_and(|at| at <= now) {
            self.client.handle_timeout(now);
        }
        if self.client.wants_routes() {
            self.renew_routes();
        }
        Ok(())
    }

    /// Takes what has come; how many datagrams that were.
    fn receive(&mut self) -> Result<usize, Failure> {
        let now = self.clock.now();
        let Self { channel, client, .. } = self;
        let received = channel.receive(|from, packet| client.handle_packet(now, from, packet));
        Ok(received.context("cannot receive")?)
    }

    fn transmit(&mut self) {
        let now = self.clock.now();
        while let Some(Datagram { to, payload, .. }) = self.client.poll_transmit() {
            self.channel.push(now, to, payload);
        }
        self.channel.send();
    }

    fn wait(&mut self, until: Instant) -> Result<(), Failure> {
        let until = self.client.poll_timeout().map_or(until, |at| at.min(until));
        let left = until.since(self.clock.now());
        let mut fds = [PollFd::new(self.channel.socket().as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut fds, Some(TimeSpec::from_duration(left)), None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(Failure::Other(anyhow!("cannot wait for datagrams: {errno}"))),
        }
    }

    /// Asks what a keyspace is.
    pub(crate) fn describe(&mut self, name: &str) -> Result<Arc<Keyspace>, Failure> {
        let now = self.now();
        let started = self.client.describe(now, name);
        started.map_err(|error| Failure::usage(error.to_string()))?;
        loop {
            let next_look = self.now() + Duration::from_secs(1);
            self.turn(next_look)?;
            let Some((_, outcome)) = self.client.poll_outcome() else { continue };
            return match outcome {
                Outcome::Done(Reply::Describe(keyspace)) => Ok(Arc::new(keyspace)),
                Outcome::Done(other) => {
                    Err(Failure::Other(anyhow!("DESCRIBE was answered by {other:?}")))
                }
                Outcome::Refused(_) => Err(connect::no_such_keyspace(name)),
                Outcome::Unknown(_) => Err(connect::no_answer(&self.services)),
            };
        }
    }
}
