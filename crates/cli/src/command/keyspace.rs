//! `keyway keyspace`: list, create, show and alter keyspaces.

mod alter;
mod policy;

use crate::command::status::kind;
use cluster::KeyspaceKind;
use console::admin::Admin;
use console::answer::Answer;
use console::bytes;
use console::chart::{grouped, table};
use console::exit::{Failure, Verdict};
use console::note;
use console::out;
use console::parse;
use console::shared::Shared;
use controller::{KeyspaceSpec, KeyspaceStatus, PARTITIONS};
use policy::Hot;
use workload::KeyNames;

/// List, create, show and alter keyspaces.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway keyspace list
  keyway keyspace create users --range --prefix user
  keyway keyspace show users
  keyway keyspace alter users --replicas 5")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the keyspaces.
    #[command(after_help = "Example:\n  keyway keyspace list --json")]
    List,
    Create(Create),
    Alter(alter::Args),
    /// Show a keyspace's partitions, with their chains and load.
    #[command(after_help = "Example:\n  keyway keyspace show default")]
    Show {
        /// Its name.
        name: String,
    },
}

/// Create a keyspace. It can be used when the command ends.
///
/// A hash keyspace spreads its keys evenly and keeps no order. A range keyspace keeps its keys in
/// order for scans. It begins with one partition, which is cut where load and keys turn out to be;
/// or with several, where --split or --split-numbers say. With --partitions alone they lie evenly
/// over the 16 bytes that follow the prefix, which suits keys that do the same.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway keyspace create sessions --partitions 256 --replicas 2
  keyway keyspace create users --range --prefix user:
  keyway keyspace create users --range --prefix user --split-numbers 100000
  keyway keyspace create words --range --split h --split q
  keyway keyspace create pages --hot either
  keyway keyspace create ledger --hot off")]
struct Create {
    /// Its name: letters, digits, '_', '-' and '.'.
    name: String,
    /// Keep keys in order, for scans.
    #[arg(long)]
    range: bool,
    /// What all keys begin with; the switch looks at the 16 bytes after it.
    #[arg(long, requires = "range", default_value = "", hide_default_value = true)]
    prefix: String,
    /// How many partitions it begins with. Without it 128; if keys are kept in order, as many as
    /// --split makes, or one, which is cut where load and keys turn out to be.
    #[arg(long, value_name = "N")]
    partitions: Option<u32>,
    /// On how many nodes each key lies.
    #[arg(long, value_name = "N", default_value_t = 3)]
    replicas: u8,
    /// Spread over the partitions the keys that are the prefix and a number below N, padded with
    /// zeros to --key-size: those that `keyway bench` makes.
    #[arg(long, value_name = "N", requires = "range", value_parser = parse::count)]
    split_numbers: Option<u64>,
    /// Bytes of the keys that --split-numbers is about.
    #[arg(long, value_name = "BYTES", default_value_t = 16, requires = "split_numbers")]
    key_size: usize,
    /// What becomes of its hot keys: their reads and writes are spread, or their reads, or caches
    /// hold them, or what suits each, or nothing.
    #[arg(long, value_enum, default_value_t = Hot::Replicate)]
    hot: Hot,
    /// First key of the second partition, of the third, and so on.
    #[arg(long, value_name = "KEY", requires = "range", conflicts_with = "split_numbers")]
    split: Vec<String>,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let admin = Admin::of(shared, shared.timeout)?;
        match self.command {
            Command::List => list(&admin, shared),
            Command::Create(create) => create.run(&admin, shared),
            Command::Alter(args) => args.run(&admin, shared),
            Command::Show { name } => show(&admin, shared, &name),
        }
    }
}

impl Create {
    fn run(self, admin: &Admin, shared: &Shared) -> Result<Verdict, Failure> {
        let spec = self.spec()?;
        admin.create(&spec)?;
        admin.wait_served(&spec.name, shared.timeout)?;
        if shared.json {
            Answer::new("done").with("name", &spec.name).print()?;
        } else {
            let KeyspaceSpec { name, kind: k, partitions, replicas, .. } = &spec;
            out::line(&format!(
                "created {name}: {}, {partitions} partitions, {replicas} replicas",
                kind(k)
            ))?;
        }
        Ok(Verdict::Yes)
    }

    fn spec(self) -> Result<KeyspaceSpec, Failure> {
        let (partitions, splits) = match self.split_numbers {
            Some(count) => {
                let partitions = self.partitions.unwrap_or(PARTITIONS);
                (partitions, number_splits(&self.prefix, self.key_size, count, partitions)?)
            }
            None => {
                let splits: Vec<_> = self.split.into_iter().map(String::into_bytes).collect();
                let usual = KeyspaceSpec::usual_partitions(self.range, splits.len());
                (self.partitions.unwrap_or(usual), splits)
            }
        };
        let kind = if self.range {
            KeyspaceKind::Range { prefix: self.prefix.into_bytes() }
        } else {
            KeyspaceKind::Hash
        };
        let Self { name, replicas, hot, .. } = self;
        Ok(KeyspaceSpec { name, kind, partitions, replicas, splits, hot: hot.into() })
    }
}

/// First keys of all partitions but the first, for numbered keys.
pub(crate) fn number_splits(
    prefix: &str,
    key_size: usize,
    count: u64,
    partitions: u32,
) -> Result<Vec<Vec<u8>>, Failure> {
    let names = KeyNames::new(prefix, key_size, count)
        .map_err(|error| Failure::usage(error.to_string()))?;
    if u64::from(partitions) > count {
        return Err(Failure::usage(format!("{count} numbers do not fill {partitions} partitions")));
    }
    let first = |partition: u32| {
        let number = u128::from(count) * u128::from(partition) / u128::from(partitions);
        names.name(u64::try_from(number).expect("below the count"))
    };
    Ok((1..partitions).map(first).collect())
}

fn list(admin: &Admin, shared: &Shared) -> Result<Verdict, Failure> {
    let status = admin.status()?;
    if shared.json {
        for keyspace in &status.keyspaces {
            let answer = Answer::new("done").with("name", &keyspace.name);
            summary(answer, keyspace).print()?;
        }
        return Ok(Verdict::Yes);
    }
    let head = ["name", "id", "kind", "partitions", "replicas"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for keyspace in &status.keyspaces {
        rows.push(vec![
            keyspace.name.clone(),
            keyspace.id.to_string(),
            kind(&keyspace.kind),
            keyspace.partitions.len().to_string(),
            keyspace.replicas.to_string(),
        ]);
    }
    out::print(&table(&rows))?;
    Ok(Verdict::Yes)
}

fn summary(answer: Answer, keyspace: &KeyspaceStatus) -> Answer {
    let answer = answer
        .with("id", keyspace.id)
        .with("partitions", keyspace.partitions.len())
        .with("replicas", keyspace.replicas);
    match &keyspace.kind {
        KeyspaceKind::Hash => answer.with("kind", "hash"),
        KeyspaceKind::Range { prefix } => {
            answer.with("kind", "range").bytes(bytes::Style { hex: false }, "prefix", prefix)
        }
    }
}

fn show(admin: &Admin, shared: &Shared, name: &str) -> Result<Verdict, Failure> {
    let status = admin.status()?;
    let Some(keyspace) = status.keyspaces.iter().find(|k| k.name == name) else {
        if shared.json {
            Answer::new("not_found").with("name", name).print()?;
        }
        note!("keyway: no keyspace {name:?}; see: keyway keyspace list");
        return Ok(Verdict::No);
    };
    if shared.json {
        Answer::new("done").with("keyspace", keyspace).print()?;
        return Ok(Verdict::Yes);
    }
    out::line(&format!("{name}: {}, {} replicas\n", kind(&keyspace.kind), keyspace.replicas))?;
    let head = ["partition", "first match value", "epoch", "chain", "reads", "writes"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for partition in &keyspace.partitions {
        let chain: Vec<String> = partition.chain.iter().map(ToString::to_string).collect();
        let learner = partition.learner.map_or_else(String::new, |id| format!(", {id} joins"));
        let closed = if partition.open { "" } else { ", closed" };
        rows.push(vec![
            partition.id.to_string(),
            partition.first.to_string(),
            partition.epoch.to_string(),
            format!("{}{learner}{closed}", chain.join("→")),
            grouped(partition.reads),
            grouped(partition.writes),
        ]);
    }
    out::print(&table(&rows))?;
    Ok(Verdict::Yes)
}
