//! `keyway hot`: the keys that are asked for most, and what became of them.

use cluster::KeyspaceId;
use console::admin::Admin;
use console::answer::Answer;
use console::bytes::{self, Style};
use console::chart::{grouped, table};
use console::exit::{Failure, Verdict};
use console::note;
use console::out;
use console::shared::Shared;
use controller::{HotAction, HotDecision, HotEffect, HotStatus, Status};
use runtime::clock::Clock;
use runtime::driver::NamedKey;

/// Show the keys that clients ask for most, and say which are to be spread.
///
/// Every node counts the requests for its most frequent keys in segments of a tenth of a second and
/// blends them, so that a rate is that of the last few tenths. A key that makes up less than 1 in
/// 256 of what a node serves may be missed.
///
/// Copies of a hot key lie on other nodes, too, and the switch spreads its reads over them. A key
/// that is written much is sent under a delegation: the switch sends each write of it to nodes that
/// have little to do. Which keys are hot, how many copies each has, and which of them travel, the
/// controller decides by their rates.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway hot list
  keyway hot list --json
  keyway hot pin front-page
  keyway hot unpin front-page
  keyway hot log")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List them, the hottest first, with their rates; exit code 1 if there are none.
    ///
    /// A key with a number of copies is hot; `spread` is how many of its reads per second go to
    /// copies, `home` how many to the tail of its chain. `under a delegation` is for how long the
    /// controller has wanted its writes to go anywhere. Hot ones are listed whatever is asked of
    /// them.
    #[command(after_help = "Example:\n  keyway hot list --json")]
    List,
    /// Keep a key hot whatever is asked of it, until it is unpinned.
    #[command(after_help = "Example:\n  keyway hot pin front-page -k pages")]
    Pin(Key),
    /// Let a pinned key be hot only as long as enough is asked of it.
    #[command(after_help = "Example:\n  keyway hot unpin front-page -k pages")]
    Unpin(Key),
    /// Show what was decided about hot keys lately, why, and what came of it.
    ///
    /// `nodes` are those that hold copies from then on, or under a delegation those that its writes
    /// may go to. The rates are those before the decision, and `then` the mean ones from then on to
    /// the next decision about the key. Of that time are `spread` and `home`, too, the reads that
    /// went to copies and to the tail of the chain, and `w. spread` and `w. home`, the writes while
    /// it was delegated, which go anywhere, and those through the chain.
    #[command(after_help = "Example:\n  keyway hot log --json")]
    Log,
}

#[derive(Debug, clap::Args)]
struct Key {
    /// The key.
    key: String,
    /// The key is typed as hexadecimal digits.
    #[arg(long)]
    hex: bool,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let admin = Admin::of(shared, shared.timeout)?;
        match self.command {
            Command::List => list(&admin.status()?, shared),
            Command::Pin(key) => key.wish(&admin, shared, "pin"),
            Command::Unpin(key) => key.wish(&admin, shared, "unpin"),
            Command::Log => log(&admin.status()?, shared),
        }
    }
}

impl Key {
    /// Pins the key, or unpins it.
    fn wish(self, admin: &Admin, shared: &Shared, verb: &str) -> Result<Verdict, Failure> {
        let key = bytes::key(&self.key, self.hex)?;
        admin.wish_hot(verb, &NamedKey { keyspace: shared.keyspace.clone(), key })?;
        let done = if verb == "pin" { "pinned" } else { "unpinned" };
        if shared.json {
            Answer::new(done).with("key", self.key).print()?;
        } else {
            out::line(&format!("{done} {}", self.key))?;
        }
        Ok(Verdict::Yes)
    }
}

fn list(status: &Status, shared: &Shared) -> Result<Verdict, Failure> {
    if shared.json {
        for it in &status.hot {
            json_line(status, it).print()?;
        }
    } else if !status.hot.is_empty() {
        out::print(&text(status))?;
    }
    if status.hot.is_empty() {
        note!("keyway: no key was asked for in the last tenths of a second");
        return Ok(Verdict::No);
    }
    let hot = status.hot.iter().any(|it| it.generation.is_some());
    if hot && status.hot_revision.is_none() && !shared.json {
        note!("keyway: the switch has no hot keys yet, or does not spread reads at all");
    }
    Ok(Verdict::Yes)
}

const STYLE: Style = Style { hex: false };

fn json_line(status: &Status, it: &HotStatus) -> Answer {
    let answer = Answer::new("done")
        .bytes(STYLE, "key", &it.key.key)
        .with("keyspace", name(status, it.key.keyspace))
        .with("reads_per_s", it.key.reads)
        .with("writes_per_s", it.key.writes)
        .with("pinned", it.pinned);
    let Some(generation) = it.generation else { return answer.with("hot", false) };
    let answer = answer
        .with("hot", true)
        .with("copies", generation.readers)
        .with("age_ms", generation.age_ms)
        .with("reads_per_s_before", generation.reads_before)
        .with("spread_per_s", generation.spread)
        .with("home_per_s", generation.home);
    let Some(delegation) = generation.delegation else { return answer };
    answer
        .with("delegation", delegation.number)
        .with("delegation_age_ms", delegation.age_ms)
        .with("delegation_replicas", delegation.replicas)
        .with("delegation_copies", delegation.copies)
}

fn text(status: &Status) -> String {
    let head = [
        "key",
        "keyspace",
        "reads/s",
        "writes/s",
        "copies",
        "spread/s",
        "home/s",
        "hot for",
        "delegated",
        "",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for it in &status.hot {
        let HotStatus { key, pinned, generation } = it;
        let mut row = vec![STYLE.line(&key.key), name(status, key.keyspace).to_owned()];
        row.extend([key.reads, key.writes].map(grouped));
        match generation {
            Some(generation) => {
                row.extend([generation.readers, generation.spread, generation.home].map(grouped));
                row.push(tenths(generation.age_ms));
                row.push(
                    generation
                        .delegation
                        .map_or_else(String::new, |delegation| tenths(delegation.age_ms)),
                );
            }
            None => row.extend(["-", "", "", "", ""].map(str::to_owned)),
        }
        row.push(if *pinned { "pinned" } else { "" }.to_owned());
        rows.push(row);
    }
    table(&rows)
}

fn tenths(ms: u64) -> String {
    format!("{}.{} s", ms / 1_000, ms % 1_000 / 100)
}

fn log(status: &Status, shared: &Shared) -> Result<Verdict, Failure> {
    if status.hot_decisions.is_empty() {
        note!("keyway: nothing has been decided about hot keys");
        return Ok(Verdict::No);
    }
    if shared.json {
        for it in &status.hot_decisions {
            decision_line(status, it).print()?;
        }
        return Ok(Verdict::Yes);
    }
    let head = [
        "ago",
        "key",
        "keyspace",
        "decision",
        "nodes",
        "reads/s",
        "then",
        "writes/s",
        "then",
        "spread",
        "home",
        "w. spread",
        "w. home",
        "why",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let now = Clock::new().now().unix_ms().max(status.at_ms);
    for it in &status.hot_decisions {
        let ago = now.saturating_sub(it.at_ms);
        let HotEffect { spread, home, writes_spread, writes_home, .. } = it.effect;
        let then = it.effect.rates().map(|rates| rates.map(grouped));
        let [reads_then, writes_then] = then.unwrap_or_else(|| ["-"; 2].map(str::to_owned));
        let mut row = vec![
            tenths(ago),
            STYLE.line(&it.name.key),
            name(status, it.name.keyspace).to_owned(),
            action(it),
            it.nodes.clone(),
            grouped(it.reads),
            reads_then,
            grouped(it.writes),
            writes_then,
        ];
        row.extend([spread, home, writes_spread, writes_home].map(grouped));
        row.push(it.why.clone());
        rows.push(row);
    }
    out::print(&table(&rows))?;
    Ok(Verdict::Yes)
}

fn decision_line(status: &Status, it: &HotDecision) -> Answer {
    let effect = it.effect;
    let answer = Answer::new("done")
        .with("at_ms", it.at_ms)
        .bytes(STYLE, "key", &it.name.key)
        .with("keyspace", name(status, it.name.keyspace))
        .with("decision", it.did)
        .with("why", &it.why)
        .with("reads_per_s", it.reads)
        .with("writes_per_s", it.writes)
        .with("copies", it.readers)
        .with("nodes", &it.nodes)
        .with("counted_ms", effect.counted_ms)
        .with("spread", effect.spread)
        .with("home", effect.home)
        .with("writes_spread", effect.writes_spread)
        .with("writes_home", effect.writes_home);
    let Some([reads, writes]) = effect.rates() else { return answer };
    answer.with("reads_per_s_after", reads).with("writes_per_s_after", writes)
}

fn action(it: &HotDecision) -> String {
    match it.did {
        HotAction::Added => format!("hot, {} copies", it.readers),
        HotAction::Readers => format!("{} copies", it.readers),
        HotAction::Removed => "cold".to_owned(),
        HotAction::DelegationBegun => "delegated".to_owned(),
        HotAction::DelegationEnded => "back home".to_owned(),
        HotAction::Pinned => "pinned".to_owned(),
        HotAction::Unpinned => "unpinned".to_owned(),
    }
}

fn name(status: &Status, id: KeyspaceId) -> &str {
    let known = status.keyspaces.iter().find(|keyspace| keyspace.id == id);
    known.map_or("", |keyspace| &keyspace.name)
}
