//! The network: links between roles that lose (also in bursts), double, delay and so reorder what
//! is sent over them, that can be cut in either direction, and that can clog.

use crate::clock::nanos;
use crate::options::{Links, Options};
use crate::role::{Cast, Role};
use crate::routes::Routes;
use machine::{Instant, Rng};
use std::time::Duration;
use wire::Endpoint;

/// All links, one for each ordered pair of roles.
pub(crate) struct Net {
    rng: Rng,
    /// Of what is kept: what else is drawn stays what it is without.
    kept: Rng,
    cast: Cast,
    behaviour: Links,
    links: Vec<Link>,
    routes: Option<Routes>,
}

/// One direction between two roles.
#[derive(Clone, Debug, Default)]
struct Link {
    /// It goes from a node to a switch.
    replies: bool,
    /// By how many partitions it is cut at present.
    cuts: u16,
    /// What is sent before then arrives after then.
    clogged_until: Instant,
    /// Whether it is in a burst of losses, and when that changes (Gilbert and Elliott's channel).
    bursting: bool,
    changes_at: Instant,
}

/// Up to two copies of a packet, and when they arrive.
pub(crate) type Arrivals = [Option<Instant>; 2];

impl Net {
    pub(crate) fn new(options: &Options, cast: Cast) -> Self {
        Self {
            rng: Rng::new(options.seed).fork("net"),
            kept: Rng::new(options.seed).fork("kept"),
            cast,
            behaviour: options.links,
            links: links(cast),
            routes: options.content.then(|| {
                let rng = Rng::new(options.seed).fork("routes");
                Routes::new(rng, (cast.nodes, cast.caches), options.route_delay_max)
            }),
        }
    }

    /// The routers, if there are any.
    pub(crate) fn routes(&mut self) -> Option<&mut Routes> {
        self.routes.as_mut()
    }

    /// Where a datagram to this address comes that is sent now: a content address leads somewhere
    /// or nowhere.
    pub(crate) fn resolve(&mut self, now: Instant, to: Endpoint) -> Option<Endpoint> {
        match self.routes.as_mut().filter(|routes| routes.lead(to)) {
            Some(routes) => routes.resolve(now, to),
            None => Some(to),
        }
    }

    /// Ends everything but a short delay. What is on its way stays so.
    pub(crate) fn heal(&mut self) {
        self.behaviour = Links {
            delay_max: self.behaviour.delay_min + Duration::from_micros(50),
            delay_min: self.behaviour.delay_min,
            ..Links::default()
        };
        self.links = links(self.cast);
        self.routes.iter_mut().for_each(Routes::heal);
    }

    /// When a datagram sent now arrives, if it does.
    pub(crate) fn carry(&mut self, now: Instant, from: Role, to: Role) -> Arrivals {
        if !self.cast.has(to) {
            return [Some(now), None]; // For somebody to notice.
        }
        let Some(link) = self.usable(now, from, to) else { return [None; 2] };
        if self.loses(link) {
            return [None; 2];
        }
        let twice = self.rng.chance(self.behaviour.duplicate_permille, 1_000);
        [Some(self.arrival(now, link)), twice.then(|| self.arrival(now, link))]
    }

    /// When something sent now over a connection arrives: what is lost is sent again, later and
    /// later, as TCP does; `None` if the connection hangs. It may be sent twice, by whoever is
    /// between and not sure of the first.
    pub(crate) fn carry_stream(&mut self, now: Instant, from: Role, to: Role) -> Arrivals {
        let Some(link) = self.usable(now, from, to) else { return [None; 2] };
        let mut sent = now;
        let mut wait = STREAM_RETRY_MIN;
        for _ in 0..STREAM_RETRIES {
            if !self.loses(link) {
                let twice = self.rng.chance(self.behaviour.duplicate_permille, 4_000);
                return [Some(self.arrival(sent, link)), twice.then(|| self.arrival(sent, link))];
            }
            sent = sent + wait;
            wait *= 2;
        }
        [None; 2]
    }

    /// Whether somebody keeps an order that a switch was sent.
    pub(crate) fn keeps_order(&mut self) -> bool {
        self.kept.chance(self.behaviour.kept_order_permille, 1_000)
    }

    /// Cuts a link, once more if it is cut already.
    pub(crate) fn cut(&mut self, from: Role, to: Role) {
        let place = self.place(from, to);
        self.link(place).cuts += 1;
    }

    /// Takes back one cut of a link, unless all were ended.
    pub(crate) fn mend(&mut self, from: Role, to: Role) {
        let place = self.place(from, to);
        let link = self.link(place);
        link.cuts = link.cuts.saturating_sub(1);
    }

    /// Lets nothing that is sent over a link arrive before `until`.
    pub(crate) fn clog(&mut self, from: Role, to: Role, until: Instant) {
        let place = self.place(from, to);
        let link = self.link(place);
        link.clogged_until = link.clogged_until.max(until);
    }

    fn place(&self, from: Role, to: Role) -> usize {
        self.cast.index(from) * self.cast.len() + self.cast.index(to)
    }

    fn link(&mut self, place: usize) -> &mut Link {
        self.links.get_mut(place).expect("there is a link for every pair of roles")
    }

    /// The link, brought up to date, unless it is cut.
    fn usable(&mut self, now: Instant, from: Role, to: Role) -> Option<usize> {
        let place = self.place(from, to);
        let Links { burst_every, burst_length, .. } = self.behaviour;
        let link = self.links.get_mut(place)?;
        if !burst_every.is_zero() {
            while link.changes_at <= now {
                let first = link.changes_at == Instant::default();
                link.bursting = !link.bursting && !first;
                let mean = if link.bursting { burst_length } else { burst_every };
                let generation = Duration::from_nanos(1 + self.rng.below(2 * nanos(mean)));
                link.changes_at =
                    if first { now + generation } else { link.changes_at + generation };
            }
        }
        (link.cuts == 0).then_some(place)
    }

    fn loses(&mut self, place: usize) -> bool {
        let bursting = self.link(place).bursting;
        let Links { loss_permille, burst_loss_permille, .. } = self.behaviour;
        self.rng.chance(if bursting { burst_loss_permille } else { loss_permille }, 1_000)
    }

    fn arrival(&mut self, sent: Instant, place: usize) -> Instant {
        let Links { delay_min, delay_max, stray_permille, stray_max, .. } = self.behaviour;
        let replies = self.link(place).replies;
        let more = if replies { self.behaviour.stray_reply_permille } else { 0 };
        let strays = self.rng.chance(stray_permille.max(more), 1_000);
        let longest = if strays { delay_max.max(stray_max) } else { delay_max };
        let delay = self.rng.below(nanos(longest.saturating_sub(delay_min)) + 1);
        sent.max(self.link(place).clogged_until) + delay_min + Duration::from_nanos(delay)
    }
}

/// All links, free and whole.
fn links(cast: Cast) -> Vec<Link> {
    let replies = |from, to| matches!((from, to), (Role::Node(_), Role::Switch(_)));
    let from = |from| cast.roles().map(move |to| replies(from, to));
    let all = cast.roles().flat_map(from);
    all.map(|replies| Link { replies, ..Link::default() }).collect()
}

/// TCP's least retransmission timeout on Linux.
const STREAM_RETRY_MIN: Duration = Duration::from_millis(200);
/// By then whoever waits for an answer has long given up.
const STREAM_RETRIES: u32 = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    const CAST: Cast =
        Cast { clients: 1, switches: 1, nodes: 1, controllers: 1, caches: 0, has_store: false };
    const HERE: Role = Role::Client(0);
    const THERE: Role = Role::Switch(0);
    const START: Instant = Instant::from_unix_ms(1_000_000);
    const MS: Duration = Duration::from_millis(1);

    fn net(links: Links) -> Net {
        Net::new(&Options { links, ..Options::draw(Profile::Calm, 1) }, CAST)
    }

    #[test]
    fn cuts_are_one_way_and_add_up() {
        let mut net = net(Links { delay_max: MS, ..Links::default() });
        net.cut(HERE, THERE);
        net.cut(HERE, THERE);
        net.mend(HERE, THERE);
        assert_eq!(net.carry(START, HERE, THERE), [None; 2]);
        assert!(net.carry(START, THERE, HERE)[0].is_some());
        assert_eq!(net.carry_stream(START, HERE, THERE), [None; 2]);
        net.mend(HERE, THERE);
        assert!(net.carry(START, HERE, THERE)[0].is_some());
    }

    #[test]
    fn a_clogged_link_delivers_everything_when_it_clears() {
        let mut net = net(Links { delay_max: MS, ..Links::default() });
        net.clog(HERE, THERE, START + MS * 500);
        for sent in [START, START + MS * 300, START + MS * 499] {
            let at = net.carry(sent, HERE, THERE)[0].expect("nothing is lost");
            assert!((START + MS * 500..=START + MS * 501).contains(&at));
        }
        assert!(net.carry(START, THERE, HERE)[0].unwrap() <= START + MS);
    }

    #[test]
    fn losses_come_in_bursts() {
        let bursts = Links {
            burst_every: MS * 100,
            burst_length: MS * 10,
            burst_loss_permille: 1_000,
            ..Links::default()
        };
        let mut net = net(bursts);
        let arrives: Vec<bool> = (0..100_000)
            .map(|n| net.carry(START + MS / 10 * n, HERE, THERE)[0].is_some())
            .collect();
        let lost = arrives.iter().filter(|arrived| !**arrived).count();
        let ends = arrives.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        assert!((5_000..15_000).contains(&lost), "about one in eleven: {lost}");
        assert!(lost / ends > 50, "together: {lost} in {ends} bursts");
    }

    #[test]
    fn a_stream_delivers_late_what_a_datagram_loses() {
        let mut net = net(Links { loss_permille: 500, ..Links::default() });
        let arrivals: Vec<_> =
            (0..1_000).map(|_| net.carry_stream(START, HERE, THERE)[0]).collect();
        assert!(arrivals.iter().filter(|at| at.is_none()).count() < 50);
        let late = arrivals.iter().flatten().filter(|at| **at >= START + STREAM_RETRY_MIN);
        assert!((400..600).contains(&late.count()));
    }
}
