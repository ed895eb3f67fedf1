//! `keyway coordinator`: takes multigets apart in the switch's place, to compare with it.

use anyhow::{Context, anyhow};
use client::Coordinator;
use cluster::Map;
use console::admin::Admin;
use console::answer::Answer;
use console::exit::{Failure, Verdict};
use console::logs::Logs;
use console::out;
use console::parse;
use console::shared::Shared;
use machine::{Datagram, Rng};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use runtime::clock::Clock;
use runtime::net::{Inbound, Outbound, Socket};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

/// Take multigets apart in the switch's place, to compare with it.
///
/// Takes whole multigets at its address, sends each node its keys, and answers when all are there.
/// Nothing in a cluster needs it. Runs until it is interrupted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway coordinator --listen 127.0.0.1:7790
  keyway bench --mix mget:32=1 --multigets 127.0.0.1:7790")]
pub struct Args {
    /// Where it takes multigets, and nodes answer: no wildcard address.
    #[arg(long, value_name = "HOST:PORT", value_parser = parse::address)]
    listen: SocketAddr,
    #[command(flatten)]
    logs: Logs,
}

/// How often the map is fetched.
const MAP_EVERY: Duration = Duration::from_secs(1);

/// How long the controller may take to say it.
const MAP_WAIT_MAX: Duration = Duration::from_secs(5);

impl Args {
    /// Carries the command out.
    pub fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        self.logs.start("warn")?;
        if self.listen.ip().is_unspecified() {
            let why = "--listen: nodes answer to this address, so it must be one of this host";
            return Err(Failure::usage(why));
        }
        let admin = Admin::new(&shared.admins, MAP_WAIT_MAX);
        let map = admin.map()?;
        let socket = Socket::bind(self.listen).context("cannot open a socket")?;
        let (want, wanted) = sync_channel(1);
        let (sender, maps) = channel();
        if shared.json {
            let answer = Answer::new("ready").with("coordinator", socket.local());
            answer.with("pid", std::process::id()).print()?;
        } else {
            out::line(&format!("coordinator ready at {}", socket.local()))?;
        }
        thread::scope(|scope| {
            scope.spawn(|| fetch(&admin, wanted, sender));
            serve(&socket, &map, want, &maps)
        })
    }
}

/// Fetches the map whenever it is wanted.
fn fetch(admin: &Admin, wanted: Receiver<()>, to: Sender<Map>) {
    for () in wanted {
        // A controller that does not answer may do so the next time; the last map holds till then.
        if let Ok(map) = admin.map()
            && to.send(map).is_err()
        {
            return;
        }
    }
}

/// Drives the machine.
fn serve(
    socket: &Socket,
    map: &Map,
    want: SyncSender<()>,
    maps: &Receiver<Map>,
) -> Result<Verdict, Failure> {
    let draw = || runtime::entropy::draw().context("cannot draw an id");
    let address = socket.local().into();
    let mut machine = Coordinator::new(address, draw()?.max(1), Rng::new(draw()?));
    machine.install(map);
    let mut clock = Clock::new();
    let mut revision = map.revision;
    let mut map_at = clock.now();
    let (mut inbound, mut outbound) =
        (Inbound::new(socket.family()), Outbound::new(socket.family()));
    loop {
        let received = inbound.receive(socket).context("cannot receive")?;
        let now = clock.now();
        for datagram in inbound.iter_mut() {
            machine.handle_packet(now, datagram.from, datagram.payload);
        }
        if now >= map_at {
            map_at = now + MAP_EVERY;
            // A full channel says that the last one is still being fetched.
            want.try_send(()).ok();
        }
        if let Some(map) = maps.try_iter().last().filter(|map| map.revision > revision) {
            revision = map.revision;
            machine.install(&map);
        }
        if machine.poll_timeout().is_some_and(|at| at <= now) {
            machine.handle_timeout(now);
        }
        while let Some(Datagram { to, payload }) = machine.poll_transmit() {
            outbound.push(to, payload);
            if outbound.is_full() {
                outbound.send(socket);
            }
        }
        outbound.send(socket);
        if received == 0 {
            let due = machine.poll_timeout().map_or(MAP_EVERY, |at| at.since(clock.now()));
            let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
            match ppoll(&mut fds, Some(TimeSpec::from_duration(due.min(MAP_EVERY))), None) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(Failure::Other(anyhow!("cannot wait: {errno}"))),
            }
        }
    }
}
