//! Service addresses: the one that everything goes to, and when the next is tried.

use machine::Instant;
use std::net::SocketAddr;
use std::time::Duration;
use wire::Endpoint;

/// The service addresses of a cluster, one for each of its switches, the preferred one first.
///
/// A single address converts into it, and so does a list of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Services(pub(crate) Vec<Endpoint>);

/// Most service addresses: a cluster has a few switches, and each address that does not answer
/// costs a client `SILENCE_MIN` when it looks for the active one.
pub const SERVICES_MAX: usize = 8;

/// How long nothing at all must have been heard before the next address is tried. The lease of a
/// switch takes half a second to end, so that its place cannot be taken sooner anyway; with two
/// addresses, the one that answers is asked again within twice this time.
pub(crate) const SILENCE_MIN: Duration = Duration::from_millis(100);

/// Waits in vain, of whichever requests, before the next address is tried: one lost datagram says
/// nothing about a switch.
const TIMEOUTS_MIN: u32 = 2;

impl From<Endpoint> for Services {
    fn from(service: Endpoint) -> Self {
        Self(vec![service])
    }
}

impl From<SocketAddr> for Services {
    fn from(service: SocketAddr) -> Self {
        Self(vec![service.into()])
    }
}

impl<T: Copy + Into<Endpoint>> From<&[T]> for Services {
    fn from(services: &[T]) -> Self {
        Self(services.iter().map(|service| (*service).into()).collect())
    }
}

impl<T: Copy + Into<Endpoint>> From<Vec<T>> for Services {
    fn from(services: Vec<T>) -> Self {
        Self::from(&*services)
    }
}

/// Which address is asked. It stays as long as answers come, whoever they come from: replies need
/// not carry the address that the request was sent to.
#[derive(Debug)]
pub(crate) struct Route {
    services: Vec<Endpoint>,
    current: usize,
    /// When the first copy left for the current address since the last answer, or since it became
    /// the current one.
    asked_at: Option<Instant>,
    /// Waits in vain since the last answer.
    timeouts: u32,
}

impl Route {
    pub(crate) fn new(services: Vec<Endpoint>) -> Self {
        Self { services, current: 0, asked_at: None, timeouts: 0 }
    }

    /// Where a copy that leaves now goes to.
    pub(crate) fn send(&mut self, now: Instant) -> Endpoint {
        self.asked_at.get_or_insert(now);
        *self.services.get(self.current).expect("the current address is one of them")
    }

    /// A reply was taken: somebody serves behind the current address.
    pub(crate) fn answered(&mut self) {
        self.asked_at = None;
        self.timeouts = 0;
    }

    /// The copy that left at `sent_at` was not answered in time. Whether this was one too many, and
    /// everything goes to the next address from now on.
    pub(crate) fn timed_out(&mut self, now: Instant, sent_at: Instant) -> bool {
        // What was sent to the address before says nothing about this one.
        let Some(asked_at) = self.asked_at.filter(|asked_at| sent_at >= *asked_at) else {
            return false;
        };
        self.timeouts = self.timeouts.saturating_add(1);
        let silent = self.timeouts >= TIMEOUTS_MIN && now.since(asked_at) >= SILENCE_MIN;
        if !silent || self.services.len() < 2 {
            return false;
        }
        self.current = (self.current + 1) % self.services.len();
        self.asked_at = None;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn copies_sent_before_the_move_do_not_count_against_the_next_address() {
        let endpoint = |port| Endpoint { addr: [1; 16], port };
        let mut route = Route::new(vec![endpoint(1), endpoint(2)]);
        let start = Instant::from_unix_ms(1);
        assert_eq!(route.send(start).port, 1);
        assert!(!route.timed_out(start + MS * 200, start), "one wait may be bad luck");
        assert!(route.timed_out(start + MS * 201, start));
        // Nothing was asked there yet, and then only a moment ago.
        assert!(!route.timed_out(start + MS * 202, start));
        assert_eq!(route.send(start + MS * 203).port, 2);
        assert!(!route.timed_out(start + MS * 400, start));
        assert!(!route.timed_out(start + MS * 302, start + MS * 203));
        assert!(route.timed_out(start + MS * 303, start + MS * 203));
        assert_eq!(route.send(start + MS * 304).port, 1);
    }
}
