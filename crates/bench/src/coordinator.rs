//! Coordinators on sockets: for a process of their own, or beside the clients of a run.

use super::directory::Directory;
use anyhow::{Context, anyhow};
use client::Coordinator;
use console::exit::Failure;
use machine::{Datagram, Rng};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use runtime::clock::Clock;
use runtime::net::{Inbound, Outbound, Socket};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// How often a newer map is asked for, if nothing says that there is one.
const MAP_EVERY: Duration = Duration::from_secs(1);

/// How often it is looked whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Drives a coordinator on a socket, by the newest map, until it is over.
pub fn coordinate(
    socket: &Socket,
    services: &[SocketAddr],
    directory: &Directory,
    over: &AtomicBool,
) -> Result<(), Failure> {
    let draw = || runtime::entropy::draw().context("cannot draw an id");
    let address = socket.local().into();
    let mut machine = Coordinator::new(address, services, draw()?.max(1), Rng::new(draw()?));
    let mut map = directory.latest();
    machine.install(&map);
    let mut clock = Clock::new();
    let mut map_at = clock.now();
    let (mut inbound, mut outbound) =
        (Inbound::new(socket.family()), Outbound::new(socket.family()));
    while !over.load(Ordering::Relaxed) {
        let received = inbound.receive(socket).context("cannot receive")?;
        let now = clock.now();
        for datagram in inbound.iter_mut() {
            machine.handle_packet(now, datagram.from, datagram.payload);
        }
        if now >= map_at || machine.wants_map() {
            map_at = now + MAP_EVERY;
            if let Some(newer) = directory.after(map.revision) {
                machine.install(&newer);
                map = newer;
            }
        }
        if machine.poll_timeout().is_some_and(|at| at <= now) {
            machine.handle_timeout(now);
        }
        while let Some(Datagram { to, payload, .. }) = machine.poll_transmit() {
            outbound.push(to, payload);
            if outbound.is_full() {
                outbound.send(socket);
            }
        }
        outbound.send(socket);
        if received == 0 {
            let due = machine.poll_timeout().map_or(LOOK_EVERY, |at| at.since(clock.now()));
            let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
            match ppoll(&mut fds, Some(TimeSpec::from_duration(due.min(LOOK_EVERY))), None) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(Failure::Other(anyhow!("cannot wait: {errno}"))),
            }
        }
    }
    Ok(())
}

/// Coordinators on threads of this process, which end with it.
#[derive(Debug)]
pub struct Coordinators {
    addresses: Vec<SocketAddr>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Coordinators {
    /// As many as there are nodes, at addresses of this host that nodes reach.
    pub fn start(services: &[SocketAddr], directory: &Arc<Directory>) -> Result<Self, Failure> {
        let service = services.first().context("no service address")?;
        let probe = UdpSocket::bind((unspecified(*service), 0)).context("cannot open a socket")?;
        probe.connect(service).context("no way to the switch")?;
        let here = probe.local_addr().context("no address")?.ip();
        let over = Arc::new(AtomicBool::new(false));
        let mut started = Self { addresses: Vec::new(), over, threads: Vec::new() };
        for node in &directory.latest().nodes {
            let socket = Socket::bind((here, 0).into()).context("cannot open a socket")?;
            started.addresses.push(socket.local());
            let (services, directory) = (services.to_vec(), Arc::clone(directory));
            let over = Arc::clone(&started.over);
            let thread = Builder::new().name(format!("{COORDINATOR}{}", node.id.0));
            let thread = thread.spawn(move || {
                // Clients ask elsewhere when one does not answer any more.
                coordinate(&socket, &services, &directory, &over).ok();
            });
            started.threads.push(thread.context("cannot start a thread")?);
        }
        Ok(started)
    }

    /// Where they are.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl Drop for Coordinators {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().ok();
        }
    }
}

fn unspecified(like: SocketAddr) -> std::net::IpAddr {
    match like {
        SocketAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// What the names of their threads begin with.
pub(crate) const COORDINATOR: &str = "coordinator-";
