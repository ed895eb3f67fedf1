//! The thread that moves datagrams between the socket and the machine.

use crate::face::{Command, Driver};
use crate::port::Port;
use mio::{Events, Poll, Token};
use std::io;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::Duration;

/// The socket can be read.
pub(super) const SOCKET: Token = Token(0);
/// There are commands.
pub(super) const COMMANDS: Token = Token(1);

/// What the thread owns.
pub(super) struct Io {
    pub(super) driver: Driver,
    pub(super) port: Port,
    pub(super) poll: Poll,
    pub(super) commands: Receiver<Command>,
}

impl Io {
    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(2);
        loop {
            let received = self.port.receive(&mut self.driver);
            if !self.take_commands() {
                self.driver.say_goodbye();
                self.port.transmit(&mut self.driver);
                return;
            }
            self.port.transmit(&mut self.driver);
            let wait = match received {
                // There may be more.
                Ok(()) => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.driver.idle_time(self.driver.now())
                }
                // What the network said about a datagram sent earlier: it will be sent again.
                Err(_) => Some(Duration::ZERO),
            };
            match self.poll.poll(&mut events, wait) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Without it nobody would ever be answered: those who wait are told so.
                Err(_) => return,
            }
        }
    }

    /// Hands commands to the machine as long as it has room, and outcomes to those who wait; false
    /// once there is nobody left.
    fn take_commands(&mut self) -> bool {
        let now = self.driver.now();
        loop {
            // Outcomes make room for commands, and some commands have their outcome at once.
            self.driver.advance(now);
            if !self.driver.takes_commands() {
                return true;
            }
            match self.commands.try_recv() {
                Ok(command) => self.driver.submit(now, command),
                Err(TryRecvError::Empty) => return true,
                Err(TryRecvError::Disconnected) => return false,
            }
        }
    }
}
