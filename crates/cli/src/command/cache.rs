//! `keyway cache`: a cache of a configured cluster, and how the caches are.

use crate::command::role::Role;
use cluster::{CacheId, Member};
use console::admin::Admin;
use console::answer::Answer;
use console::chart::{grouped, table};
use console::exit::{Failure, Verdict};
use console::note;
use console::out;
use console::shared::Shared;
use controller::{CacheStatus, MemberStatus, Status};
use runtime::config::Config;
use runtime::server::Server;

/// Run a cache of a cluster as a process of its own, or list the caches.
///
/// A cache holds the keys that are read most in memory, in front of slow nodes. The switch has an
/// exact rule for each of them, so that a cache is sent only what it holds. Which keyspaces are
/// cached their policy says: `keyway keyspace create NAME --hot cache`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "\
Examples:
  keyway cache --config cluster.toml --id 1 --check
  keyway cache --config cluster.toml --id 1
  keyway cache list
  keyway up --caches 1                      a cache in a cluster on this machine")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Which cache of the configuration.
    #[arg(long, required = true)]
    id: Option<u16>,
    #[command(flatten)]
    role: Role,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the caches: what they hold, and how much of what they are sent they answer; exit code 1
    /// if there are none.
    ///
    /// `keys` are those that a cache holds of those that it has room for. `missed` is what it was
    /// sent and did not hold: it sends that on to nodes. `rules` are those of the switch that lead
    /// to it; while there are fewer than keys, the switch is still being told.
    #[command(after_help = "Example:\n  keyway cache list --json")]
    List,
}

impl Args {
    pub(crate) fn run(mut self, shared: &Shared) -> Result<Verdict, Failure> {
        if let Some(Command::List) = self.command.take() {
            return list(&Admin::of(shared, shared.timeout)?.status()?, shared);
        }
        let Some(id) = self.id.map(CacheId) else { return Err(Failure::usage("say --id ID")) };
        self.role.run(
            shared,
            &format!("cache {id}"),
            false,
            |config| check_id(config, id),
            |config| Server::start_cache(config, id),
        )
    }
}

/// Whether there is a cache of this id.
fn check_id(config: &Config, id: CacheId) -> Result<(), Failure> {
    if config.cache(id).is_some() {
        return Ok(());
    }
    let known: Vec<String> = config.caches.iter().map(|it| it.id.to_string()).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(Failure::usage(format!("no cache {id} in the configuration; there are {known}")))
}

fn list(status: &Status, shared: &Shared) -> Result<Verdict, Failure> {
    let caches = status.members.iter().filter_map(|member| match member.member {
        Member::Cache(id) => Some((id, member)),
        Member::Switch(_) | Member::Node(_) => None,
    });
    let caches: Vec<(CacheId, &MemberStatus)> = caches.collect();
    if caches.is_empty() {
        note!("keyway: the cluster has no caches: describe them by [[cache]] in its configuration");
        return Ok(Verdict::No);
    }
    if shared.json {
        for (id, member) in &caches {
            json_line(*id, member).print()?;
        }
    } else {
        out::print(&text(&caches))?;
    }
    Ok(Verdict::Yes)
}

fn json_line(id: CacheId, member: &MemberStatus) -> Answer {
    let answer = Answer::new("done")
        .with("cache", id)
        .with("endpoint", member.endpoint.to_string())
        .with("answers", member.cache.is_some());
    let Some(it) = &member.cache else { return answer };
    answer
        .with("keys", it.entries)
        .with("room", it.room_entries)
        .with("bytes", it.bytes)
        .with("hits", it.hits)
        .with("missed", it.misses)
        .with("rules", it.rules)
        .with("lenders", it.volumes)
}

fn text(caches: &[(CacheId, &MemberStatus)]) -> String {
    let head = ["cache", "at", "keys", "room", "bytes", "hits", "missed", "rules", "lenders"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (id, member) in caches {
        let mut row = vec![id.to_string(), member.endpoint.to_string()];
        match &member.cache {
            Some(CacheStatus {
                entries,
                room_entries,
                bytes,
                hits,
                misses,
                rules,
                volumes,
                ..
            }) => {
                let values = [*entries, *room_entries, *bytes, *hits, *misses, *rules, *volumes];
                row.extend(values.map(grouped));
            }
            None => {
                row.push("does not answer".to_owned());
                row.extend([""; 6].map(str::to_owned));
            }
        }
        rows.push(row);
    }
    table(&rows)
}
