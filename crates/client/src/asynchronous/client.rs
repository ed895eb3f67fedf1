//! The socket, its task, and the way there and back.

use super::io::Io;
use super::shared::SharedDriver;
use crate::face::{COMMANDS_MAX, Command, Driver, Known, Question};
use crate::port::Port;
use crate::{Options, Outcome, Refusal, Reply, Services, UnknownReason};
use std::sync::Arc;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

/// A client of one cluster. Clones share its socket and its task, which ends with the last one.
///
/// A future that is dropped before its outcome does not take its request back: a write goes on to
/// its end, and nobody learns how it ended.
#[derive(Clone, Debug)]
pub struct Client {
    commands: mpsc::Sender<Command>,
    pub(super) shared: SharedDriver,
    pub(super) known: Arc<Known>,
    pub(super) options: Options,
}

impl Client {
    /// Opens a socket and spawns the task that serves it on the current runtime, whose I/O and time
    /// must be enabled. Nothing is sent yet: whether anybody answers, the first request will tell.
    ///
    /// # Errors
    ///
    /// If the system has no socket left, and `InvalidInput` if there is no service address, more
    /// than [`SERVICES_MAX`](crate::SERVICES_MAX), or IPv4 and IPv6 among them. If the pass of the
    /// process has had as many clients as it can.
    ///
    /// # Panics
    ///
    /// If the options are outside the bounds that they state.
    #[expect(clippy::unused_async, reason = "only inside a runtime can the task be spawned")]
    pub async fn connect(services: impl Into<Services>, options: Options) -> std::io::Result<Self> {
        let services = services.into();
        let seat = options.seat()?;
        let port = Port::bind(&services, seat.as_ref())?;
        let socket = UdpSocket::from_std(port.socket()?)?;
        let shared = SharedDriver::new(Driver::new(services, &options, seat.as_ref()));
        let (sender, commands) = mpsc::channel(COMMANDS_MAX);
        tokio::spawn(Io::new(shared.clone(), port, socket, commands).run());
        Ok(Self { commands: sender, shared, known: Arc::default(), options })
    }

    pub(super) fn ask(&self, question: Question) -> impl Future<Output = Outcome<Reply>> + Send {
        let begun = self.begin(question);
        async move { begun.await.await.unwrap_or(Outcome::Unknown(UnknownReason::Closed)) }
    }

    /// Starts a request; its outcome comes out of what is returned. The question is handed over at
    /// once, so that the future is small; only one that has to wait for its turn is kept.
    #[expect(clippy::async_yields_async, reason = "whoever begins several waits for them later")]
    pub(super) fn begin(
        &self,
        question: Question,
    ) -> impl Future<Output = oneshot::Receiver<Outcome<Reply>>> + Send {
        let (sender, answer) = oneshot::channel();
        // Who has dropped the future does not want to know.
        let deliver = Box::new(move |outcome| drop(sender.send(outcome)));
        let waits = match self.commands.try_send(Command { question, deliver }) {
            Ok(()) => None,
            Err(TrySendError::Full(command)) => Some(Box::pin(self.send(command))),
            Err(TrySendError::Closed(command)) => {
                refuse(command);
                None
            }
        };
        async move {
            if let Some(waits) = waits {
                waits.await;
            }
            answer
        }
    }

    async fn send(&self, command: Command) {
        if let Err(unsent) = self.commands.send(command).await {
            refuse(unsent.0);
        }
    }
}

/// Nobody will ever take the command.
fn refuse(command: Command) {
    (command.deliver)(Outcome::Refused(Refusal::Closed));
}
