//! The loop in which a machine runs: one thread, one socket, one machine.
//!
//! Receive a batch, hand it to the machine, flush, send what it says. The thread waits (in one
//! system call, for datagrams, commands and the machine's next timer alike) only after the socket
//! was found empty, or had a single datagram; under load it never does. Where it has too little of
//! a processor it [pauses](pace) before it waits.

mod gate;
mod pace;
#[cfg(test)]
mod tests;

pub(crate) use gate::Gate;

use crate::clock::Clock;
use crate::fatal;
use crate::mailbox::{Inbox, Mail, Mailbox, mailbox};
use crate::net::{Inbound, Outbound, Received, Socket};
use machine::{Datagram, Instant};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{ClockId as WaitClock, ClockNanosleepFlags, clock_nanosleep};
use pace::Pace;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// A machine as the loop sees it.
pub(crate) trait Driven {
    /// What its handle may ask of it.
    type Command: Send + 'static;

    /// Carries a command out.
    fn handle_command(&mut self, now: Instant, command: Self::Command);

    /// Hears what datagrams it will take next, for whatever is better done for all of them at once.
    fn announce<'a>(&mut self, _payloads: impl Iterator<Item = &'a [u8]>) {}

    /// Takes a datagram.
    fn handle_datagram(&mut self, now: Instant, received: Received<'_>);

    /// Its timer has come.
    fn handle_timeout(&mut self, now: Instant);

    /// Looks whether something has ended that it waits for elsewhere, of which its waker was told.
    fn take_ended(&mut self, _now: Instant) -> Result<bool, String> {
        Ok(false)
    }

    /// Waits for all of that.
    fn wait_for_all(&mut self, _now: Instant) -> Result<(), String> {
        Ok(())
    }

    /// Lets go what rests on nothing that the batch did: it need not wait for the next.
    fn release(&mut self) {}

    /// Makes durable what the batch did, or begins to. After an error the process must end.
    fn flush(&mut self, now: Instant) -> Result<(), String>;

    /// The next datagram to send.
    fn poll_transmit(&mut self) -> Option<Datagram<'_>>;

    /// A turn is over, which began then: how long it took to do what there was to do, and how long
    /// with what was flushed and sent.
    fn end_turn(&mut self, _began: Instant, _worked: Duration, _took: Duration) {}

    /// So many datagrams could not be sent; for its counters.
    fn count_unsent(&mut self, datagrams: u64);

    /// When it wants to be called next.
    fn poll_timeout(&self) -> Option<Instant>;
}

/// A running thread. Dropping it stops the thread after the batch in hand and waits for that.
#[derive(Debug)]
pub(crate) struct Worker<C> {
    mailbox: Mailbox<C>,
    thread: Option<JoinHandle<()>>,
}

impl<C> Worker<C> {
    pub(crate) fn mailbox(&self) -> Mailbox<C> {
        self.mailbox.clone()
    }
}

impl<C> Drop for Worker<C> {
    fn drop(&mut self) {
        self.mailbox.stop();
        if let Some(thread) = self.thread.take() {
            // A panic has ended the process already.
            thread.join().expect("threads of machines end the process if they panic");
        }
    }
}

/// Starts a thread for the machine that `make` makes of the present by this clock, and of what
/// wakes the thread.
pub(crate) fn spawn<D: Driven>(
    name: &str,
    mut clock: Clock,
    socket: Socket,
    gate: Gate,
    make: impl FnOnce(Instant, Arc<Waker>) -> D + Send + 'static,
) -> io::Result<Worker<D::Command>> {
    let poll = Poll::new()?;
    let fd = socket.as_raw_fd();
    poll.registry().register(&mut SourceFd(&fd), SOCKET, Interest::READABLE)?;
    let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC)?;
    let fd = timer.as_fd().as_raw_fd();
    poll.registry().register(&mut SourceFd(&fd), ALARM, Interest::READABLE)?;
    let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
    let (mailbox, inbox) = mailbox(Arc::clone(&waker));
    let title = name.to_owned();
    let thread = Builder::new().name(name.to_owned()).spawn(move || {
        let _guard = fatal::EndOnPanic;
        let now = clock.now();
        let (machine, pace) = (make(now, waker), Pace::new(now));
        let inbound = Inbound::new(socket.family());
        let outbound = Outbound::new(socket.family());
        let events = Events::with_capacity(EVENTS_MAX);
        let alarm = Alarm { timer, at: None };
        let event_loop = EventLoop {
            poll,
            events,
            alarm,
            clock,
            inbox,
            socket,
            gate,
            inbound,
            outbound,
            machine,
            pace,
        };
        if let Err(why) = event_loop.run() {
            fatal::end(&title, &why);
        }
    })?;
    Ok(Worker { mailbox, thread: Some(thread) })
}

const SOCKET: Token = Token(0);
const WAKER: Token = Token(1);
const ALARM: Token = Token(2);
/// The socket, the waker and the alarm.
const EVENTS_MAX: usize = 3;

/// The poll waits for whole milliseconds, of these nanoseconds. A machine that wants to be called
/// sooner than after [`ALARM_MAX`] is called by the alarm, to the nanosecond.
const MS: u64 = 1_000_000;

/// Waits from here on begin in the poll, which takes no system call more, and end with one by the
/// alarm. Two waits where one would do are nothing in so long a time, but much in a shorter one: a
/// node that serves a request for 2.4 ms would be woken twice for each.
const ALARM_MAX: Duration = Duration::from_millis(10);

struct EventLoop<D: Driven> {
    poll: Poll,
    events: Events,
    alarm: Alarm,
    clock: Clock,
    inbox: Inbox<D::Command>,
    socket: Socket,
    gate: Gate,
    inbound: Inbound,
    outbound: Outbound,
    machine: D,
    pace: Pace,
}

impl<D: Driven> EventLoop<D> {
    /// Runs until told to stop. An error is one after which the process must end.
    fn run(mut self) -> Result<(), String> {
        loop {
            let received = self.inbound.receive(&self.socket);
            let received = received.map_err(|error| format!("cannot receive: {error}"))?;
            // Read after the batch was received, and again for every batch: a machine holds this
            // against its lease, and a process that was stopped here for a while must not serve
            // what came meanwhile as if no time had passed.
            let now = self.clock.now();
            self.pace.note_round(received);
            let ended = self.machine.take_ended(now)?;
            let commands = self.take_mail(now);
            self.open_batch();
            self.machine.announce(self.gate.packets(self.inbound.payloads()));
            for datagram in self.gate.received(self.inbound.iter_mut()) {
                self.machine.handle_datagram(now, datagram);
            }
            let due = self.machine.poll_timeout().is_some_and(|at| at <= now);
            if due {
                self.machine.handle_timeout(now);
            }
            if received > 0 || commands != Mailed::Nothing || due || ended {
                let worked = self.clock.now().since(now);
                self.machine.release();
                self.transmit();
                self.machine.flush(now)?;
                self.transmit();
                self.gate.end_turn();
                let took = self.clock.now().since(now);
                self.machine.end_turn(now, worked, took);
            }
            if commands == Mailed::Stop {
                self.machine.wait_for_all(now)?;
                self.transmit();
                return Ok(());
            }
            // Behind one that came alone there is hardly another yet, and if there is, the poll,
            // which is edge-triggered, says so: no system call is spent on looking.
            if received == 0 || received == 1 && self.inbound.is_last() {
                self.wait()?;
            }
        }
    }

    fn take_mail(&mut self, now: Instant) -> Mailed {
        let mut mailed = Mailed::Nothing;
        while let Some(mail) = self.inbox.take() {
            match mail {
                Mail::Stop => return Mailed::Stop,
                Mail::Command(command) => self.machine.handle_command(now, command),
            }
            mailed = Mailed::Commands;
        }
        mailed
    }

    fn open_batch(&mut self) {
        let Self { gate, inbound, outbound, socket, .. } = self;
        gate.look_at(inbound, |Datagram { from, to, payload }| {
            outbound.push_from(from, to, payload);
            if outbound.is_full() {
                // A cookie that is not sent is asked for again.
                outbound.send(socket);
            }
        });
    }

    fn transmit(&mut self) {
        let mut unsent = 0;
        while let Some(datagram) = self.machine.poll_transmit() {
            unsent += u64::from(!self.gate.push(&mut self.outbound, datagram));
            if self.outbound.is_full() {
                unsent += self.outbound.send(&self.socket);
            }
        }
        unsent += self.outbound.send(&self.socket);
        if unsent > 0 {
            self.machine.count_unsent(unsent);
        }
    }

    fn wait(&mut self) -> Result<(), String> {
        let mut now = self.clock.now();
        let pause = self.pace.pause(now);
        if !pause.is_zero() {
            let due = self.machine.poll_timeout().map_or(pause, |at| at.since(now));
            let pause = TimeSpec::from_duration(pause.min(due));
            // One that a signal has ended has been long enough.
            let flags = ClockNanosleepFlags::empty();
            let _ = clock_nanosleep(WaitClock::CLOCK_MONOTONIC, flags, &pause);
            now = self.clock.now();
        }
        let timeout = match self.machine.poll_timeout().map(|at| (at, at.since(now))) {
            Some((at, wait)) if !wait.is_zero() && wait < ALARM_MAX => {
                let set = self.alarm.set(at, wait);
                set.map_err(|errno| format!("cannot set a timer: {errno}"))?;
                None
            }
            // Never too long: what is left after that is shorter than the poll can wait.
            Some((_, wait)) => {
                Some(wait - Duration::from_nanos(u64::from(wait.subsec_nanos()) % MS))
            }
            None => None,
        };
        match self.poll.poll(&mut self.events, timeout) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(format!("cannot wait for datagrams: {error}")),
        }
        if self.events.iter().any(|event| event.token() == ALARM) {
            self.alarm.at = None;
        }
        Ok(())
    }
}

/// What wakes the thread to the nanosecond.
struct Alarm {
    timer: TimerFd,
    /// For when it is set. Most waits end because a datagram has come, and the next one is for the
    /// same instant.
    at: Option<Instant>,
}

impl Alarm {
    /// Sets it for this instant, which is so far away, unless it is.
    fn set(&mut self, at: Instant, wait: Duration) -> nix::Result<()> {
        if self.at == Some(at) {
            return Ok(());
        }
        let once = Expiration::OneShot(TimeSpec::from_duration(wait));
        self.timer.set(once, TimerSetTimeFlags::empty())?;
        self.at = Some(at);
        Ok(())
    }
}

/// What the mailbox held.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mailed {
    Nothing,
    Commands,
    Stop,
}
