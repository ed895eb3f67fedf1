//! What each client may have of what all of them share, so that none can take it from the others.

use std::collections::BTreeMap;

/// How much each party has of something of which there is so much and no more. The clients of one
/// pass are one party; where there are no passes each client is one.
///
/// No party may have more than it leaves free. So one alone has half, `n` that want all they can
/// get have 1/(n + 1) each, and one more finds what is free. Switches share their buffers among
/// ports like this: the dynamic thresholds of Choudhury and Hahne (IEEE/ACM Transactions on
/// Networking 6(2), 1998), with alpha = 1.
#[derive(Debug, Default)]
pub(crate) struct Shares(BTreeMap<u64, u64>);

impl Shares {
    /// This client has so much more.
    pub(crate) fn add(&mut self, client: u64, amount: u64) {
        if amount > 0 {
            *self.0.entry(party_of(client)).or_default() += amount;
        }
    }

    /// This client has so much less.
    pub(crate) fn take(&mut self, client: u64, amount: u64) {
        if amount == 0 {
            return;
        }
        let party = party_of(client);
        if let Some(has) = self.0.get_mut(&party) {
            *has = has.saturating_sub(amount);
            if *has == 0 {
                self.0.remove(&party);
            }
        }
    }

    /// Whether this client may have more when so much is free.
    pub(crate) fn may_grow(&self, client: u64, free: u64) -> bool {
        self.0.get(&party_of(client)).copied().unwrap_or(0) < free
    }
}

/// Whose a client id is (`spec/protocol.md`, S6). No pass has the number 0.
fn party_of(client: u64) -> u64 {
    match client >> wire::CLIENT_SEAT_BITS {
        0 => client,
        pass => pass,
    }
}

/// Whether two clients are one party.
pub(crate) fn are_one_party(client: u64, other: u64) -> bool {
    party_of(client) == party_of(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u64 = 120;

    /// What each of these clients has when all have taken all that they could.
    fn shared(clients: &[u64]) -> Vec<u64> {
        let (mut shares, mut has) = (Shares::default(), vec![0; clients.len()]);
        loop {
            let before: u64 = has.iter().sum();
            for (client, has) in clients.iter().zip(&mut has) {
                let free = MOST - shares.0.values().sum::<u64>();
                if shares.may_grow(*client, free) {
                    shares.add(*client, 1);
                    *has += 1;
                }
            }
            if has.iter().sum::<u64>() == before {
                return has;
            }
        }
    }

    #[test]
    fn nobody_has_more_than_is_left_for_others() {
        assert_eq!(shared(&[7]), [60]);
        assert_eq!(shared(&[7, 8]), [40, 40]);
        assert_eq!(shared(&[7, 8, 9]), [30, 30, 30]);
    }

    #[test]
    fn the_clients_of_a_pass_have_one_share() {
        let of_pass = |pass: u64, seat: u64| pass << wire::CLIENT_SEAT_BITS | seat;
        let has = shared(&[of_pass(5, 0), of_pass(6, 0), of_pass(5, 9), of_pass(6, 9)]);
        assert_eq!(has, [20; 4], "two parties");
        let has = shared(&[1, of_pass(5, 0), 2, 3]);
        assert_eq!(has, [24; 4], "where there are no passes");
    }

    #[test]
    fn who_gives_back_may_have_it_again() {
        let mut shares = Shares::default();
        shares.add(7, 10);
        assert!(!shares.may_grow(7, 10) && shares.may_grow(8, 1) && !shares.may_grow(8, 0));
        shares.take(7, 4);
        assert!(shares.may_grow(7, 7));
        shares.take(7, 9);
        assert!(shares.0.is_empty(), "nothing is kept of who has nothing");
    }
}
