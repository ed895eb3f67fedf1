//! The task of the async face: datagrams between the socket and the machine, commands to it.
//!
//! Each time it is woken it takes all that has come, then sends all that is to be sent: commands of
//! many callers share their way through the kernel.

use super::shared::SharedDriver;
use crate::face::{Command, Driver};
use crate::port::Port;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep};

/// Batches taken from the socket before anything is sent: bounds how long a caller waits.
const RECEIVE_BATCHES_MAX: usize = 16;

/// What the task owns.
pub(super) struct Io {
    shared: SharedDriver,
    port: Port,
    /// The port's, to wait on.
    socket: UdpSocket,
    commands: mpsc::Receiver<Command>,
    alarm: Alarm,
    /// Nobody will hand in commands any more.
    closed: bool,
}

impl Io {
    pub(super) fn new(
        shared: SharedDriver,
        port: Port,
        socket: UdpSocket,
        commands: mpsc::Receiver<Command>,
    ) -> Self {
        Self { shared, port, socket, commands, alarm: Alarm::default(), closed: false }
    }

    /// Goes on until nobody has the client any more.
    pub(super) async fn run(mut self) {
        while !self.closed {
            self.turn();
            poll_fn(|context| self.poll_work(context)).await;
        }
    }

    /// Lets the machine go on, and sends what it has to say.
    fn turn(&mut self) {
        let Self { shared, port, alarm, .. } = self;
        let mut held = shared.lock();
        let Some(driver) = held.driver() else { return };
        let now = driver.now();
        driver.advance(now);
        port.transmit(driver);
        alarm.set(driver.idle_time(now));
    }

    /// Takes what has come in. Ready if anything has, or the machine wants to be told the time.
    fn poll_work(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Self { shared, port, socket, commands, alarm, closed } = self;
        let mut held = shared.lock();
        let mut any = held.takes_begun(context);
        let Some(driver) = held.driver() else { return Poll::Ready(()) };
        // An error here comes out of the attempt to receive as well.
        if socket.poll_recv_ready(context).is_ready() {
            receive(driver, port, socket);
            any = true;
        }
        if driver.takes_commands() {
            any |= poll_commands(driver, commands, closed, context);
        }
        any |= alarm.poll(context).is_ready();
        if any { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Hands all commands that wait to the machine; whether there was anything to do.
fn poll_commands(
    driver: &mut Driver,
    commands: &mut mpsc::Receiver<Command>,
    closed: &mut bool,
    context: &mut Context<'_>,
) -> bool {
    let Poll::Ready(first) = commands.poll_recv(context) else { return false };
    let Some(first) = first else {
        *closed = true;
        return true;
    };
    let now = driver.now();
    driver.submit(now, first);
    while driver.takes_commands()
        && let Ok(command) = commands.try_recv()
    {
        driver.submit(now, command);
    }
    true
}

/// Takes what has arrived. What the network said about a datagram sent earlier is passed over: it
/// will be sent again.
fn receive(driver: &mut Driver, port: &mut Port, socket: &UdpSocket) {
    for _ in 0..RECEIVE_BATCHES_MAX {
        // What would block tells the runtime to wait for the next datagram.
        let received = socket.try_io(Interest::READABLE, || port.receive(driver));
        if received.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            return;
        }
    }
}

/// Also when the runtime ends before the last clone, and its tasks with it.
impl Drop for Io {
    fn drop(&mut self) {
        let Some(mut driver) = self.shared.lock().take() else { return };
        driver.say_goodbye();
        self.port.transmit(&mut driver);
        driver.close();
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
