//! Whom a coordinator answers.

use machine::Instant;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::Endpoint;

/// Where clients are that have asked lately, by their ids.
#[derive(Debug, Default)]
pub(super) struct Clients {
    known: BTreeMap<u64, (Endpoint, Instant)>,
}

/// Most of them; whoever comes beyond takes the place of one that has not asked for long. Without
/// such a one it is not answered, and asks elsewhere.
const CLIENTS_MAX: usize = 65_536;

/// A client without an answer asks again within this time, or has given up.
const KEPT_FOR: Duration = Duration::from_secs(10);

impl Clients {
    /// A client asks from there.
    pub(super) fn note(&mut self, now: Instant, client: u64, from: Endpoint) {
        if self.known.len() >= CLIENTS_MAX && !self.known.contains_key(&client) {
            self.known.retain(|_, (_, asked)| now < *asked + KEPT_FOR);
        }
        if self.known.len() < CLIENTS_MAX || self.known.contains_key(&client) {
            self.known.insert(client, (from, now));
        }
    }

    /// Where it is.
    pub(super) fn find(&self, client: u64) -> Option<Endpoint> {
        self.known.get(&client).map(|(from, _)| *from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_known_until_others_need_their_places() {
        let mut clients = Clients::default();
        let at = |port| Endpoint { addr: [1; 16], port };
        let start = Instant::from_unix_ms(1);
        clients.note(start, 0, at(1));
        clients.note(start, 0, at(2));
        assert_eq!((clients.find(0), clients.find(1)), (Some(at(2)), None));
        let later = start + KEPT_FOR;
        for client in 1..CLIENTS_MAX as u64 {
            clients.note(later, client, at(3));
        }
        clients.note(later, u64::MAX, at(4));
        assert_eq!((clients.find(0), clients.find(u64::MAX)), (None, Some(at(4))));
        clients.note(later, 1, at(5));
        assert_eq!(clients.find(1), Some(at(5)));
    }
}
