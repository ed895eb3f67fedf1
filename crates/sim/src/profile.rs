//! Kinds of worlds. Within each, the options of a world are drawn from its seed: a *swarm* of
//! worlds with some faults on and others off, in different strength, covers more than one careful
//! choice.

mod caches;
mod clocks;
mod content;
mod disks;
mod either;
mod fences;
mod hostile;
mod hot;
mod leaders;
mod loaded;
mod many;
mod parts;
mod replicas;
mod upgrades;

use crate::actor::SESSIONS_USUAL;
use crate::options::{Faults, Links, Load, Options};
use cluster::{CLOCK_RATE_MAX_PERCENT, HotPolicy};
use controller::SPLIT_BYTES;
use machine::Rng;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Makes the profiles from their names, and from what their comments say of them.
macro_rules! profiles {
    ($($(#[doc = $about:literal])+ $profile:ident = $name:literal,)+) => {
        /// What a world is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Profile {
            $($(#[doc = $about])+ $profile,)+
        }

        impl Profile {
            /// Every profile.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$profile),+];

            /// Its name, in one word.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$profile => $name,)+
                }
            }

            /// What happens in such a world, in a sentence.
            #[must_use]
            pub fn about(self) -> &'static str {
                match self {
                    $(Self::$profile => concat!($($about),+).trim_start(),)+
                }
            }
        }
    };
}

profiles! {
    /// Nothing fails.
    Calm = "calm",
    /// The network loses, also in bursts, doubles, reorders, delays and clogs.
    Network = "network",
    /// Some cannot reach some others, in both directions or in one.
    Partitions = "partitions",
    /// Nodes and clients crash and come back with their disks; power cuts.
    Crashes = "crashes",
    /// Nodes lose their disks.
    Amnesia = "amnesia",
    /// Processes stop and go on or are slow, and clocks run at the edge of their rates.
    Pauses = "pauses",
    /// Nodes are added, drained, kept and removed, and copies paused, while nodes crash.
    Membership = "membership",
    /// Switches and controllers fail, and others take over.
    Switches = "switches",
    /// Keys turn hot and cold, and anything fails meanwhile.
    Hot = "hot",
    /// Some of all that.
    Everything = "everything",
    /// Requests for many keys at once, and anything fails meanwhile.
    Many = "many",
    /// Batches of keys that lie together, hot or not, and anything fails meanwhile.
    Batches = "batches",
    /// Values in parts, and anything fails meanwhile.
    Big = "big",
    /// More clients than nodes remember, one after the other.
    Sessions = "sessions",
    /// Keys that share a match value, among them values in parts that are written again and again,
    /// with scans and counts, and anything fails meanwhile.
    Tags = "tags",
    /// Older copies of disks and of the controller's store are put back, and disks lose what they
    /// said to have kept.
    Restores = "restores",
    /// Nodes run out of memory and disk, and anything fails meanwhile.
    Full = "full",
    /// Clocks are set by hours while everybody starts anew, and values go some time from now.
    Clocks = "clocks",
    /// Stores go wrong by themselves, after nodes have crashed, and replicas are compared.
    Rot = "rot",
    /// Leases last longer than faults do, so that nobody is left behind but by fences, and members
    /// that the controller cannot reach serve on.
    Fences = "fences",
    /// Members are asked to end and started again, in order or not, and anything fails meanwhile.
    Upgrades = "upgrades",
    /// Three controllers share a store that is late, stops, is full or answers nobody, and the one
    /// that leads ends, is stopped and goes on later, or is cut off.
    Leaders = "leaders",
    /// Most requests are about few keys, and after a while about others, so that replicas move to
    /// where there is less to do; and anything fails meanwhile.
    Loaded = "loaded",
    /// Partitions are split and merged, and anything fails meanwhile.
    Parts = "parts",
    /// Keyspaces are to have more replicas and fewer, and anything fails meanwhile.
    Replicas = "replicas",
    /// Caches hold the keys that are read most, crash, stop and go on, and anything fails
    /// meanwhile.
    Caches = "caches",
    /// Keys are held by caches or copied to nodes, each one or the other, and anything fails
    /// meanwhile.
    Either = "either",
    /// Requests go to the content addresses of their keys, by routes that are late and wrong, and
    /// anything fails meanwhile.
    Content = "content",
    /// Packets are in envelopes, whose keys change. Somebody repeats, alters and makes up what he
    /// can, also with a pass that he has stolen, and anything fails meanwhile.
    Hostile = "hostile",
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|profile| profile.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|profile| profile.name()).collect();
            format!("no profile is called {name:?}; there are {}", names.join(", "))
        })
    }
}

impl Options {
    /// Draws a world of this profile.
    #[must_use]
    pub fn draw(profile: Profile, seed: u64) -> Self {
        let mut draw = Draw(Rng::new(seed).fork("options").fork(profile.name()));
        let mut options = draw.base(profile, seed);
        match profile {
            Profile::Calm => options.span = draw.ms(&[500, 2_000]),
            Profile::Network => draw.network(&mut options),
            Profile::Partitions => draw.partitions(&mut options),
            Profile::Crashes => draw.crashes(&mut options),
            Profile::Amnesia => draw.amnesia(&mut options),
            Profile::Pauses => draw.pauses(&mut options),
            Profile::Membership => draw.membership(&mut options),
            Profile::Switches => draw.switches(&mut options),
            Profile::Hot => draw.hot(&mut options),
            Profile::Everything => draw.everything(&mut options),
            Profile::Many => draw.many(&mut options),
            Profile::Batches => draw.batches(&mut options),
            Profile::Big => draw.big(&mut options),
            Profile::Sessions => draw.sessions(&mut options),
            Profile::Tags => draw.tags(&mut options),
            Profile::Restores => draw.restores(&mut options),
            Profile::Full => draw.full(&mut options),
            Profile::Clocks => draw.clocks(&mut options),
            Profile::Rot => draw.rot(&mut options),
            Profile::Fences => draw.fences(&mut options),
            Profile::Upgrades => draw.upgrades(&mut options),
            Profile::Leaders => draw.leaders(&mut options),
            Profile::Loaded => draw.loaded(&mut options),
            Profile::Parts => draw.parts(&mut options),
            Profile::Replicas => draw.replicas(&mut options),
            Profile::Caches => draw.caches(&mut options),
            Profile::Either => draw.either(&mut options),
            Profile::Content => draw.content(&mut options),
            Profile::Hostile => draw.hostile(&mut options),
        }
        options
    }
}

struct Draw(Rng);

impl Draw {
    fn base(&mut self, profile: Profile, seed: u64) -> Options {
        let nodes = self.small(1, 6);
        let delay_min = Duration::from_micros(self.between(1, 100));
        Options {
            seed,
            profile,
            // The controller is patient with nodes that have just been started, for two seconds.
            lead: self.ms(&[0, 2_200, 2_200]),
            span: self.ms(&[3_000, 5_000, 8_000]),
            nodes,
            spares: self.pick(&[0, 0, 1, 2]),
            old_nodes: false,
            shards: self.pick(&[1, 1, 2]),
            replicas: u8::try_from(self.small(1, nodes.min(4))).expect("at most 4"),
            partitions: self.pick(&[1, 1, 3]),
            switches: self.pick(&[1, 2]),
            controllers: self.pick(&[1, 2]),
            caches: 0,
            content: false,
            route_delay_max: Duration::ZERO,
            shared_store: false,
            lease: Duration::from_millis(500),
            poll: Duration::from_millis(100),
            sessions_max: SESSIONS_USUAL,
            granted_clients_max: None,
            copy_bytes_per_s: self.pick(&[1 << 24, 1 << 24, 20_000]),
            // Where load and size are the point, profiles say so: what follows from them takes time
            // until the world is at rest.
            load_floor: u64::MAX,
            split_bytes: SPLIT_BYTES,
            sync_delay_max: self.us(&[0, 0, 200, 5_000]),
            clock_skew_max: self.ms(&[0, 10, 20]),
            clock_rate_max_percent: self.pick(&[100, CLOCK_RATE_MAX_PERCENT.into()]),
            clock_steps: false,
            hot: HotPolicy::Replicate,
            load: Load {
                clients: self.pick(&[1, 2, 4]),
                in_flight: self.pick(&[3, 8]),
                think: self.ms(&[20, 40, 80]),
                registers: self.pick(&[1, 2, 5]),
                twins: None,
                patience: self.ms(&[1_000, 5_000]),
                flood: 0,
                plain_percent: 0,
                many_percent: 0,
                batch_percent: 0,
                big_percent: 0,
                crowd_percent: 0,
                reads_percent: 0,
                focus_percent: 0,
                focus_lasts: Duration::ZERO,
                goodbye_percent: 0,
                fresh_percent: 0,
                lock_percent: 0,
                blind: false,
                assisted: false,
                by_hints: false,
            },
            links: Links {
                delay_min,
                delay_max: delay_min + self.us(&[50, 500, 5_000]),
                ..Links::default()
            },
            faults: Faults { length_max: self.ms(&[300, 1_500, 3_000]), ..Faults::default() },
            rot: 0,
            hostility: None,
            mutant: None,
        }
    }

    fn network(&mut self, options: &mut Options) {
        let links = &mut options.links;
        links.loss_permille = self.pick(&[0, 10, 50, 200]);
        links.duplicate_permille = self.pick(&[0, 10, 100, 300]);
        links.stray_permille = self.pick(&[0, 10, 100]);
        links.stray_max = self.ms(&[50, 300, 2_000]);
        links.burst_every = self.ms(&[0, 300, 1_000]);
        links.burst_length = self.ms(&[10, 100, 600]);
        links.burst_loss_permille = self.pick(&[700, 1_000]);
        if self.0.chance(1, 3) {
            links.delay_max = links.delay_min + Duration::from_millis(50);
        }
        options.faults.clog_every = self.ms(&[0, 300, 1_000]);
    }

    /// A network that is not perfect, where it is not the point.
    fn some_noise(&mut self, options: &mut Options) {
        options.links.loss_permille = self.pick(&[0, 0, 10, 50]);
        options.links.duplicate_permille = self.pick(&[0, 0, 50]);
        options.links.stray_permille = self.pick(&[0, 0, 20, 150]);
        options.links.stray_max = self.ms(&[100, 2_000]);
    }

    fn partitions(&mut self, options: &mut Options) {
        self.some_noise(options);
        options.faults.cut_every = self.ms(&[200, 600, 1_500]);
        options.switches = self.pick(&[1, 2, 2]);
    }

    fn crashes(&mut self, options: &mut Options) {
        self.some_noise(options);
        options.faults.crash_every = self.ms(&[200, 600, 1_500]);
        options.faults.power_cut_every = self.ms(&[0, 0, 1_500]);
        options.faults.client_every = self.ms(&[0, 0, 500]);
    }

    /// Clients come and go faster than they can all be remembered, and copies of what those have
    /// sent who are gone arrive when they are long forgotten.
    fn sessions(&mut self, options: &mut Options) {
        self.some_noise(options);
        options.span = self.ms(&[8_000, 12_000]);
        // Three clients are alive at once, and a copy that arrives late counts as heard from one
        // who is dead: with room for three, the third could be refused until the world ends.
        options.sessions_max = usize::from(self.small(4, 8));
        let patience = self.ms(&[5_000]);
        options.load.clients = self.pick(&[2, 3]);
        options.load.goodbye_percent = self.pick(&[0, 50, 90]);
        options.links.stray_permille = self.pick(&[50, 150]);
        options.links.stray_max = self.ms(&[2_000, 8_000]);
        // Longer than anybody is kept who was just heard, and the dead are heard for as long as
        // copies stray: until then new ones find no room.
        options.load.patience = patience + options.links.stray_max;
        options.links.forged_chain_permille = self.pick(&[0, 20, 100]);
        options.faults.client_every = self.ms(&[300, 1_000]);
        options.faults.crash_every = self.ms(&[0, 0, 1_500]);
        options.faults.cut_every = self.ms(&[0, 0, 1_500]);
    }

    fn amnesia(&mut self, options: &mut Options) {
        self.some_noise(options);
        options.nodes = self.small(2, 6);
        let most = options.nodes.min(4);
        options.replicas = u8::try_from(self.small(2, most)).expect("at most 4");
        options.faults.crash_every = self.ms(&[300, 600, 1_500]);
        options.faults.amnesia_percent = self.pick(&[30, 70, 100]);
        options.faults.clog_every = self.ms(&[0, 0, 400]);
    }

    fn pauses(&mut self, options: &mut Options) {
        self.some_noise(options);
        options.clock_rate_max_percent = CLOCK_RATE_MAX_PERCENT.into();
        options.clock_skew_max = self.ms(&[20, 50]);
        options.faults.pause_every = self.ms(&[150, 400, 1_000]);
        options.faults.slow_every = self.ms(&[0, 400, 1_000]);
        if self.0.chance(1, 16) {
            options.load.flood = 6_000;
            options.partitions = 1;
        }
    }

    fn membership(&mut self, options: &mut Options) {
        self.some_noise(options);
        options.nodes = self.small(2, 5);
        let most = options.nodes.min(3);
        options.replicas = u8::try_from(self.small(1, most)).expect("at most 3");
        options.spares = self.pick(&[1, 2]);
        options.faults.operator_every = self.ms(&[150, 400, 800]);
        options.faults.crash_every = self.ms(&[0, 600, 1_500]);
        options.faults.amnesia_percent = self.pick(&[0, 30]);
        options.faults.pause_every = self.ms(&[0, 0, 800]);
        options.copy_bytes_per_s = self.pick(&[1 << 24, 20_000, 5_000]);
    }

    fn switches(&mut self, options: &mut Options) {
        self.some_noise(options);
        options.switches = self.pick(&[1, 2, 2, 2]);
        options.controllers = self.pick(&[1, 2, 2]);
        options.faults.switch_every = self.ms(&[0, 300, 1_000]);
        options.faults.controller_every = self.ms(&[0, 300, 1_000]);
        options.faults.pause_every = self.ms(&[0, 400]);
        options.faults.cut_every = self.ms(&[0, 600]);
    }

    fn everything(&mut self, options: &mut Options) {
        if self.0.chance(1, 2) {
            self.network(options);
        } else {
            self.some_noise(options);
        }
        let every = &[0, 0, 0, 600, 1_500];
        options.faults = Faults {
            crash_every: self.ms(&[0, 400, 1_500]),
            amnesia_percent: self.pick(&[0, 20, 60]),
            power_cut_every: self.ms(&[0, 0, 0, 2_000]),
            client_every: self.ms(every),
            switch_every: self.ms(every),
            controller_every: self.ms(every),
            pause_every: self.ms(every),
            slow_every: self.ms(every),
            cut_every: self.ms(every),
            clog_every: self.ms(every),
            operator_every: self.ms(every),
            hot_every: self.ms(&[0, 50, 300]),
            deaf_every: self.ms(every),
            ..options.faults
        };
        options.hot = self.hot_policy();
        if self.0.chance(1, 4) {
            self.delegations(options);
        }
    }

    /// Parts and manifests come apart, while chains change.
    fn big(&mut self, options: &mut Options) {
        self.everything(options);
        options.load.big_percent = self.pick(&[20, 40, 60]);
        options.load.registers = self.pick(&[1, 2]);
        options.load.reads_percent = self.pick(&[0, 20, 40]);
        options.load.plain_percent = options.load.plain_percent.min(30);
        options.faults.hot_every = self.ms(&[0, 300, 1_000]);
        options.load.batch_percent = self.pick(&[0, 0, 0, 30, 60]);
    }

    /// Scans and counts begin and go on in the middle of one match value, past parts.
    fn tags(&mut self, options: &mut Options) {
        self.everything(options);
        options.load.crowd_percent = self.pick(&[60, 80, 100]);
        options.load.big_percent = self.pick(&[0, 20]);
        options.load.plain_percent = 0;
        options.load.think = self.ms(&[10, 20, 40]);
        options.faults.hot_every = self.ms(&[0, 0, 300]);
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.below(most - least + 1)
    }

    fn small(&mut self, least: u16, most: u16) -> u16 {
        let drawn = self.between(least.into(), most.into());
        u16::try_from(drawn).expect("between 16-bit numbers")
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let index = usize::try_from(self.0.below(from.len() as u64)).expect("below a length");
        *from.get(index).expect("drawn below the length")
    }

    fn ms(&mut self, from: &[u64]) -> Duration {
        Duration::from_millis(self.pick(from))
    }

    fn us(&mut self, from: &[u64]) -> Duration {
        Duration::from_micros(self.pick(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_options_make_sense() {
        for profile in Profile::ALL {
            for seed in 0..200 {
                let options = Options::draw(profile, seed);
                assert!(u16::from(options.replicas) <= options.nodes, "{options}");
                assert!(options.clocks_are_allowed(), "{options}");
                assert_eq!(options.to_string(), Options::draw(profile, seed).to_string());
            }
        }
    }

    #[test]
    fn names_are_read_back() {
        for profile in Profile::ALL {
            assert_eq!(profile.name().parse(), Ok(profile));
        }
        assert!("stormy".parse::<Profile>().is_err());
    }
}
