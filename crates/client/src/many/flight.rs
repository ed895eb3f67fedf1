//! How much of a request for many keys may be on its way at once: a congestion window.
//!
//! It grows by what is answered: by as much until something is lost, and from then on by a datagram
//! for each window that is. What is not answered in time takes half of its own size off. So a
//! burst that nobody could take halves the window, and a slow node, whose keys are a few of many,
//! makes it a little smaller; what it owes does not stand in the way of the other keys.

/// What may be on its way, in shares of a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    window: u32,
    most: u32,
    /// On its way, and not late.
    used: u32,
    /// Answers that have not made the window grow yet; `None` before the first loss.
    earned: Option<u32>,
}

/// Shares of one datagram that reads, however many keys are in it.
pub(crate) const SHARES: u32 = wire::MGET_KEYS_MAX as u32;

/// Shares of one that writes a key: its answer is short, and there is one only.
pub(crate) const WRITE_SHARES: u32 = SHARES / 4;

/// Datagrams that leave at once at the beginning (RFC 6928 has ten): a receive buffer as small as
/// systems have it holds all answers to them, however long values are.
const FIRST_DATAGRAMS: u32 = 8;

impl Flight {
    /// At most so many datagrams.
    pub(crate) fn new(datagrams_max: usize) -> Self {
        let most = u32::try_from(datagrams_max).unwrap_or(u32::MAX).saturating_mul(SHARES);
        Self { window: most.min(FIRST_DATAGRAMS * SHARES), most, used: 0, earned: None }
    }

    /// Whether so much more may leave.
    pub(crate) fn has_room(&self, shares: u32) -> bool {
        self.used.saturating_add(shares) <= self.window
    }

    /// So much leaves.
    pub(crate) fn sent(&mut self, shares: u32) {
        self.used = self.used.saturating_add(shares);
    }

    /// So much of a datagram was answered in time.
    pub(crate) fn answered(&mut self, shares: u32) {
        self.used = self.used.saturating_sub(shares);
        let growth = match &mut self.earned {
            None => shares,
            Some(earned) => {
                *earned = earned.saturating_add(shares.saturating_mul(SHARES));
                let growth = *earned / self.window;
                *earned %= self.window;
                growth
            }
        };
        self.window = self.window.saturating_add(growth).min(self.most);
    }

    /// So much of a datagram will be answered late, if ever; nobody waits for it.
    pub(crate) fn set_aside(&mut self, shares: u32) {
        self.used = self.used.saturating_sub(shares);
    }

    /// What was set aside was not answered in time, or by a node that has too much to do.
    pub(crate) fn shrink(&mut self, shares: u32) {
        self.window = self.window.saturating_sub(shares / 2).max(SHARES);
        self.earned = Some(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagrams(flight: &mut Flight) -> u32 {
        let mut count = 0;
        while flight.has_room(SHARES) {
            flight.sent(SHARES);
            count += 1;
        }
        count
    }

    #[test]
    fn it_doubles_until_something_is_lost_and_grows_by_one_then() {
        let mut flight = Flight::new(100);
        assert_eq!(datagrams(&mut flight), 8);
        (0..8).for_each(|_| flight.answered(SHARES));
        assert_eq!(datagrams(&mut flight), 16);
        (0..8).for_each(|_| flight.answered(SHARES));
        for _ in 0..8 {
            flight.set_aside(SHARES);
            flight.shrink(SHARES);
        }
        assert_eq!(datagrams(&mut flight), 20, "half of eight were taken off 24");
        (0..20).for_each(|_| flight.answered(SHARES));
        assert_eq!(datagrams(&mut flight), 20, "not quite one more: the window grew meanwhile");
        flight.answered(SHARES);
        flight.answered(SHARES);
        assert_eq!(datagrams(&mut flight), 3);
    }

    #[test]
    fn it_stays_between_one_datagram_and_the_most() {
        let mut flight = Flight::new(10);
        for _ in 0..100 {
            let sent = datagrams(&mut flight);
            (0..sent).for_each(|_| flight.answered(SHARES));
        }
        assert_eq!(datagrams(&mut flight), 10);
        for _ in 0..100 {
            flight.set_aside(SHARES);
            flight.shrink(SHARES);
        }
        assert_eq!(datagrams(&mut flight), 1);
    }

    #[test]
    fn a_slow_node_leaves_the_others_a_window() {
        let mut flight = Flight::new(32);
        for _ in 0..10_000 {
            let sent = datagrams(&mut flight);
            assert!(sent >= 1);
            for _ in 0..sent {
                flight.answered(SHARES * 7 / 8);
                flight.set_aside(SHARES / 8);
                flight.shrink(SHARES / 8);
            }
        }
        let sent = datagrams(&mut flight);
        assert!((8..=20).contains(&sent), "{sent}");
    }
}
