//! Commands that took long, the newest first, with their arguments cut short as Redis does.

use crate::clients::Entry;
use bytes::Bytes;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The list, bounded by the parameter `slowlog-max-len`.
#[derive(Debug, Default)]
pub(crate) struct SlowLog(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    next_id: i64,
    entries: VecDeque<Slow>,
}

/// One command.
#[derive(Clone, Debug)]
pub(crate) struct Slow {
    pub(crate) id: i64,
    pub(crate) unix_seconds: u64,
    pub(crate) took: Duration,
    pub(crate) args: Vec<Bytes>,
    pub(crate) peer: SocketAddr,
    pub(crate) name: Bytes,
}

/// Arguments that are kept of a command: what Redis keeps.
const ARGS_MAX: usize = 32;
/// Bytes that are kept of an argument: what Redis keeps.
const ARG_LEN_MAX: usize = 128;

impl SlowLog {
    pub(crate) fn note(
        &self,
        unix_seconds: u64,
        took: Duration,
        args: &[Bytes],
        client: &Entry,
        len_max: usize,
    ) {
        let (peer, name) = (client.peer, client.told().name.clone());
        let mut inner = self.lock();
        let id = inner.next_id;
        inner.next_id += 1;
        let args = shortened(args);
        inner.entries.push_front(Slow { id, unix_seconds, took, args, peer, name });
        inner.entries.truncate(len_max);
    }

    /// The newest; all without a count.
    pub(crate) fn newest(&self, count: Option<usize>) -> Vec<Slow> {
        self.lock().entries.iter().take(count.unwrap_or(usize::MAX)).cloned().collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().entries.len()
    }

    pub(crate) fn clear(&self) {
        self.lock().entries.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Copies, so that a command's bytes need not be kept.
fn shortened(args: &[Bytes]) -> Vec<Bytes> {
    let keep = if args.len() > ARGS_MAX { ARGS_MAX - 1 } else { args.len() };
    let mut kept: Vec<Bytes> = args.iter().take(keep).map(|arg| shorten(arg)).collect();
    if args.len() > keep {
        kept.push(format!("... ({} more arguments)", args.len() - keep).into());
    }
    kept
}

fn shorten(arg: &[u8]) -> Bytes {
    match arg.get(..ARG_LEN_MAX) {
        Some(first) if arg.len() > ARG_LEN_MAX => {
            let more = format!("... ({} more bytes)", arg.len() - ARG_LEN_MAX);
            [first, more.as_bytes()].concat().into()
        }
        _ => Bytes::copy_from_slice(arg),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_commands_are_cut_short_as_redis_does() {
        let args = vec![Bytes::from("a"); 32];
        assert_eq!(shortened(&args), args);
        let more = shortened(&vec![Bytes::from("a"); 40]);
        assert_eq!(
            (more.len(), more.last().unwrap().as_ref()),
            (32, b"... (9 more arguments)".as_ref())
        );
        assert_eq!(shorten(&[b'x'; 128]).len(), 128);
        assert!(shorten(&[b'x'; 130]).ends_with(b"x... (2 more bytes)"));
    }
}
