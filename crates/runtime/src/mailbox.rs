//! Commands to a thread that waits for datagrams.

use mio::Waker;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel,
};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Where the owner of a thread drops commands.
#[derive(Debug)]
pub(crate) struct Mailbox<C> {
    sender: SyncSender<Mail<C>>,
    waker: Arc<Waker>,
}

/// The thread's end.
#[derive(Debug)]
pub(crate) struct Inbox<C>(Receiver<Mail<C>>);

/// What a thread finds in its inbox.
#[derive(Debug)]
pub(crate) enum Mail<C> {
    Command(C),
    /// Finish what was begun, then end.
    Stop,
}

/// Why a thread was not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MailError {
    /// Its mailbox is full.
    #[error("it is busy: its mailbox is full")]
    Full,
    /// It has ended.
    #[error("it has ended")]
    Ended,
    /// It is a controller, and another one is active.
    #[error("it stands by for the controller that leads{}", at(*.leader))]
    StandsBy {
        /// Where the admin server of that one is, if it is known.
        leader: Option<SocketAddr>,
    },
    /// It has not answered in time.
    #[error("it did not answer in time")]
    Silent,
}

fn at(leader: Option<SocketAddr>) -> String {
    leader.map_or_else(String::new, |at| format!(", at {at}"))
}

/// Commands waiting in a mailbox at most. A thread looks after every batch, so more than a few wait
/// only if it is stuck, and then more of them do not help.
const MAIL_MAX: usize = 64;

/// How long an answer is waited for by those who only look: longer than a slow disk takes for a
/// batch, shorter than people wait.
pub(crate) const ANSWER_WAIT_MAX: Duration = Duration::from_secs(2);

/// A mailbox whose thread waits in the poll that `waker` belongs to.
pub(crate) fn mailbox<C>(waker: Arc<Waker>) -> (Mailbox<C>, Inbox<C>) {
    let (sender, receiver) = sync_channel(MAIL_MAX);
    (Mailbox { sender, waker }, Inbox(receiver))
}

/// A place for one answer.
pub(crate) fn answer<T>() -> (SyncSender<T>, Answer<T>) {
    let (sender, receiver) = sync_channel(1);
    (sender, Answer(receiver))
}

/// Where the answer to a command goes.
#[derive(Debug)]
pub(crate) enum Reply<T> {
    /// To a thread that waits for nothing else.
    Thread(SyncSender<T>),
    /// To a task that waits beside others.
    Task(oneshot::Sender<T>),
}

impl<T> Reply<T> {
    /// Whoever asked may have given up waiting; then nobody needs the answer.
    pub(crate) fn send(self, answer: T) {
        match self {
            Self::Thread(sender) => drop(sender.try_send(answer)),
            Self::Task(sender) => drop(sender.send(answer)),
        }
    }
}

/// An answer to come.
#[derive(Debug)]
pub(crate) struct Answer<T>(Receiver<T>);

impl<T> Answer<T> {
    pub(crate) fn wait_for(self, patience: Duration) -> Result<T, MailError> {
        self.0.recv_timeout(patience).map_err(|error| match error {
            RecvTimeoutError::Timeout => MailError::Silent,
            RecvTimeoutError::Disconnected => MailError::Ended,
        })
    }
}

/// Asks every thread before it waits for the first, and gives the answers in the same order.
pub(crate) fn ask_all<C, T>(
    mailboxes: &[Mailbox<C>],
    patience: Duration,
    question: impl Fn(Reply<T>) -> C,
) -> Result<Vec<T>, MailError> {
    let ask = |mailbox: &Mailbox<C>| {
        let (sender, answer) = answer();
        mailbox.post(question(Reply::Thread(sender)))?;
        Ok(answer)
    };
    let answers: Vec<Answer<T>> = mailboxes.iter().map(ask).collect::<Result<_, MailError>>()?;
    answers.into_iter().map(|answer| answer.wait_for(patience)).collect()
}

/// The same without a thread that waits: what an answer costs is then what it costs to wake those
/// who ask and are asked.
pub(crate) async fn await_all<C, T>(
    mailboxes: &[Mailbox<C>],
    patience: Duration,
    question: impl Fn(Reply<T>) -> C,
) -> Result<Vec<T>, MailError> {
    let ask = |mailbox: &Mailbox<C>| {
        let (sender, answer) = oneshot::channel();
        mailbox.post(question(Reply::Task(sender)))?;
        Ok(answer)
    };
    let asked: Vec<_> = mailboxes.iter().map(ask).collect::<Result<_, MailError>>()?;
    let all = async {
        let mut answers = Vec::new();
        for answer in asked {
            answers.push(answer.await.map_err(|_| MailError::Ended)?);
        }
        Ok(answers)
    };
    timeout(patience, all).await.unwrap_or(Err(MailError::Silent))
}

/// Handles wait for other threads; the thread that others' tasks share must not.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    spawn_blocking(work).await.expect("handles do not panic, and nobody cancels them")
}

impl<C> Mailbox<C> {
    pub(crate) fn post(&self, command: C) -> Result<(), MailError> {
        let sent = self.sender.try_send(Mail::Command(command));
        sent.map_err(|error| match error {
            TrySendError::Full(_) => MailError::Full,
            TrySendError::Disconnected(_) => MailError::Ended,
        })?;
        self.wake();
        Ok(())
    }

    /// Asks the thread to end. It may have done so already.
    pub(crate) fn stop(&self) {
        // Waits for room in a full mailbox; fails only if the thread has ended.
        if self.sender.send(Mail::Stop).is_ok() {
            self.wake();
        }
    }

    fn wake(&self) {
        if let Err(error) = self.waker.wake() {
            tracing::error!(%error, "cannot wake a thread; it will see its mail later");
        }
    }
}

impl<C> Clone for Mailbox<C> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), waker: Arc::clone(&self.waker) }
    }
}

impl<C> Inbox<C> {
    /// The next piece of mail, if there is one. A thread that nobody can reach any more stops.
    pub(crate) fn take(&self) -> Option<Mail<C>> {
        match self.0.try_recv() {
            Ok(mail) => Some(mail),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Mail::Stop),
        }
    }
}
