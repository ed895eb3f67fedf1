//! How a node alerts its controller: with what cannot wait, it does not wait to be asked.
//!
//! A controller asks its nodes how they are a few times a second, and that costs them something.
//! Beside that it lets each of them be silent on a second line until something should be heard of
//! at once, such as a key that is suddenly hot; then it asks. An alert that is lost is made up for
//! by the next question.

use crate::mailbox::MailError;
use cluster::NodeId;
use node::ALERT_REST;
use std::io;
use std::sync::{Arc, Weak};
use std::thread::Builder;
use std::time::Duration;
use tokio::sync::watch;

/// How many alerts a node has given, over all its shards.
#[derive(Clone, Debug)]
pub(super) struct Bell(Arc<watch::Sender<u64>>);

/// Whoever hears it.
#[derive(Clone, Debug)]
pub(super) struct Ear(watch::Receiver<u64>);

impl Bell {
    pub(super) fn new() -> (Self, Ear) {
        let (sender, receiver) = watch::channel(0);
        (Self(Arc::new(sender)), Ear(receiver))
    }

    pub(super) fn ring(&self) {
        self.0.send_modify(|alerts| *alerts = alerts.wrapping_add(1));
    }
}

impl Ear {
    /// Waits until there have been other than `heard` alerts, or for [`SILENCE`]; says how many
    /// there have been.
    pub(super) async fn listen(&self, heard: u64) -> Result<u64, MailError> {
        let mut alerts = self.0.clone();
        match tokio::time::timeout(SILENCE, alerts.wait_for(|alerts| *alerts != heard)).await {
            Ok(Ok(alerts)) => Ok(*alerts),
            Ok(Err(_)) => Err(MailError::Ended),
            Err(_) => Ok(heard),
        }
    }
}

/// How long a line is silent at most; so long its thread may go on when it is not wanted any more.
pub(super) const SILENCE: Duration = Duration::from_secs(1);

/// Waits until a node has given other than so many alerts, or some time; says how many it has
/// given.
pub type Listen = Box<dyn FnMut(u64) -> Result<u64, String> + Send>;

/// The thread that listens to one node. It ends a little after this is dropped; nobody waits for
/// that.
#[derive(Debug)]
pub(super) struct Listener {
    _wanted: Arc<()>,
}

impl Listener {
    /// Starts the thread; `alerted` is called for each alert.
    pub(super) fn start(
        node: NodeId,
        listen: Listen,
        alerted: impl FnMut() + Send + 'static,
    ) -> io::Result<Self> {
        let wanted = Arc::new(());
        let is_wanted = Arc::downgrade(&wanted);
        let thread = Builder::new().name(format!("alert-node-{node}"));
        thread.spawn(move || run(&is_wanted, listen, alerted))?;
        Ok(Self { _wanted: wanted })
    }
}

fn run(is_wanted: &Weak<()>, mut listen: Listen, mut alerted: impl FnMut()) {
    let mut heard = 0;
    while is_wanted.strong_count() > 0 {
        match listen(heard) {
            Ok(alerts) if alerts != heard => {
                heard = alerts;
                alerted();
                std::thread::park_timeout(ALERT_REST);
            }
            Ok(_) => {}
            // Its orders do not reach it either, and that is said.
            Err(_) => std::thread::park_timeout(SILENCE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn each_alert_is_heard_once_and_silence_is_not() {
        let (bell, ear) = Bell::new();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (asked, asks) = channel();
        let listen: Listen = Box::new(move |heard| {
            asked.send(heard).ok();
            runtime.block_on(ear.listen(heard)).map_err(|error| error.to_string())
        });
        let (alert, alerts) = channel();
        let listener = Listener::start(NodeId(1), listen, move || alert.send(()).unwrap()).unwrap();
        assert_eq!(asks.recv(), Ok(0));
        bell.ring();
        alerts.recv_timeout(SILENCE / 2).expect("at once");
        assert_eq!(asks.recv(), Ok(1));
        assert_eq!(asks.recv(), Ok(1), "nothing for a while, and it is asked again");
        assert!(alerts.try_recv().is_err(), "silence is no alert");
        drop(listener);
        drop(bell);
        while asks.recv().is_ok() {}
    }
}
