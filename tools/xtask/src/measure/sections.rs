//! What is measured, and which tables of the page it makes.

use super::command::Measuring;
use super::need::{ETCD, IP, MEMCACHED, NUTCRACKER, Need, REDIS};
use super::tables::{
    bundles, coordination, durable, engine, hot, kernel, rack, simulator, stores, switch,
};
use anyhow::{Result, bail};
use serde_json::Value;

/// Commands that are run one after the other, and what becomes of their rows.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) name: &'static str,
    /// What it measures, for people who choose.
    pub(super) about: &'static str,
    pub(super) needs: &'static [Need],
    pub(super) commands: Vec<Measuring>,
    /// What a run is thought to take, until one has been.
    pub(super) seconds: f64,
    /// How often it is run, if nothing else was said.
    pub(super) runs: usize,
    pub(super) tables: Vec<Table>,
}

/// A table of the page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Table {
    /// What its marker says.
    pub(super) name: &'static str,
    pub(super) of: fn(&[Value]) -> Result<String>,
}

/// Runs of sections whose tables have ratios.
const RUNS: usize = 3;

/// Of those that have none, or whose comparisons have rounds of their own and give medians.
const ONE: usize = 1;

/// Where plots go that nobody looks at.
const PLOTS: &str = "--out target/measured";

/// A rack of slow nodes.
const LAB: &[Need] = &[Need::Root, IP];

/// All sections, in the order of the page.
pub(super) fn all() -> Vec<Section> {
    [in_memory(), over_sockets(), of_hot_keys(), of_stores()].into_iter().flatten().collect()
}

/// One table by one function.
fn table(name: &'static str, of: fn(&[Value]) -> Result<String>) -> Table {
    Table { name, of }
}

fn in_memory() -> Vec<Section> {
    vec![
        Section {
            name: "switch",
            about: "the switch program in memory, packet by packet",
            needs: &[],
            commands: vec![Measuring::bench("keyway-switch", "pipeline")],
            seconds: 15.0,
            runs: RUNS,
            tables: vec![
                table("switch", switch::packets),
                table("switch-directory", switch::directory),
            ],
        },
        Section {
            name: "kernel",
            about: "the switch program in the kernel, packet by packet",
            needs: &[Need::Root, IP],
            commands: vec![Measuring::bench("keyway-xdp", "program")],
            seconds: 240.0,
            runs: RUNS,
            tables: vec![
                table("kernel", kernel::plain),
                table("kernel-hot", kernel::hot),
                table("kernel-mget", kernel::multigets),
                table("kernel-live", kernel::live),
                table("kernel-delegated", kernel::delegated),
                table("kernel-cached", kernel::cached),
                table("kernel-verifier", kernel::verifier),
            ],
        },
        Section {
            name: "engine",
            about: "the memory engine",
            needs: &[],
            commands: vec![Measuring::bench("keyway-node", "engine")],
            seconds: 25.0,
            runs: RUNS,
            tables: vec![table("engine", engine::costs)],
        },
    ]
}

fn over_sockets() -> Vec<Section> {
    vec![
        Section {
            name: "coordination",
            about: "the way through the user-space switch, and past it",
            needs: &[],
            commands: vec![Measuring::bench("keyway", "coordination")],
            seconds: 45.0,
            runs: RUNS,
            tables: vec![
                table("coordination-equal", coordination::equal),
                table("coordination", coordination::rates),
            ],
        },
        Section {
            name: "bundles",
            about: "datagrams that are received in bundles, and apart",
            needs: &[],
            commands: vec![Measuring::bench("keyway-net", "bundles")],
            seconds: 60.0,
            runs: RUNS,
            tables: vec![table("bundles", bundles::costs)],
        },
        Section {
            name: "rack",
            about: "ways in a rack of namespaces, beside Redis and nutcracker, and multigets",
            needs: &[Need::Root, IP, REDIS, NUTCRACKER],
            commands: vec![Measuring::bench("keyway", "rack")],
            seconds: 270.0,
            runs: RUNS,
            tables: vec![
                table("rack-equal", rack::equal),
                table("rack", rack::rates),
                table("rack-ratios", rack::ratios),
                table("rack-multigets-equal", rack::multigets_equal),
                table("rack-multigets", rack::multigets),
            ],
        },
    ]
}

fn of_hot_keys() -> Vec<Section> {
    vec![
        Section {
            name: "balance",
            about: "what a rack of slow nodes serves in time: planes, replicas, shares of reads",
            needs: LAB,
            commands: balances(),
            seconds: 4_000.0,
            runs: RUNS,
            tables: vec![table("balance", hot::balance)],
        },
        Section {
            name: "hashing",
            about: "the same of reads at Zipf 1.2, beside hashing",
            needs: LAB,
            commands: vec![Measuring::keyway(
                "hashing",
                &format!(
                    "lab balance --arm hashing,anywhere --replicas 1 --theta 1.2 --reads 100 \
                     {PLOTS}"
                ),
            )],
            seconds: 180.0,
            runs: RUNS,
            tables: vec![table("hashing", hot::hashing)],
        },
        Section {
            name: "slow-nodes",
            about: "half of the nodes at half speed",
            needs: LAB,
            commands: slow_nodes(),
            seconds: 1_200.0,
            runs: RUNS,
            tables: vec![table("slow-nodes", hot::slow)],
        },
        Section {
            name: "shift",
            about: "tails while popularity shifts",
            needs: LAB,
            commands: ["--arm copies", "--arm anywhere --reads 95"]
                .map(|arm| {
                    Measuring::keyway("shift", &format!("lab shift {arm} --seconds 40s {PLOTS}"))
                })
                .to_vec(),
            seconds: 330.0,
            runs: ONE,
            tables: vec![table("shift", hot::shifts)],
        },
    ]
}

/// Each row by itself: a rack that has been up for an hour is not the same as a new one.
fn balances() -> Vec<Measuring> {
    let mut commands = Vec::new();
    for plane in ["user", "xdp"] {
        for (replicas, reads) in [1, 3].into_iter().flat_map(|it| [100, 95, 50, 0].map(|r| (it, r)))
        {
            let words = format!(
                "lab balance --arm anywhere --replicas {replicas} --reads {reads} --plane {plane} \
                 {PLOTS}"
            );
            commands.push(Measuring::keyway(plane, &words));
        }
    }
    commands
}

fn slow_nodes() -> Vec<Measuring> {
    let mut commands = Vec::new();
    for plane in ["user", "xdp"] {
        for (name, slow) in [("slow", "--slow-nodes 16"), ("alike", "")] {
            let words = format!(
                "lab balance --arm anywhere --replicas 1 --reads 100 --theta 0.9,0.99,1.2 \
                 --seconds 6s --plane {plane} {slow} {PLOTS}"
            );
            commands.push(Measuring::keyway(format!("{plane}, {name}"), &words));
        }
    }
    commands
}

fn of_stores() -> Vec<Section> {
    let durable = |name, about, needs, rival: &str, seconds, tables| Section {
        name,
        about,
        needs,
        commands: vec![Measuring::keyway(rival, &format!("bench --versus {rival} --duration 5s"))],
        seconds,
        runs: ONE,
        tables,
    };
    vec![
        Section {
            name: "stores",
            about: "beside Redis and memcached",
            needs: &[REDIS, MEMCACHED],
            commands: vec![Measuring::bench("keyway", "stores")],
            seconds: 180.0,
            runs: RUNS,
            tables: vec![
                table("stores-equal", stores::equal),
                table("stores", stores::rates),
                table("stores-ratios", stores::ratios),
            ],
        },
        durable(
            "durable-memory",
            "durable writes beside the memory engine, reads included",
            &[],
            "memory",
            330.0,
            vec![table("durable-mixed", durable::mixed), table("durable-memory", durable::writes)],
        ),
        durable(
            "durable-etcd",
            "durable writes beside etcd",
            &[ETCD],
            "etcd",
            170.0,
            vec![table("durable-etcd", durable::writes)],
        ),
        durable(
            "durable-redis",
            "durable writes beside Redis",
            &[REDIS],
            "redis-durable",
            170.0,
            vec![table("durable-redis", durable::writes)],
        ),
        Section {
            name: "simulator",
            about: "worlds of the simulator",
            needs: &[],
            commands: vec![Measuring::keyway("worlds", "sim --seeds 1..500").timed()],
            seconds: 20.0,
            runs: RUNS,
            tables: vec![table("simulator", simulator::worlds)],
        },
    ]
}

/// The sections with these names; all if there is none.
pub(super) fn named(names: &[String]) -> Result<Vec<Section>> {
    let mut sections = all();
    if let Some(name) = names.iter().find(|name| !sections.iter().any(|it| it.name == **name)) {
        let known: Vec<&str> = sections.iter().map(|it| it.name).collect();
        bail!("--only {name}: there is no such section; there are {}", known.join(", "));
    }
    sections.retain(|it| names.is_empty() || names.iter().any(|name| it.name == name));
    Ok(sections)
}

impl Section {
    /// Why it cannot be measured here.
    pub(super) fn lacks(&self) -> Option<String> {
        let lacks: Vec<String> = self.needs.iter().filter_map(|need| need.lacks()).collect();
        (!lacks.is_empty()).then(|| lacks.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn sections_are_chosen_by_name() {
        let names = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
            named(&names).map(|found| found.iter().map(|it| it.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["stores", "engine"]).unwrap(), ["engine", "stores"]);
        assert_eq!(names(&[]).unwrap().len(), all().len());
        let error = names(&["nothing"]).unwrap_err().to_string();
        assert!(
            error.starts_with("--only nothing: there is no such section; there are"),
            "{error}"
        );
    }

    #[test]
    fn names_are_those_of_one_section_and_one_table() {
        let (mut sections, mut tables) = (BTreeSet::new(), BTreeSet::new());
        for section in all() {
            assert!(sections.insert(section.name), "{}", section.name);
            section.tables.iter().for_each(|it| assert!(tables.insert(it.name), "{}", it.name));
            assert!(!section.commands.is_empty() && section.runs % 2 == 1, "{}", section.name);
        }
    }
}
