//! `keyway hot`: the keys that are asked for most.

use crate::admin::Admin;
use crate::answer::Answer;
use crate::bytes::Style;
use crate::chart::{grouped, table};
use crate::cli::Shared;
use crate::exit::{Failure, Verdict};
use crate::out;
use cluster::{HotKey, KeyspaceId};
use controller::Status;

/// Show the keys that clients ask for most.
///
/// Every node counts the requests for its most frequent keys in segments of a tenth of a second and
/// blends them, so that a rate is that of the last few tenths. A key that makes up less than 1 in
/// 256 of what a node serves may be missed.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway hot list
  keyway hot list --json")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List them, the hottest first, with their rates; exit code 1 if there are none.
    #[command(after_help = "Example:\n  keyway hot list --json")]
    List,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let Command::List = self.command;
        let status = Admin::new(&shared.admins, shared.timeout).status()?;
        let style = Style { hex: false };
        if shared.json {
            for key in &status.hot {
                Answer::new("done")
                    .bytes(style, "key", &key.key)
                    .with("keyspace", name(&status, key.keyspace))
                    .with("reads_per_s", key.reads)
                    .with("writes_per_s", key.writes)
                    .print();
            }
        } else if !status.hot.is_empty() {
            out::print(&text(&status, style));
        }
        if status.hot.is_empty() {
            eprintln!("keyway: no key was asked for in the last tenths of a second");
            return Ok(Verdict::No);
        }
        Ok(Verdict::Yes)
    }
}

fn text(status: &Status, style: Style) -> String {
    let head = ["key", "keyspace", "reads/s", "writes/s"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for HotKey { keyspace, key, reads, writes } in &status.hot {
        let name = name(status, *keyspace).to_owned();
        rows.push(vec![style.line(key), name, grouped(*reads), grouped(*writes)]);
    }
    table(&rows)
}

fn name(status: &Status, id: KeyspaceId) -> &str {
    let known = status.keyspaces.iter().find(|keyspace| keyspace.id == id);
    known.map_or("", |keyspace| &keyspace.name)
}
