//! The socket, its thread, and the way there and back.

use super::io::{COMMANDS, Io, SOCKET};
use crate::face::{COMMANDS_MAX, Command, Driver, Known, Question};
use crate::port::Port;
use crate::{Options, Outcome, Refusal, Reply, Services, UnknownReason};
use mio::unix::SourceFd;
use mio::{Interest, Poll, Waker};
use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// A client of one cluster. Clones share its socket and its thread, which ends with the last one:
/// it tells the cluster so, and waits for nothing.
#[derive(Clone, Debug)]
pub struct Client {
    pub(super) shared: Arc<Shared>,
}

/// What its clones share.
#[derive(Debug)]
pub(super) struct Shared {
    /// Taken only when the last client is dropped.
    commands: Option<SyncSender<Command>>,
    waker: Waker,
    thread: Option<JoinHandle<()>>,
    pub(super) known: Known,
    pub(super) options: Options,
}

impl Client {
    /// Opens a socket and starts the thread that serves it. Nothing is sent yet: whether anybody
    /// answers, the first request will tell.
    ///
    /// # Errors
    ///
    /// If the system has no socket or no thread left, and `InvalidInput` if there is no service
    /// address, more than [`SERVICES_MAX`](crate::SERVICES_MAX), or IPv4 and IPv6 among them. If
    /// the pass of the process has had as many clients as it can.
    ///
    /// # Panics
    ///
    /// If the options are outside the bounds that they state.
    pub fn connect(services: impl Into<Services>, options: Options) -> io::Result<Self> {
        let services = services.into();
        let seat = options.seat()?;
        let port = Port::bind(&services, seat.as_ref())?;
        let driver = Driver::new(services, &options, seat.as_ref());
        let poll = Poll::new()?;
        let socket = port.as_raw_fd();
        poll.registry().register(&mut SourceFd(&socket), SOCKET, Interest::READABLE)?;
        let waker = Waker::new(poll.registry(), COMMANDS)?;
        let (sender, commands) = sync_channel(COMMANDS_MAX);
        let io = Io { driver, port, poll, commands };
        let thread =
            std::thread::Builder::new().name("keyway-client".into()).spawn(move || io.run())?;
        let known = Known::default();
        let shared = Shared { commands: Some(sender), waker, thread: Some(thread), known, options };
        Ok(Self { shared: Arc::new(shared) })
    }

    pub(super) fn ask(&self, question: Question) -> Outcome<Reply> {
        self.begin(question).recv().unwrap_or(Outcome::Unknown(UnknownReason::Closed))
    }

    /// Starts a request; its outcome comes out of what is returned.
    pub(super) fn begin(&self, question: Question) -> Receiver<Outcome<Reply>> {
        let (sender, answer) = sync_channel(1);
        let closed = sender.clone();
        // Who does not want to know any more has dropped the other end.
        let deliver = Box::new(move |outcome| drop(sender.send(outcome)));
        let sent = match &self.shared.commands {
            Some(commands) => commands.send(Command { question, deliver }).is_ok(),
            None => false,
        };
        if !sent {
            drop(closed.send(Outcome::Refused(Refusal::Closed)));
        } else if self.shared.waker.wake().is_err() {
            drop(closed.try_send(Outcome::Unknown(UnknownReason::Closed)));
        }
        answer
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.commands = None;
        let woken = self.waker.wake();
        if let (Ok(()), Some(thread)) = (woken, self.thread.take()) {
            // A panic of that thread has been printed; there is nobody left to tell.
            drop(thread.join());
        }
    }
}
