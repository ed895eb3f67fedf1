//! The thread that waits for the disk of a shard, so that the shard need not.

use crate::fatal;
use crate::store::SyncJob;
use mio::Waker;
use node::engine::EngineError;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{Builder, JoinHandle};

/// Who waits for one sync after the other. Dropping it waits for the one under way.
#[derive(Debug)]
pub(super) struct Syncer {
    jobs: Option<SyncSender<SyncJob>>,
    ended: Receiver<Result<(), EngineError>>,
    thread: Option<JoinHandle<()>>,
    /// Of the thread of the shard.
    waker: Arc<OnceLock<Arc<Waker>>>,
}

impl Syncer {
    /// Starts the thread.
    pub(super) fn start(name: &str) -> io::Result<Self> {
        let waker = Arc::new(OnceLock::<Arc<Waker>>::new());
        let wakes = Arc::clone(&waker);
        let (jobs, inbox) = sync_channel::<SyncJob>(1);
        let (tell, ended) = sync_channel(1);
        let thread = Builder::new().name(format!("{name}-disk")).spawn(move || {
            let _guard = fatal::EndOnPanic;
            while let Ok(job) = inbox.recv() {
                // Nobody hears it if the shard has ended.
                if tell.send(job()).is_err() {
                    return;
                }
                if let Some(Err(error)) = wakes.get().map(|it| it.wake()) {
                    tracing::error!(%error, "cannot wake a shard after a sync");
                }
            }
        })?;
        Ok(Self { jobs: Some(jobs), ended, thread: Some(thread), waker })
    }

    /// It wakes this thread after each sync.
    pub(super) fn wakes(&self, waker: Arc<Waker>) {
        self.waker.get_or_init(|| waker);
    }

    /// Has a sync waited for; there is one at a time.
    ///
    /// # Panics
    ///
    /// If another one is under way.
    pub(super) fn begin(&self, job: SyncJob) {
        let jobs = self.jobs.as_ref().expect("it runs");
        jobs.try_send(job).expect("one sync is under way at a time");
    }

    /// How the sync under way has ended, if it has.
    pub(super) fn ended(&self) -> Option<Result<(), EngineError>> {
        self.ended.try_recv().ok()
    }

    /// Waits for its end.
    pub(super) fn wait(&self) -> Result<(), EngineError> {
        self.ended.recv().expect("a panic of the thread has ended the process")
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            thread.join().expect("a panic of the thread has ended the process");
        }
    }
}
