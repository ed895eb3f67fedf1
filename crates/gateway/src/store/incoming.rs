//! A value whose command is still to come.

use bytes::Bytes;
use client::Refusal;
use client::asynchronous::Upload;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// A value that is on its way into the cluster while the rest of its command is still to come.
pub(crate) struct Incoming {
    pub(super) pieces: mpsc::Sender<Bytes>,
    pub(super) upload: JoinHandle<Result<Upload, Refusal>>,
}

impl Incoming {
    /// Where pieces of it go; no more than two wait there.
    pub(crate) fn pieces(&self) -> &mpsc::Sender<Bytes> {
        &self.pieces
    }
}
