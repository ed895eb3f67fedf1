//! What a world is like: everything follows from these, and they are printed.

use crate::profile::Profile;
use cluster::{CLOCK_RATE_MAX_PERCENT, HotPolicy, Mutant};
use std::fmt;
use std::time::Duration;

/// The options of one world. Two worlds with equal options are equal, event for event.
#[derive(Clone, Debug)]
pub struct Options {
    /// From what all randomness comes.
    pub seed: u64,
    /// From what the options were drawn.
    pub profile: Profile,
    /// How long the cluster has to come up before the first fault and the first request.
    pub lead: Duration,
    /// How long there are faults; after that the world heals.
    pub span: Duration,
    /// Storage nodes that the cluster begins with.
    pub nodes: u16,
    /// Nodes that run beside them and that an operator may add.
    pub spares: u16,
    /// Whether nodes begin as builds that do not send writes on before their disks have them, until
    /// they are started again.
    pub old_nodes: bool,
    /// Shards of each node.
    pub shards: u16,
    /// Nodes of each chain.
    pub replicas: u8,
    /// Partitions of each of both keyspaces.
    pub partitions: u32,
    /// Switches, one of them active: 1 or 2.
    pub switches: u16,
    /// Controllers, one of them at work: 1 to 3.
    pub controllers: u16,
    /// Caches.
    pub caches: u16,
    /// Whether keys of the hash keyspace have content addresses.
    pub content: bool,
    /// How long it takes at most until a route is what it is to be.
    pub route_delay_max: Duration,
    /// Whether they share a store, as one in etcd, which says who leads. Else the next one begins
    /// when the one before it has ended.
    pub shared_store: bool,
    /// Length of the leases.
    pub lease: Duration,
    /// How often the controller asks each member how it is.
    pub poll: Duration,
    /// Clients that each partition remembers.
    pub sessions_max: usize,
    /// Clients whose writes of delegated keys a switch remembers, if they are fewer than usual.
    pub granted_clients_max: Option<usize>,
    /// What each shard may send to learners in a second.
    pub copy_bytes_per_s: u64,
    /// Requests per second under which the controller takes no node for too busy.
    pub load_floor: u64,
    /// Bytes from which on it splits a partition.
    pub split_bytes: u64,
    /// How long a node may let answers wait for a sync.
    pub sync_delay_max: Duration,
    /// How far clocks are apart at most.
    pub clock_skew_max: Duration,
    /// What the fastest clock counts while the slowest counts 100. Beyond
    /// [`CLOCK_RATE_MAX_PERCENT`] nothing is promised.
    pub clock_rate_max_percent: u64,
    /// Whether clocks are set by hours, in every role: whoever starts anew may find its clock so.
    pub clock_steps: bool,
    /// What becomes of hot keys of the hash keyspace.
    pub hot: HotPolicy,
    /// What the clients do.
    pub load: Load,
    /// How the network is.
    pub links: Links,
    /// What breaks, and how often.
    pub faults: Faults,
    /// Records of each partition of three members or more that go wrong, in the healed world, each
    /// at one of them.
    pub rot: u16,
    /// Whether packets are in envelopes, and what for.
    pub hostility: Option<Hostility>,
    /// The rule of the protocol that is broken on purpose.
    pub mutant: Option<Mutant>,
}

/// What a network is like that is not to be trusted.
#[derive(Clone, Copy, Debug)]
pub struct Hostility {
    /// How long the keys of one period are used.
    pub period: Duration,
    /// Mean time between two attacks, from the first to the end of the healed world.
    pub attack_every: Duration,
    /// Clients that may only read: the last ones.
    pub readers: u16,
}

/// What the clients do.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// How many clients there are.
    pub clients: u16,
    /// Requests that each has in flight at most.
    pub in_flight: usize,
    /// Mean time between two requests of a client.
    pub think: Duration,
    /// Registers in the hash keyspace.
    pub registers: u64,
    /// What the first two registers are called, if they are to have one keyhash.
    pub twins: Option<[[u8; 16]; 2]>,
    /// How long a client waits before it gives a request up.
    pub patience: Duration,
    /// Writes that one client sends all at once, some time.
    pub flood: usize,
    /// Requests that only read, beyond those of the usual mix.
    pub reads_percent: u64,
    /// Requests that are nothing but a GET or a PUT of a register in the hash keyspace, before all
    /// others: what a hot key can stay under a delegation with.
    pub plain_percent: u64,
    /// Requests for many keys, of those that are left: reads and writes of up to 40 at once.
    pub many_percent: u64,
    /// Nine requests in ten are about keys that lie together, and so many of these are batches; the
    /// others read or write one of them. 0: there are no such keys.
    pub batch_percent: u64,
    /// Requests that write a register's value in parts, of those that are left.
    pub big_percent: u64,
    /// Requests about keys of one tag, of those that are left: single ones, scans and counts.
    pub crowd_percent: u64,
    /// Writes of keys that are never written again, of those that are left.
    pub fresh_percent: u64,
    /// Requests, and changes of what is hot, that are about one of two keys: r0 and k0.
    pub focus_percent: u64,
    /// How long most requests are about those; then they are about the next, and in the end about
    /// the first again. Zero: for ever.
    pub focus_lasts: Duration,
    /// Of the clients that go away, so many say goodbye.
    pub goodbye_percent: u64,
    /// Requests that are about a lock with a time limit, before all others; no other value has an
    /// end then.
    pub lock_percent: u64,
    /// Whether switches spread the reads of hot keys over all readers, whatever these said to hold:
    /// as if every hint were wrong.
    pub blind: bool,
    /// Whether clients give multigets hints, by maps that some of them have not heard for long, and
    /// some of which are damaged on the way.
    pub assisted: bool,
    /// Whether switches go by these.
    pub by_hints: bool,
}

/// How the network is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Links {
    /// The shortest delay.
    pub delay_min: Duration,
    /// The usual longest delay.
    pub delay_max: Duration,
    /// Packets that go astray for a while.
    pub stray_permille: u64,
    /// Those, of what nodes send to switches: replies, mostly.
    pub stray_reply_permille: u64,
    /// The longest delay of those.
    pub stray_max: Duration,
    /// Packets lost between bursts of losses.
    pub loss_permille: u64,
    /// Mean time between bursts of losses on a link; none if zero.
    pub burst_every: Duration,
    /// Mean length of a burst.
    pub burst_length: Duration,
    /// Packets lost within a burst.
    pub burst_loss_permille: u64,
    /// Packets that arrive twice.
    pub duplicate_permille: u64,
    /// Orders that somebody keeps for a switch until that begins to serve.
    pub kept_order_permille: u64,
    /// Replies that a stranger sends once more to a switch, of another version; also in the healed
    /// world.
    pub forged_permille: u64,
    /// Chain messages that a stranger sends once more, of a version that cannot be.
    pub forged_chain_permille: u64,
    /// Writes that a stranger sends once more to a switch, as those of a client that is not there.
    pub made_up_permille: u64,
}

/// Mean times between the faults of each kind; none of it if zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// A node crashes and comes back.
    pub crash_every: Duration,
    /// How many of these lose the disk.
    pub amnesia_percent: u64,
    /// How many come back with an older copy of the disk, or of a part of it.
    pub aged_percent: u64,
    /// How many have lost the last syncs.
    pub torn_percent: u64,
    /// How many power cuts, of those that meet all nodes up, leave one with a store that has no
    /// version left to give.
    pub spent_percent: u64,
    /// The controller's store is lost or replaced by an older copy, until somebody notices. In half
    /// of the worlds the map is then made anew from what nodes have on record.
    pub old_map_every: Duration,
    /// All nodes crash at once, and keep their disks.
    pub power_cut_every: Duration,
    /// A client goes away and another comes.
    pub client_every: Duration,
    /// A switch crashes.
    pub switch_every: Duration,
    /// The controller crashes.
    pub controller_every: Duration,
    /// The leader of several controllers ends, or stops with an order in its hands, or is cut off
    /// from the store or from members.
    pub leader_every: Duration,
    /// The store that controllers share stops, or takes long, or is full, or its answers get lost.
    pub store_every: Duration,
    /// A process stops for a while and then goes on (SIGSTOP, SIGCONT).
    pub pause_every: Duration,
    /// A process takes long for every packet, for a while.
    pub slow_every: Duration,
    /// Some cannot reach some others, for a while.
    pub cut_every: Duration,
    /// A link delivers nothing for a while, and then everything.
    pub clog_every: Duration,
    /// An operator adds, drains, keeps or removes a node, or pauses or resumes copies.
    pub operator_every: Duration,
    /// An operator has a partition split, or two merged. No fault by itself, but a time for them.
    pub split_every: Duration,
    /// An operator has a keyspace altered: it is to have more replicas or fewer, or another policy
    /// of hot keys. No fault by itself, but a time for them.
    pub alter_every: Duration,
    /// A cache crashes.
    pub cache_every: Duration,
    /// Caches do not reach nodes, or nobody but they reaches a node.
    pub cache_cut_every: Duration,
    /// A key turns hot or cold. No fault by itself, but a time for them.
    pub hot_every: Duration,
    /// Orders do not reach the active switch, or nodes, for a while.
    pub deaf_every: Duration,
    /// The active switch and some nodes are out of the controllers' reach for a while.
    pub strand_every: Duration,
    /// A member is asked to end, and started again. No fault by itself, but a time for them.
    pub leave_every: Duration,
    /// A node has no room in memory or on its disk, for a while. Once the world has healed one goes
    /// on without, and is not to be in anybody's way.
    pub full_every: Duration,
    /// The longest that any of these lasts.
    pub length_max: Duration,
}

impl Options {
    /// Nodes that run, in the cluster or beside it.
    #[must_use]
    pub fn nodes_all(&self) -> u16 {
        self.nodes + self.spares
    }

    /// Whether the clocks are as the protocol asks for.
    #[must_use]
    pub fn clocks_are_allowed(&self) -> bool {
        self.clock_rate_max_percent <= u64::from(CLOCK_RATE_MAX_PERCENT)
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {} of profile {}, {:?} to come up, {:?} of faults\n  cluster: {} + {} nodes x {} \
             shards, r = {}, {} partitions, {} switches, {} controllers{}; lease {:?}, poll {:?}, \
             copies {} B/s, sync within {:?}, {} sessions, hot keys: {:?}, \
             nobody is busy under {}/s, large from {} B",
            self.seed,
            self.profile,
            self.lead,
            self.span,
            self.nodes,
            self.spares,
            self.shards,
            self.replicas,
            self.partitions,
            self.switches,
            self.controllers,
            if self.shared_store { " that share a store" } else { "" },
            self.lease,
            self.poll,
            self.copy_bytes_per_s,
            self.sync_delay_max,
            self.sessions_max,
            self.hot,
            self.load_floor,
            self.split_bytes,
        )?;
        writeln!(
            f,
            "  clocks: within {:?}, rates within {} %{}",
            self.clock_skew_max,
            self.clock_rate_max_percent,
            if self.clock_steps { ", set by hours" } else { "" },
        )?;
        writeln!(f, "  {}\n  {}\n  {}", self.load, self.links, self.faults)?;
        if self.caches > 0 {
            writeln!(f, "  {} caches", self.caches)?;
        }
        if self.content {
            writeln!(f, "  content addresses, routes up to {:?} late", self.route_delay_max)?;
        }
        if self.old_nodes {
            writeln!(f, "  nodes begin as builds that wait for their disks before they send on")?;
        }
        if let Some(clients) = self.granted_clients_max {
            writeln!(f, "  switches remember {clients} clients that write delegated keys")?;
        }
        if let Some(Hostility { period, attack_every, readers }) = self.hostility {
            writeln!(
                f,
                "  envelopes: periods of {period:?}, an attack each {attack_every:?}, {readers} \
                 clients that may only read"
            )?;
        }
        match self.mutant {
            Some(mutant) => writeln!(f, "  mutant: {mutant:?}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { clients, in_flight, think, registers, patience, flood, .. } = self;
        let Self { plain_percent, many_percent, batch_percent, big_percent, .. } = self;
        let Self { reads_percent, focus_percent, crowd_percent, fresh_percent, .. } = self;
        let Self { lock_percent, goodbye_percent, focus_lasts, .. } = self;
        write!(
            f,
            "load: {clients} clients x {in_flight} in flight, each {think:?}, {registers} \
             registers, patience {patience:?}, flood of {flood}, {plain_percent} % plain, \
             {many_percent} % for many keys, {big_percent} % big, {reads_percent} % more reads, \
             {focus_percent} % for two keys, others after {focus_lasts:?}, {batch_percent} % of \
             batches, {crowd_percent} % in a crowd, {fresh_percent} % of new keys, {lock_percent} \
             % about locks, {goodbye_percent} % say goodbye{}{}{}{}",
            if self.twins.is_some() { ", two of them with one keyhash" } else { "" },
            if self.blind { ", spread blindly" } else { "" },
            if self.assisted { ", multigets with hints" } else { "" },
            if self.by_hints { ", split by them" } else { "" }
        )
    }
}

impl fmt::Display for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { delay_min, delay_max, stray_permille, stray_max, .. } = self;
        let Self { stray_reply_permille, forged_permille, .. } = self;
        let Self { loss_permille, duplicate_permille, burst_loss_permille, .. } = self;
        let Self { burst_every, burst_length, kept_order_permille, .. } = self;
        write!(
            f,
            "links: delay {delay_min:?}..{delay_max:?}, {stray_permille}/1000 and \
             {stray_reply_permille}/1000 of replies up to {stray_max:?}; loss {loss_permille}/1000"
        )?;
        if !burst_every.is_zero() {
            write!(f, ", {burst_loss_permille}/1000 for {burst_length:?} each {burst_every:?}")?;
        }
        let (forged_chain, made_up) = (self.forged_chain_permille, self.made_up_permille);
        write!(
            f,
            "; duplicates {duplicate_permille}/1000, orders kept {kept_order_permille}/1000, \
             forged {forged_permille}/1000, of chains {forged_chain}/1000, of clients that are not \
             there {made_up}/1000"
        )
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { amnesia_percent, aged_percent, torn_percent, spent_percent, .. } = self;
        let crash = format!(
            "crash ({amnesia_percent} % lose the disk, {aged_percent} % get an old one back, \
             {torn_percent} % lose its end; {spent_percent} % of power cuts leave one spent)"
        );
        let kinds = [
            (crash.as_str(), self.crash_every),
            ("power cut", self.power_cut_every),
            ("client crash", self.client_every),
            ("switch crash", self.switch_every),
            ("controller crash", self.controller_every),
            ("leader in trouble", self.leader_every),
            ("store in trouble", self.store_every),
            ("pause", self.pause_every),
            ("slow", self.slow_every),
            ("partition", self.cut_every),
            ("clog", self.clog_every),
            ("operator", self.operator_every),
            ("split or merge", self.split_every),
            ("other replicas", self.alter_every),
            ("cache crash", self.cache_every),
            ("caches parted", self.cache_cut_every),
            ("key hot or cold", self.hot_every),
            ("deaf to orders", self.deaf_every),
            ("stranded", self.strand_every),
            ("asked to end", self.leave_every),
            ("old map", self.old_map_every),
            ("full", self.full_every),
        ];
        let on = kinds.iter().filter(|(_, every)| !every.is_zero());
        let on: Vec<String> = on.map(|(kind, every)| format!("{kind} each {every:?}")).collect();
        if on.is_empty() {
            return f.write_str("faults: none");
        }
        write!(f, "faults: {}; up to {:?} long", on.join(", "), self.length_max)
    }
}
