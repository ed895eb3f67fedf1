//! A gateway's threads.
//!
//! A connection stays on the thread that it was given to, and so does the client whose requests its
//! commands become. So nothing that passes between them wakes another thread, and what all
//! connections of a thread have read in one turn leaves for the cluster together.

use std::io;
use std::thread::JoinHandle;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

/// All threads. They end when this is dropped, and what is not done by then is never done.
#[derive(Debug)]
pub(crate) struct Workers(Vec<Worker>);

#[derive(Debug)]
struct Worker {
    handle: Handle,
    /// Ends it when it is dropped.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Workers {
    /// Starts so many, at least one.
    ///
    /// # Errors
    ///
    /// If the system has no thread left, or no files to wait on.
    pub(crate) fn start(count: usize) -> io::Result<Self> {
        (0..count.max(1)).map(|_| Worker::start()).collect::<io::Result<_>>().map(Self)
    }

    /// Each, to have it carry something out.
    pub(crate) fn handles(&self) -> Vec<Handle> {
        self.0.iter().map(|worker| worker.handle.clone()).collect()
    }

    /// The first, which does what there is one of.
    pub(crate) fn first(&self) -> &Handle {
        &self.0.first().expect("there is at least one").handle
    }
}

impl Worker {
    fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel();
        let thread = std::thread::Builder::new().name("gateway".into());
        let thread = thread.spawn(move || serve(runtime, ended))?;
        Ok(Self { handle, end: Some(end), thread: Some(thread) })
    }
}

fn serve(runtime: Runtime, ended: oneshot::Receiver<()>) {
    // Nothing is ever sent there: the end of the sender is what is waited for.
    drop(runtime.block_on(ended));
    runtime.shutdown_background();
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // If it panicked, there is nobody left to tell.
            drop(thread.join());
        }
    }
}
