//! `keyway bench --versus`: a rival and Keyway on one machine, one after the other under the same
//! load.

use super::connection::Target;
use super::keyway::{Engine, KEYSPACE, Keyway, Shape};
use super::load::{RivalLoad, can_send};
use super::process::own_cpu;
use super::redis::RedisCluster;
use super::work::WorkDone;
use super::{Size, Versus};
use anyhow::Context;
use bench::{Coordination, Pace, Plan, Progress};
use console::admin::Admin;
use console::answer::Answer;
use console::chart::{grouped, micros, table};
use console::exit::{Failure, Verdict};
use console::note;
use console::out;
use serde::Serialize;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use workload::{Distribution, Mix, OpKind, Spec, Summary};

/// Of servers of single keys, and of those of multigets. With more, the machine is full before they
/// are: a server that answers many keys at once does more for each request.
const SHARE: f64 = 0.03;
const SHARE_OF_MANY: f64 = 0.06;

/// Requests in flight that are tried, until the 99th percentile is over what it may be with
/// [`LATE_MAX`] of them in a row.
const IN_FLIGHT: [usize; 17] =
    [8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096];

/// With few requests in flight each wakes its server, which costs that more than the request: there
/// may be too late what is in time with more. Fewer, and what the machine does for a few seconds is
/// taken for what servers can do.
const LATE_MAX: usize = 3;

/// Connections of each thread; each takes as many commands at once as it is given.
const CONNECTIONS: usize = 16;

/// Requests in flight before a load is measured: hot keys are found and copied meanwhile.
const WARM_IN_FLIGHT: usize = 64;

/// As long as a trial, and no longer than it takes to find and copy them.
const WARM_MAX: Duration = Duration::from_secs(3);

/// Every load: its mix, and its distribution of keys.
const LOADS: [(&str, &str); 9] = [
    ("get=1", "uniform"),
    ("get=1", "zipf:0.99"),
    ("get=1", "zipf:1.2"),
    ("get=0.95,put=0.05", "zipf:0.99"),
    ("get=0.95,put=0.05", "zipf:1.2"),
    ("mget:16=1", "zipf:0.99"),
    ("mget:16=1", "zipf:1.2"),
    ("mget:100=1", "zipf:0.99"),
    ("mget:100=1", "zipf:1.2"),
];

/// A way from clients to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Way {
    /// Clients find the server of each key.
    RedisCluster,
    /// Redis clients of a proxy.
    Nutcracker,
    /// Keyway's own client.
    Keyway,
    /// The same, with multigets that say where each node's keys end.
    KeywayAssisted,
    /// Redis clients of the gateway.
    KeywayGateway,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::RedisCluster => "redis-cluster",
            Self::Nutcracker => "nutcracker",
            Self::Keyway => "keyway",
            Self::KeywayAssisted => "keyway assisted",
            Self::KeywayGateway => "keyway gateway",
        }
    }
}

/// A load on one way, at the most requests in flight that are answered in time.
#[derive(Clone, Debug, Serialize)]
struct Row {
    mix: String,
    keys: String,
    way: Way,
    /// Of one processor, of each server.
    cpu_share: f64,
    /// Whether the 99th percentile was as wanted; if not, this is the least that was tried.
    in_time: bool,
    in_flight: usize,
    per_second: f64,
    /// Against Redis Cluster under the same load.
    over_rival: Option<f64>,
    p99_us: u64,
    /// The node that served most over the mean.
    max_over_mean: f64,
    /// Processor time of a request, in microseconds: of all nodes, of what stands between them and
    /// clients, and of clients.
    nodes_us: f64,
    between_us: f64,
    clients_us: f64,
}

impl Row {
    /// Whether it is in time and the other is not, or carries more in time.
    fn is_better_than(&self, other: &Self) -> bool {
        self.in_time && (!other.in_time || self.per_second > other.per_second)
    }
}

/// Both sides, and how they are reached.
struct Field {
    redis: RedisCluster,
    keyway: Keyway,
    cluster: RivalLoad,
    nutcracker: Option<RivalLoad>,
    gateway: RivalLoad,
    assisted: Coordination,
    p99: Duration,
}

/// Whether some of the requests are for many keys.
fn has_multigets(mix: &Mix) -> bool {
    mix.share(OpKind::Mget) > 0.0
}

impl Versus {
    /// What each server gets of a processor under these requests.
    fn share_under(&self, mix: &Mix) -> f64 {
        self.cpu_share.unwrap_or(if has_multigets(mix) { SHARE_OF_MANY } else { SHARE })
    }
}

impl Versus {
    /// At equal tails, with equal shares of a processor.
    pub(super) fn compare_shares(
        &self,
        json: bool,
        (nodes, partitions): Size,
        load: Option<(Mix, Distribution)>,
        plan: impl Fn(Vec<SocketAddr>, &str) -> Result<Plan, Failure>,
    ) -> Result<Verdict, Failure> {
        if !nodes.is_power_of_two() {
            return Err(Failure::usage("--versus: a power of two of --nodes"));
        }
        let directory = tempfile::tempdir().context("no directory for servers")?;
        note!("starting {nodes} nodes of each ...");
        // Each key on one of them, as in a Redis Cluster of masters.
        let (replicas, engine) = (1, Engine::Memory);
        let shape = Shape { nodes, partitions, replicas, engine, limited: true };
        let keyway = Keyway::start(directory.path(), shape)?;
        let redis = RedisCluster::start(directory.path(), nodes)?;
        let plan = plan(vec![keyway.service], KEYSPACE)?;
        can_send(&plan)?;
        let open = |target| RivalLoad::open(&target, plan.threads, CONNECTIONS, plan.deadline);
        let map = Admin::new(&[keyway.admin], ANSWER_WAIT_MAX).map()?;
        let field = Field {
            cluster: open(Target::Cluster(redis.addresses.clone()))?,
            nutcracker: redis.nutcracker().map(|at| open(Target::One(at))).transpose()?,
            gateway: open(Target::One(keyway.redis))?,
            assisted: Coordination::Assisted(Arc::new(map)),
            redis,
            keyway,
            p99: self.p99,
        };
        let parameters = self.parameters(nodes, &plan);
        if !json {
            out::line(&parameters.text)?;
        }
        field.fill(&plan)?;
        let mut rows = Vec::new();
        for (mix, keys) in load.map_or_else(all_loads, |load| vec![load]) {
            let share = self.share_under(&mix);
            field.redis.limit(Some(share))?;
            field.keyway.limit(Some(share))?;
            let spec = Spec { mix, distribution: keys, ..plan.spec.clone() };
            rows.extend(field.rows(&Plan { spec, ..plan.clone() }, share)?);
        }
        if json {
            Answer::new("done").with("parameters", parameters).with("rows", rows).print()?;
        } else {
            out::print(&table_of(&rows))?;
        }
        Ok(Verdict::Yes)
    }

    fn parameters(&self, nodes: u16, plan: &Plan) -> Parameters {
        let (p99, seconds) = (self.p99, plan.duration.as_secs_f64());
        let text = format!(
            "servers       {nodes} of each, each limited to a share of a processor; other \
             processes: no limit\n\
             keys          {}, key {} bytes, value {} bytes, one copy (hot keys: as Keyway \
             decides)\n\
             clients       {} thread(s), closed loop; seed {}\n\
             trials        {seconds} s; the most in flight with p99 within {}\n",
            plan.spec.keys,
            plan.names.name(0).len(),
            plan.values.sizes(),
            plan.threads,
            plan.seed,
            micros(u64::try_from(p99.as_micros()).unwrap_or(u64::MAX)),
        );
        Parameters {
            nodes,
            keys: plan.spec.keys,
            key_bytes: plan.names.name(0).len(),
            value_bytes: plan.values.sizes().to_string(),
            threads: plan.threads,
            seconds,
            p99_us_max: u64::try_from(p99.as_micros()).unwrap_or(u64::MAX),
            seed: plan.seed,
            text,
        }
    }
}

/// How long the controller of a cluster that is up may take to say its map.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(10);

fn all_loads() -> Vec<(Mix, Distribution)> {
    let parsed = LOADS.map(|(mix, keys)| {
        (mix.parse().expect("a mix of ours"), keys.parse().expect("a distribution of ours"))
    });
    parsed.to_vec()
}

/// What a comparison depends on.
#[derive(Debug, Serialize)]
struct Parameters {
    nodes: u16,
    keys: u64,
    key_bytes: usize,
    value_bytes: String,
    threads: usize,
    seconds: f64,
    p99_us_max: u64,
    seed: u64,
    /// The same for people.
    #[serde(skip)]
    text: String,
}

impl Field {
    /// Writes all keys on both sides.
    fn fill(&self, plan: &Plan) -> Result<(), Failure> {
        let progress = Progress::new("loading");
        bench::load(plan, |last| progress.tell(last))?;
        progress.end();
        self.cluster.load(plan)?;
        Ok(())
    }

    /// A load on every way.
    fn rows(&self, plan: &Plan, cpu_share: f64) -> Result<Vec<Row>, Failure> {
        let mut ways = vec![Way::RedisCluster];
        let many = has_multigets(&plan.spec.mix);
        if self.nutcracker.is_some() && !many {
            ways.push(Way::Nutcracker);
        }
        ways.push(Way::Keyway);
        if many {
            ways.push(Way::KeywayAssisted);
        }
        ways.push(Way::KeywayGateway);
        let mut rows: Vec<Row> = Vec::new();
        for way in ways {
            let mut row = self.row(plan, cpu_share, way)?;
            let rival = rows.first().filter(|rival| rival.in_time && row.in_time);
            row.over_rival = rival.map(|rival| row.per_second / rival.per_second);
            rows.push(row);
        }
        Ok(rows)
    }

    /// The most that one way carries in time.
    fn row(&self, plan: &Plan, cpu_share: f64, way: Way) -> Result<Row, Failure> {
        let (pace, duration) = (Pace::Closed(WARM_IN_FLIGHT), plan.duration.min(WARM_MAX));
        self.run(&Plan { pace, duration, ..plan.clone() }, way)?;
        let (mut best, mut late): (Option<Row>, usize) = (None, 0);
        for in_flight in IN_FLIGHT.into_iter().filter(|it| *it >= plan.threads) {
            let plan = Plan { pace: Pace::Closed(in_flight), ..plan.clone() };
            let mut row = self.trial(&plan, cpu_share, way)?;
            if !row.in_time {
                // What else the machine does may have made it late.
                row = self.trial(&plan, cpu_share, way)?;
            }
            let tried = format!("{} {}, {}, {in_flight} in flight", row.mix, row.keys, way.name());
            let (rate, p99) = (grouped(row.per_second as u64), micros(row.p99_us));
            note!("  {tried}: {rate} per second, p99 {p99}");
            late = if row.in_time { 0 } else { late + 1 };
            if best.as_ref().is_none_or(|best| row.is_better_than(best)) {
                best = Some(row);
            }
            if late == LATE_MAX {
                break;
            }
        }
        best.ok_or_else(|| Failure::usage("--threads: more than are tried in flight"))
    }

    fn trial(&self, plan: &Plan, cpu_share: f64, way: Way) -> Result<Row, Failure> {
        let (before, own) = (self.work(way)?, own_cpu()?);
        let summary = self.run(plan, way)?;
        let clients = own_cpu()?.saturating_sub(own);
        let work = self.work(way)?.since(&before);
        let Summary { all, .. } = &summary;
        let each = |time: Duration| time.as_secs_f64() * 1e6 / all.ops.max(1) as f64;
        let Pace::Closed(in_flight) = plan.pace else { unreachable!("comparisons are closed") };
        let all_done = all.endings.done == all.endings.total();
        Ok(Row {
            mix: plan.spec.mix.to_string(),
            keys: plan.spec.distribution.to_string(),
            way,
            cpu_share,
            in_time: all_done && u128::from(all.latency.p99_us) <= self.p99.as_micros(),
            in_flight,
            per_second: all.ops_per_second,
            over_rival: None,
            p99_us: all.latency.p99_us,
            max_over_mean: work.imbalance(),
            nodes_us: each(work.nodes),
            between_us: each(work.between),
            clients_us: each(clients),
        })
    }

    fn run(&self, plan: &Plan, way: Way) -> Result<Summary, Failure> {
        let load = match way {
            Way::Keyway => return Ok(bench::measure(plan, |_| ())?.summary),
            Way::KeywayAssisted => {
                let plan = Plan { coordination: self.assisted.clone(), ..plan.clone() };
                return Ok(bench::measure(&plan, |_| ())?.summary);
            }
            Way::RedisCluster => &self.cluster,
            Way::Nutcracker => self.nutcracker.as_ref().expect("only tried where there is one"),
            Way::KeywayGateway => &self.gateway,
        };
        Ok(load.measure(plan)?)
    }

    fn work(&self, way: Way) -> Result<WorkDone, Failure> {
        Ok(match way {
            Way::RedisCluster | Way::Nutcracker => self.redis.work()?,
            Way::Keyway | Way::KeywayAssisted => self.keyway.work(false)?,
            Way::KeywayGateway => self.keyway.work(true)?,
        })
    }
}

fn table_of(rows: &[Row]) -> String {
    let head = [
        "load",
        "keys",
        "servers",
        "share",
        "per second",
        "x Redis Cluster",
        "p99",
        "in flight",
        "max/mean",
        "nodes µs",
        "between µs",
        "clients µs",
    ];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    for row in rows {
        let late = if row.in_time { "" } else { " (late)" };
        lines.push(vec![
            row.mix.clone(),
            row.keys.clone(),
            row.way.name().to_owned(),
            row.cpu_share.to_string(),
            grouped(row.per_second.round() as u64),
            row.over_rival.map_or_else(|| "-".to_owned(), |times| format!("{times:.2}")),
            format!("{}{late}", micros(row.p99_us)),
            row.in_flight.to_string(),
            format!("{:.2}", row.max_over_mean),
            format!("{:.1}", row.nodes_us),
            format!("{:.1}", row.between_us),
            format!("{:.1}", row.clients_us),
        ]);
    }
    let mut text = table(&lines);
    text.push_str(
        "\nprocessor time per request: all nodes; what stands between them and clients (switch and \
         controller, gateway, nutcracker); clients. The kernel's own for packets on loopback is \
         in whoever sends.\n",
    );
    text
}

#[test]
fn all_loads_are_loads() {
    for (mix, keys) in LOADS {
        assert_eq!(mix.parse::<Mix>().unwrap().share(OpKind::Scan), 0.0);
        keys.parse::<Distribution>().unwrap();
    }
}
