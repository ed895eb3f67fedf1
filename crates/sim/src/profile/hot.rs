//! Worlds with hot keys.

use super::Draw;
use crate::options::{Faults, Load, Options};
use crate::twins::twins;
use cluster::HotPolicy;
use std::time::Duration;

impl Draw {
    pub(super) fn hot_policy(&mut self) -> HotPolicy {
        self.pick(&[HotPolicy::Replicate, HotPolicy::Replicate, HotPolicy::Reads])
    }

    /// Few keys and many reads, so that a stale one would be seen. In a quarter of the worlds
    /// anything fails, in the others nothing but what brings switch and nodes apart.
    pub(super) fn hot(&mut self, options: &mut Options) {
        options.load = Load {
            clients: self.pick(&[2, 4, 6]),
            in_flight: self.pick(&[1, 3, 8]),
            think: self.ms(&[3, 6, 12]),
            registers: self.pick(&[1, 2]),
            reads_percent: self.pick(&[20, 40, 60, 80]),
            focus_percent: self.pick(&[0, 90, 90]),
            blind: self.0.chance(5, 6),
            ..options.load
        };
        options.span = self.ms(&[2_000, 3_000]);
        options.faults.hot_every = self.ms(&[15, 30, 60, 300]);
        options.hot = self.hot_policy();
        let delegations = self.0.chance(1, 2);
        match self.between(1, 28) {
            1 => self.network(options),
            2 => self.partitions(options),
            3 => self.crashes(options),
            4 => self.amnesia(options),
            5 => self.pauses(options),
            6 => self.switches(options),
            7 => self.membership(options),
            _ => self.discord(options),
        }
        options.load.flood = 0;
        options.nodes = options.nodes.max(self.small(3, 5));
        if delegations {
            self.delegations(options);
        }
        if self.0.chance(1, 4) {
            self.takeovers(options);
        }
        if self.0.chance(1, 16) {
            options.load.registers = options.load.registers.max(2);
            options.load.twins = Some(twins(options.seed));
        }
        options.links.forged_permille = self.pick(&[0, 0, 20, 200]);
        self.turns(options);
    }

    /// Few keys that are written much, for as long as it takes to send them under delegations: in a
    /// third of the worlds nothing else is asked, so that they stay delegated; in the others
    /// something asks for what only their homes can do, now and then or often, and they come and
    /// go.
    pub(super) fn delegations(&mut self, options: &mut Options) {
        options.hot = HotPolicy::Replicate;
        options.lead = Duration::from_millis(2_200);
        options.span = self.ms(&[3_000, 5_000]);
        options.nodes = options.nodes.max(self.small(3, 5));
        options.load.plain_percent = self.pick(&[100, 98, 80]);
        options.load.reads_percent = self.pick(&[0, 20, 50, 80]);
        options.load.registers = self.pick(&[1, 1, 2]);
        options.load.clients = self.pick(&[2, 4, 6]);
        options.load.in_flight = self.pick(&[1, 3, 8]);
        options.load.think = self.ms(&[3, 6, 12]);
        options.load.blind = self.0.chance(1, 2);
        // A key that is pinned and unpinned has a new generation each time.
        options.faults.hot_every = self.ms(&[100, 300, 1_000]);
        options.links.stray_permille = self.pick(&[0, 20, 100]);
        options.links.stray_max = self.ms(&[50, 150, 500]);
        options.links.duplicate_permille = self.pick(&[0, 50, 200]);
        options.links.loss_permille = self.pick(&[0, 10, 50]);
        self.made_up_ids(options);
        self.goodbyes(options);
        self.slow_disks(options);
    }

    /// In a sixth of the worlds power goes often while disks are slow: a write is on some disks of
    /// its chain alone, and which node home hears of first decides what it takes for the newest.
    fn slow_disks(&mut self, options: &mut Options) {
        // By a generator of its own: what else is drawn stays what it was.
        let mut draw = Draw(self.0.fork("slow disks"));
        if draw.0.chance(1, 6) {
            (options.nodes, options.replicas) = (3, 3);
            options.sync_delay_max = draw.ms(&[10, 20]);
            options.faults.power_cut_every = draw.ms(&[300, 600]);
            options.load.reads_percent = draw.pick(&[50, 80]);
        }
    }

    /// In a quarter of the worlds clients come and go while keys stay delegated, and say goodbye;
    /// copies of what they have written arrive when they are gone.
    fn goodbyes(&mut self, options: &mut Options) {
        // By a generator of its own: what else is drawn stays what it was.
        let mut draw = Draw(self.0.fork("goodbyes"));
        if draw.0.chance(1, 4) {
            options.load.goodbye_percent = draw.pick(&[50, 90]);
            options.faults.client_every = draw.ms(&[100, 300]);
            options.faults.hot_every = draw.ms(&[300, 1_000]);
            options.links.stray_permille = draw.pick(&[50, 200]);
            options.links.stray_max = draw.ms(&[50, 150, 500]);
            options.links.duplicate_permille = draw.pick(&[50, 200]);
        }
    }

    /// In half of the worlds with delegations and several switches, these take turns, and somebody
    /// keeps orders for each until it serves again.
    fn turns(&mut self, options: &mut Options) {
        // By a generator of its own: what else is drawn stays what it was.
        let mut draw = Draw(self.0.fork("turns"));
        if options.switches > 1 && options.load.plain_percent > 0 && draw.0.chance(1, 2) {
            options.links.kept_order_permille = draw.pick(&[300, 900]);
            options.links.loss_permille = draw.pick(&[10, 50, 100]);
            options.lease = Duration::from_millis(200);
            options.poll = Duration::from_millis(40);
            options.faults = Faults {
                hot_every: draw.ms(&[100, 300]),
                strand_every: draw.ms(&[200, 400, 800]),
                length_max: Duration::from_millis(450),
                ..Faults::default()
            };
            options.span = Duration::from_secs(5);
        }
    }

    /// In a third of the worlds strangers fill what switches remember of clients.
    fn made_up_ids(&mut self, options: &mut Options) {
        // By a generator of its own: what else is drawn stays what it was.
        let mut rng = self.0.fork("made-up ids");
        if rng.chance(1, 3) {
            options.links.made_up_permille = 20 + rng.below(480);
            options.granted_clients_max = usize::try_from(2 + rng.below(30)).ok();
        }
    }

    /// Replies that stray, so that nodes have shown what the switch does not know of; orders that
    /// do not arrive; members and switches that take turns. Beside that, nothing: keys are to be
    /// served from their copies most of the time.
    fn discord(&mut self, options: &mut Options) {
        options.lead = Duration::from_millis(2_200);
        options.replicas = u8::try_from(self.small(1, 3)).expect("at most 3");
        options.nodes = self.small(3, 5);
        options.links.stray_reply_permille = self.pick(&[200, 400]);
        options.links.stray_max = self.ms(&[50, 150, 500]);
        options.faults.deaf_every = self.ms(&[50, 150]);
        options.faults.length_max = self.ms(&[100, 450]);
        match self.between(0, 9) {
            0 => self.flicker(options),
            1 => {
                options.faults.crash_every = self.ms(&[400, 800]);
                options.faults.amnesia_percent = 100;
            }
            2 => {
                options.spares = 2;
                options.faults.operator_every = self.ms(&[100, 300]);
            }
            3 => {
                options.faults.deaf_every = Duration::ZERO;
                self.flicker(options);
            }
            4 => {
                options.faults.crash_every = self.ms(&[200, 500]);
                options.faults.amnesia_percent = 100;
                self.learners(options);
            }
            5 => {
                options.spares = 2;
                options.faults.operator_every = self.ms(&[50, 150]);
                self.learners(options);
            }
            6 | 7 => self.late_proofs(options),
            _ => {
                options.switches = 2;
                options.lease = Duration::from_millis(200);
                options.poll = Duration::from_millis(40);
                options.links.stray_permille = self.pick(&[0, 20, 100]);
                options.faults.deaf_every = self.ms(&[100, 200]);
                options.faults.length_max = Duration::from_millis(500);
                self.flicker(options);
            }
        }
    }

    /// Switches and controllers crash, and others take over, while keys turn.
    fn takeovers(&mut self, options: &mut Options) {
        (options.switches, options.controllers) = (self.pick(&[1, 2, 2]), self.pick(&[1, 2]));
        options.faults.switch_every = self.ms(&[0, 600, 1_200]);
        options.faults.controller_every = self.ms(&[400, 800]);
        options.faults.length_max = options.faults.length_max.min(Duration::from_millis(450));
    }

    /// What a tail has said of a key in one generation arrives in the next one, whose readers have
    /// what they were sent in the one before: copies stray, too.
    fn late_proofs(&mut self, options: &mut Options) {
        self.flicker(options);
        (options.replicas, options.load.registers) = (1, 1);
        options.load.blind = true;
        options.links.stray_permille = self.pick(&[50, 200]);
        options.faults.deaf_every = Duration::ZERO;
    }

    /// The same key turns hot and cold all the time, and is asked for so rarely that what is late
    /// comes before what is not.
    fn flicker(&mut self, options: &mut Options) {
        options.faults.hot_every = self.ms(&[15, 25, 40]);
        options.load.think = self.ms(&[3, 6, 12, 25]);
        options.load.clients = self.pick(&[2, 4]);
        options.load.reads_percent = self.pick(&[0, 30, 60]);
        options.load.focus_percent = 90;
        options.span = Duration::from_secs(10);
    }

    /// Chains change while keys stay hot.
    fn learners(&mut self, options: &mut Options) {
        options.replicas = u8::try_from(self.small(2, 3)).expect("at most 3");
        options.copy_bytes_per_s = 1 << 24;
        options.faults.hot_every = self.ms(&[60, 150, 400]);
        options.faults.deaf_every = Duration::ZERO;
    }
}
