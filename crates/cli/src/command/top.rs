//! `keyway top`: what is asked for most at the moment, and how busy every node is.

use crate::top::{NodeView, View, json, screen, text};
use cluster::Member;
use console::admin::Admin;
use console::exit::{Failure, Verdict};
use console::out;
use console::parse;
use console::shared::Shared;
use controller::Status;
use std::time::Duration;

/// Show which keys and partitions are asked for most, and how busy and full every node is, live.
///
/// On a terminal it is shown again and again until you press q; else it is printed as often. The
/// keys are those that the nodes' trackers find all the time. `requests/s` are a node's requests
/// and chain messages, `busy` is processor time of its threads, `waiting` is what it found queued
/// when it was last asked. Reads and writes of the switch count each key of an MGET.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway top
  keyway top --interval 5s
  keyway top --once
  keyway top --once --json | jq '.keys[0]'")]
pub(crate) struct Args {
    /// Print what happens in one interval, and end.
    #[arg(long)]
    once: bool,
    /// Time over which rates are taken, and after which they are shown anew; at least 200ms.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
}

/// Nodes and switches are heard some times in a second: in less, there is nothing new.
const INTERVAL_MIN: Duration = Duration::from_millis(200);

fn interval(text: &str) -> Result<Duration, String> {
    let interval = parse::duration(text)?;
    if interval < INTERVAL_MIN {
        return Err(format!("at least {} ms", INTERVAL_MIN.as_millis()));
    }
    Ok(interval)
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let admin = Admin::of(shared, shared.timeout)?;
        let live = !self.once && !shared.json && out::is_terminal();
        if live {
            screen::run(|| admin.status(), self.interval)?;
            return Ok(Verdict::Yes);
        }
        let mut before = admin.status()?;
        loop {
            let after = self.next(&admin, &before)?;
            let view = View::between(&before, &after);
            if shared.json {
                json(&view).print()?;
            } else {
                out::print(&text(&view))?;
            }
            if self.once {
                return Ok(Verdict::Yes);
            }
            if !shared.json {
                out::line("")?;
            }
            before = after;
        }
    }

    /// The status after an interval, or more if nodes have not been heard anew by then.
    fn next(&self, admin: &Admin, before: &Status) -> Result<Status, Failure> {
        for _ in 0..LOOKS_MAX {
            pause(self.interval);
            let after = admin.status()?;
            let view = View::between(before, &after);
            let silent = |node: &NodeView| node.ready && node.requests.is_none();
            // Who is not ready is not waited for.
            let counted =
                view.reads.is_some() || view.late.contains(&Member::Switch(after.active_switch));
            if counted && !view.nodes.iter().any(silent) {
                return Ok(after);
            }
        }
        admin.status()
    }
}

/// Looks at a cluster of which something is always missing, before that is shown.
const LOOKS_MAX: u32 = 5;

#[expect(clippy::disallowed_methods, reason = "a command may wait; this one looks again")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
