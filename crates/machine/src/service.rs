//! A server of a fixed speed: requests wait in a queue and are served one after the other, each for
//! the same time. With it a machine of two cores holds a rack of servers that are slow, as the
//! experiments of the field do, and what is measured is where load goes and not how fast a core is.
//!
//! It is what queueing theory calls D/1 with room for few: the service of a request begins when it
//! has come and the one before has ended, lasts for one over the rate, and the machine is given the
//! request when it ends. Ends are reckoned, not waited for one by one: a driver that wakes up late
//! catches up, and the rate is kept. The machine sees nothing but a slower network.

use crate::Instant;
use std::collections::VecDeque;
use std::num::NonZero;
use std::time::Duration;
use wire::{Op, Packet};

/// Requests that wait or are served at a time: what the receive buffer of a Linux socket holds of
/// small datagrams by default (212,992 bytes, of which each takes 768 or more). A server of 10,000
/// requests a second then answers within 26 ms or not at all.
const QUEUE_MAX: usize = 256;

/// Places of the queue that requests of clients leave free for what others need to end theirs. A
/// write that comes down a chain has been served by the nodes before, and is asked for again by all
/// of them if it is lost: when the tail of a hot key's chain was full of reads, so much of what its
/// head sent was lost that the key could not even be taken away from it.
const CHAIN_ROOM: usize = QUEUE_MAX / 4;

/// What a request takes, in thousandths.
const WHOLE: u32 = 1_000;

/// The queue of one shard, and its only servant. A request is whatever its driver keeps of it.
#[derive(Debug)]
pub struct Service<T> {
    /// Of one request.
    duration: Duration,
    /// When all that has come is served.
    idle_from: Instant,
    /// What has come, and when it is served.
    queue: VecDeque<(Instant, T)>,
}

/// A request whose service has ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Served<T> {
    /// What was taken.
    pub request: T,
    /// How many wait behind it.
    pub waiting: u16,
}

/// The queue is full.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

/// Work for a server. The rest of the protocol (acknowledgements, commits, copies of partitions),
/// which the emulated systems do not have or count apart, takes no time, and neither does what is
/// no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// What a client asks for.
    Request,
    /// What a request that another server has taken needs here: a write that comes down a chain,
    /// for which each server of the chain does what the first does, or a copy of a hot key, which
    /// is a write to whoever takes one.
    Chain,
}

impl Work {
    /// What a datagram is, if it is work.
    #[must_use]
    pub fn of(payload: &[u8]) -> Option<Self> {
        Self::of_op(Packet::parse(payload).ok()?.op())
    }

    /// What packets of this operation are, if they are work.
    #[must_use]
    pub fn of_op(op: Op) -> Option<Self> {
        match op {
            Op::ChainWrite | Op::HotCopy => Some(Self::Chain),
            op => (!op.is_chain() && !op.is_reply()).then_some(Self::Request),
        }
    }

    /// How long a queue may be for more of it to be taken.
    const fn room(self) -> usize {
        match self {
            Self::Request => QUEUE_MAX - CHAIN_ROOM,
            Self::Chain => QUEUE_MAX,
        }
    }
}

impl<T> Service<T> {
    /// One that serves so many requests per second.
    #[must_use]
    pub fn new(rate: NonZero<u32>) -> Self {
        let duration = Duration::from_secs(1) / rate.get();
        Self { duration, idle_from: Instant(0), queue: VecDeque::new() }
    }

    /// Takes a request.
    ///
    /// # Errors
    ///
    /// If as many wait as there is room for, which is more for work of a chain; it is lost then.
    pub fn take(&mut self, now: Instant, work: Work, request: T) -> Result<(), Full> {
        self.take_for(now, work, WHOLE, request)
    }

    /// Takes what needs so many thousandths of the time of a request.
    ///
    /// # Errors
    ///
    /// As [`take`](Self::take).
    pub fn take_for(
        &mut self,
        now: Instant,
        work: Work,
        permille: u32,
        request: T,
    ) -> Result<(), Full> {
        if self.queue.len() >= work.room() {
            return Err(Full);
        }
        let takes =
            if permille == WHOLE { self.duration } else { self.duration * permille / WHOLE };
        let served_at = self.idle_from.max(now) + takes;
        self.idle_from = served_at;
        self.queue.push_back((served_at, request));
        Ok(())
    }

    /// The next request whose service has ended by now.
    pub fn finish(&mut self, now: Instant) -> Option<Served<T>> {
        let (_, request) = self.queue.pop_front_if(|(served_at, _)| *served_at <= now)?;
        let waiting = u16::try_from(self.queue.len()).expect("the queue is shorter");
        Some(Served { request, waiting })
    }

    /// How many requests wait, or are being served.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// When the next service ends.
    #[must_use]
    pub fn next_end(&self) -> Option<Instant> {
        self.queue.front().map(|(served_at, _)| *served_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Header;

    const RATE: NonZero<u32> = NonZero::new(1_000).unwrap();
    const MS: u64 = 1_000_000;

    /// Numbers and queues behind them of what has been served by this millisecond.
    fn finish(service: &mut Service<u8>, ms: u64) -> Vec<(u8, u16)> {
        let next = || service.finish(Instant(ms * MS));
        std::iter::from_fn(next).map(|served| (served.request, served.waiting)).collect()
    }

    #[test]
    fn what_needs_less_than_a_request_is_done_sooner() {
        let mut service = Service::new(RATE);
        service.take_for(Instant(10 * MS), Work::Request, 500, 0).unwrap();
        service.take_for(Instant(10 * MS), Work::Request, 1_500, 1).unwrap();
        assert_eq!(service.next_end(), Some(Instant(10 * MS + MS / 2)));
        assert_eq!(finish(&mut service, 12), [(0, 1), (1, 0)]);
    }

    #[test]
    fn requests_are_served_one_after_the_other_each_for_its_time() {
        let mut service = Service::new(RATE);
        for number in 0..3 {
            service.take(Instant(10 * MS), Work::Request, number).unwrap();
        }
        assert_eq!(service.next_end(), Some(Instant(11 * MS)));
        assert_eq!(finish(&mut service, 10), []);
        assert_eq!(finish(&mut service, 11), [(0, 2)]);
        assert_eq!(finish(&mut service, 13), [(1, 1), (2, 0)]);
        assert_eq!(service.next_end(), None);
    }

    #[test]
    fn time_without_work_is_not_saved_up() {
        let mut service = Service::new(RATE);
        service.take(Instant(10 * MS), Work::Request, 0).unwrap();
        assert_eq!(finish(&mut service, 11), [(0, 0)]);
        service.take(Instant(100 * MS), Work::Request, 1).unwrap();
        service.take(Instant(100 * MS), Work::Request, 2).unwrap();
        assert_eq!(finish(&mut service, 101), [(1, 1)]);
    }

    #[test]
    fn a_thread_that_wakes_up_late_loses_nothing_of_the_rate() {
        let mut service = Service::new(RATE);
        let (mut served, mut dropped) = (0, 0);
        // Twice as much as it can serve, looked at every 7 ms only.
        for ms in 0..10_000 {
            for number in 0..2 {
                let taken = service.take(Instant(ms * MS), Work::Request, number);
                dropped += u64::from(taken.is_err());
            }
            if ms.is_multiple_of(7) {
                served += finish(&mut service, ms).len() as u64;
            }
        }
        let queued = service.queue.len() as u64;
        assert_eq!(served + dropped + queued, 20_000);
        assert!((9_950..10_000).contains(&served), "{served} in ten seconds");
    }

    #[test]
    fn what_comes_when_the_queue_is_full_is_not_taken() {
        let mut service = Service::new(RATE);
        let now = Instant(5 * MS);
        for _ in 0..QUEUE_MAX - CHAIN_ROOM {
            service.take(now, Work::Request, 0).unwrap();
        }
        assert_eq!(service.take(now, Work::Request, 1), Err(Full));
        assert_eq!(finish(&mut service, 6).len(), 1);
        let now = Instant(6 * MS);
        assert_eq!(service.take(now, Work::Request, 1), Ok(()));
        for _ in 0..CHAIN_ROOM {
            service.take(now, Work::Chain, 2).unwrap();
        }
        assert_eq!(service.take(now, Work::Chain, 3), Err(Full));
        assert_eq!(finish(&mut service, 7).len(), 1);
        assert_eq!(service.take(Instant(7 * MS), Work::Request, 1), Err(Full));
        assert_eq!(service.take(Instant(7 * MS), Work::Chain, 1), Ok(()));
    }

    #[test]
    fn requests_writes_down_a_chain_and_hot_copies_are_work_and_nothing_else_is() {
        let work = |op: Op| {
            let mut packet = Vec::new();
            wire::emit(&mut packet, &Header { op: op as u8, ..Header::default() }, &[]);
            Work::of(&packet)
        };
        let all = |of: Work| -> Vec<Op> {
            Op::ALL.into_iter().filter(|op| work(*op) == Some(of)).collect()
        };
        let mut requests = vec![Op::Get, Op::Put, Op::Del, Op::Cas, Op::Incr, Op::Mget, Op::Range];
        requests.extend([Op::Describe, Op::Batch, Op::Goodbye]);
        assert_eq!(all(Work::Request), requests);
        assert_eq!(all(Work::Chain), [Op::ChainWrite, Op::HotCopy]);
        assert_eq!(Work::of(b"no packet"), None);
    }
}
