//! `keyway cluster audit`: who has changed the cluster.

use console::admin::Admin;
use console::answer::Answer;
use console::chart::list;
use console::exit::{Failure, Verdict};
use console::out;
use console::shared::Shared;
use runtime::admin::AuditEntry;
use std::time::{Duration, SystemTime};

/// Show who has changed the cluster lately, and what came of it.
///
/// The controller that leads remembers the last 256 changes since it started; the log of each
/// controller has them all (target `audit`). With certificates it is said whose was shown.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway cluster audit
  keyway cluster audit --json")]
pub(super) struct Args {}

impl Args {
    pub(super) fn run(self, admin: &Admin, shared: &Shared) -> Result<Verdict, Failure> {
        let entries = admin.audit()?;
        let mut rows = Vec::new();
        for AuditEntry { at_ms, who, address, what, outcome, why } in entries {
            if shared.json {
                let answer = Answer::new("change").with("at_ms", at_ms).with("who", who);
                let answer = answer.with("address", address).with("what", what);
                answer.with("result", outcome).with("why", why).print()?;
                continue;
            }
            let at = SystemTime::UNIX_EPOCH + Duration::from_millis(at_ms);
            let at = humantime::format_rfc3339_seconds(at).to_string();
            let outcome = match why {
                Some(why) => format!("{}: {why}", outcome.name()),
                None => outcome.name().to_owned(),
            };
            rows.push(vec![at, who, address, what, outcome]);
        }
        if rows.is_empty() && !shared.json {
            out::line("nothing was changed since this controller started")?;
        } else if !shared.json {
            out::print(&list(&rows))?;
        }
        Ok(Verdict::Yes)
    }
}
