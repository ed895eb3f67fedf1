//! The task of the async face: datagrams between the socket and the machine, commands to it.
//!
//! Each time it is woken it takes all that has come, then sends all that is to be sent: commands of
//! many callers share their way through the kernel.

use crate::datagrams::{self, Outgoing};
use crate::face::{Command, Driver, RECEIVE_BATCHES_MAX};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep};

/// What the task owns.
pub(super) struct Io {
    driver: Driver,
    socket: UdpSocket,
    commands: mpsc::Receiver<Command>,
    outgoing: Outgoing,
    alarm: Alarm,
    /// Nobody will hand in commands any more.
    closed: bool,
}

impl Io {
    pub(super) fn new(
        driver: Driver,
        socket: UdpSocket,
        commands: mpsc::Receiver<Command>,
    ) -> Self {
        let (outgoing, alarm) = (Outgoing::default(), Alarm::default());
        Self { driver, socket, commands, outgoing, alarm, closed: false }
    }

    /// Goes on until nobody has the client any more.
    pub(super) async fn run(mut self) {
        while !self.closed {
            self.driver.advance(self.driver.now());
            self.transmit();
            self.alarm.set(self.driver.idle_time());
            poll_fn(|context| self.poll_work(context)).await;
        }
        self.transmit();
    }

    /// Takes what has come in. Ready if anything has, or the machine wants to be told the time.
    fn poll_work(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut any = false;
        // An error here comes out of the attempt to receive as well.
        if self.socket.poll_recv_ready(context).is_ready() {
            self.receive();
            any = true;
        }
        if self.driver.takes_commands() {
            any |= self.poll_commands(context);
        }
        any |= self.alarm.poll(context).is_ready();
        if any { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Hands all commands that wait to the machine; whether there was anything to do.
    fn poll_commands(&mut self, context: &mut Context<'_>) -> bool {
        let Poll::Ready(first) = self.commands.poll_recv(context) else { return false };
        let Some(first) = first else {
            self.closed = true;
            return true;
        };
        let now = self.driver.now();
        self.driver.submit(now, first);
        while self.driver.takes_commands()
            && let Ok(command) = self.commands.try_recv()
        {
            self.driver.submit(now, command);
        }
        true
    }

    fn transmit(&mut self) {
        while let Some(datagram) = self.driver.machine.poll_transmit() {
            self.outgoing.push(&self.socket, datagram);
        }
        self.outgoing.send(&self.socket);
    }

    fn receive(&mut self) {
        let Self { driver, socket, .. } = self;
        for _ in 0..RECEIVE_BATCHES_MAX {
            let now = driver.now();
            // What would block tells tokio to wait for the next datagram.
            let receive = || {
                let take =
                    |from, datagram: &[u8]| driver.machine.handle_packet(now, from, datagram);
                let drained = datagrams::receive(socket, take);
                if drained { Err(io::Error::from(io::ErrorKind::WouldBlock)) } else { Ok(()) }
            };
            if socket.try_io(Interest::READABLE, receive).is_err() {
                return;
            }
        }
    }
}

/// When the machine wants to be told the time. It may be told too early, but not too late: answers
/// put its next timer off all the time, and a timer of the runtime is not moved for each.
#[derive(Default)]
struct Alarm {
    sleep: Option<Pin<Box<Sleep>>>,
    is_set: bool,
}

impl Alarm {
    /// Goes off in this time at the latest; `None` if it need not.
    fn set(&mut self, idle: Option<Duration>) {
        let Some(idle) = idle else {
            self.is_set = false;
            return;
        };
        let at = Instant::now() + idle;
        match &mut self.sleep {
            None => self.sleep = Some(Box::pin(sleep(idle))),
            Some(sleep) if self.is_set && sleep.deadline() <= at => {}
            Some(sleep) => sleep.as_mut().reset(at),
        }
        self.is_set = true;
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(sleep) = self.sleep.as_mut().filter(|_| self.is_set) else {
            return Poll::Pending;
        };
        let over = sleep.as_mut().poll(context);
        self.is_set = over.is_pending();
        over
    }
}
