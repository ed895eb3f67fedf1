//! All gateways of a cluster as clients of Redis Cluster see them: nodes that share its slots.
//!
//! Any gateway carries out any command, so it matters to nobody who has which slot: sharing them
//! only spreads clients. Gateways tell each other nothing. Each looks who of the others takes
//! connections, and names those, in an order that is the same everywhere. One that is gone has no
//! slots after two looks, and a client that asks anybody else goes on.

use crate::slots::{Cluster, Endpoint, SLOTS};
use data_encoding::HEXLOWER;
use sha1::{Digest as _, Sha1};
use std::borrow::Cow;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// This gateway and the others.
#[derive(Debug)]
pub(crate) struct Siblings {
    announce: Option<Endpoint>,
    others: Vec<Sibling>,
}

/// Another gateway.
#[derive(Debug)]
struct Sibling {
    at: Endpoint,
    takes_connections: AtomicBool,
}

/// A gateway as a node.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SlotNode<'a> {
    /// Forty hexadecimal digits.
    pub(crate) id: String,
    pub(crate) at: Cow<'a, Endpoint>,
    /// `None`: it takes no connections.
    pub(crate) slots: Option<RangeInclusive<u16>>,
    /// Whether it is this one.
    pub(crate) is_own: bool,
}

/// How often each of the others is looked at, and how long it may take to let one in.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// After so many looks in a row that failed it has no slots.
const LOOKS_MAX: u32 = 2;

impl Siblings {
    /// At first all of them pass for there.
    pub(crate) fn new(Cluster { announce, mut gateways }: Cluster) -> Self {
        gateways.retain(|it| Some(it) != announce.as_ref());
        gateways.sort();
        gateways.dedup();
        let there = |at| Sibling { at, takes_connections: AtomicBool::new(true) };
        Self { announce, others: gateways.into_iter().map(there).collect() }
    }

    /// How many others there are.
    pub(crate) fn count(&self) -> usize {
        self.others.len()
    }

    /// All gateways, in the order of their places, as a client is told of them that has connected
    /// to this address here.
    pub(crate) fn nodes(&self, local: SocketAddr, run_id: &str) -> Vec<SlotNode<'_>> {
        // Who is not announced has no others, and no name but its own.
        let own = match &self.announce {
            Some(at) => (Cow::Borrowed(at), id_of(at)),
            None => (Cow::Owned(local.into()), run_id.to_owned()),
        };
        let (at, id) = own;
        let mut nodes = vec![(SlotNode { id, at, slots: None, is_own: true }, true)];
        nodes.extend(self.others.iter().map(|it| {
            let there = it.takes_connections.load(Ordering::Relaxed);
            let (id, at) = (id_of(&it.at), Cow::Borrowed(&it.at));
            (SlotNode { id, at, slots: None, is_own: false }, there)
        }));
        nodes.sort_by(|(a, _), (b, _)| a.at.cmp(&b.at));
        let mut shares = shares(nodes.iter().filter(|(_, there)| *there).count());
        let give =
            |(node, there)| SlotNode { slots: if there { shares.next() } else { None }, ..node };
        nodes.into_iter().map(give).collect()
    }

    /// Looks at one of the others from now on.
    pub(crate) async fn watch(self: Arc<Self>, index: usize) {
        let Some(Sibling { at, takes_connections }) = self.others.get(index) else { return };
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut failed = 0_u32;
        loop {
            looks.tick().await;
            let look = timeout(LOOK_EVERY, TcpStream::connect((at.host.as_str(), at.port)));
            let lets_in = look.await.is_ok_and(|it| it.is_ok());
            failed = if lets_in { 0 } else { failed.saturating_add(1) };
            let there = failed < LOOKS_MAX;
            if takes_connections.swap(there, Ordering::Relaxed) != there {
                if there {
                    tracing::info!(gateway = %at, "it takes connections again, and has slots");
                } else {
                    tracing::warn!(gateway = %at, "it takes no connections, and has no slots");
                }
            }
        }
    }
}

/// What all gateways call the one at this place.
fn id_of(at: &Endpoint) -> String {
    HEXLOWER.encode(&Sha1::digest(at.to_string()))
}

/// All slots in so many shares, which differ by one at most. With more shares than slots some are
/// left out.
fn shares(count: usize) -> impl Iterator<Item = RangeInclusive<u16>> {
    let count = u16::try_from(count).unwrap_or(u16::MAX).clamp(1, SLOTS);
    let begin = move |share: u16| u32::from(share) * u32::from(SLOTS) / u32::from(count);
    let slot = |slot: u32| u16::try_from(slot).expect("less than there are");
    (0..count).map(move |share| slot(begin(share))..=slot(begin(share + 1) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn siblings(announce: &str, gateways: &[&str]) -> Siblings {
        let read = |it: &&str| it.parse().unwrap();
        let gateways = gateways.iter().map(read).collect();
        Siblings::new(Cluster { announce: Some(read(&announce)), gateways })
    }

    fn nodes<'a>(of: &'a Siblings) -> Vec<SlotNode<'a>> {
        of.nodes(([127, 0, 0, 1], 1).into(), "run")
    }

    #[test]
    fn shares_have_every_slot_once_and_are_even() {
        for count in [1, 2, 3, 7, 100, 16_384, 20_000] {
            let shares: Vec<_> = shares(count).collect();
            let slots: Vec<u16> = shares.iter().cloned().flatten().collect();
            assert_eq!(slots, (0..SLOTS).collect::<Vec<_>>(), "{count}");
            let sizes = || shares.iter().map(|it| it.len());
            assert!(sizes().max().unwrap() - sizes().min().unwrap() <= 1, "{count}");
        }
    }

    #[test]
    fn every_gateway_says_the_same_of_all() {
        let all = ["b:1", "a:2", "a:1"];
        let told = all.map(|own| {
            let siblings = siblings(own, &all);
            assert_eq!(siblings.count(), 2);
            let said = nodes(&siblings).into_iter().map(|SlotNode { id, at, slots, is_own }| {
                assert_eq!(is_own, at.to_string() == own);
                assert_eq!(id.len(), 40);
                (id, at.to_string(), slots)
            });
            said.collect::<Vec<_>>()
        });
        assert!(told[0] == told[1] && told[1] == told[2]);
        let places: Vec<_> = told[0].iter().map(|(_, at, _)| at.as_str()).collect();
        assert_eq!(places, ["a:1", "a:2", "b:1"]);
    }

    #[test]
    fn one_that_is_gone_has_no_slots() {
        let siblings = siblings("a:1", &["b:1", "c:1"]);
        siblings.others[0].takes_connections.store(false, Ordering::Relaxed);
        let slots: Vec<_> = nodes(&siblings).into_iter().map(|it| it.slots).collect();
        assert_eq!(slots, [Some(0..=8_191), None, Some(8_192..=16_383)]);
    }
}
