//! `keyway cluster verify`: whether the members of each chain hold the same.

use anyhow::anyhow;
use cluster::{Difference, Findings, PartitionId};
use console::admin::Admin;
use console::chart::grouped;
use console::exit::{Failure, Verdict};
use console::out;
use console::progress::Progress;
use console::shared::Shared;
use controller::{MemberStatus, Status, VerifyStatus};
use runtime::admin::Verify;
use runtime::clock::Clock;
use std::fmt::Write as _;
use std::time::Duration;

/// Compare what the nodes of each chain hold, while they serve.
///
/// The nodes compare digests of their keys piece by piece, at about 50,000 keys a second and shard,
/// and look at what differs key by key. Keys that are being written are looked at again. With
/// --mend they make right what is certain: where most nodes of a chain agree, and the others hold
/// nothing newer, or where one has lost a value that it cannot have deleted. Everything else is
/// listed and left as it is.
///
/// Ends with exit code 1 if nodes hold different things still, or keys or records could not be
/// judged, and with 5 if nothing gets on for --timeout because a node is silent, which it names. If
/// the command is ended, the nodes go on: `keyway status` says how far they are.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway cluster verify
  keyway cluster verify --mend
  keyway cluster verify --partition 12 --json")]
pub(crate) struct Args {
    /// Only this partition; `keyway status --json` names them.
    #[arg(long, value_name = "ID")]
    partition: Option<u32>,
    /// Make right what is certainly wrong.
    #[arg(long)]
    mend: bool,
}

impl Args {
    pub(crate) fn run(self, admin: &Admin, shared: &Shared) -> Result<Verdict, Failure> {
        let before = admin.status()?.verify.map_or(0, |last| last.number);
        let partition = self.partition.map(PartitionId);
        admin.verify(&Verify { partition, mend: self.mend })?;
        let mut progress: Option<Progress> = None;
        let (mut clock, mut moved) = (Clock::new(), None);
        loop {
            let mut whole = admin.status()?;
            let Some(status) = whole.verify.take().filter(|it| it.number > before) else {
                let why = "the controller that was asked has ended: ask again";
                return Err(Failure::Other(anyhow!(why)));
            };
            let (now, so_far) = (clock.now(), (status.done, status.permille));
            match moved {
                Some((last, since)) if last == so_far => {
                    let is_stuck = now.since(since) > shared.timeout;
                    late(&whole).filter(|_| is_stuck).map_or(Ok(()), |why| {
                        let VerifyStatus { done, partitions, .. } = status;
                        Err(Failure::Other(anyhow!(
                            "{done} of {partitions} partitions were compared; {why}\n  \
                             the nodes go on when they can; to see it:  keyway status"
                        )))
                    })?;
                }
                _ => moved = Some((so_far, now)),
            }
            if status.done == status.partitions {
                drop(progress);
                return report(&status, shared);
            }
            let known = || Progress::permille("comparing");
            progress.get_or_insert_with(known).set(status.permille.into());
            pause();
        }
    }
}

/// Who keeps a comparison from getting on, if anybody does.
fn late(status: &Status) -> Option<String> {
    let late: Vec<String> = status.late().map(MemberStatus::in_words).collect();
    (!late.is_empty()).then(|| late.join("; "))
}

fn report(status: &VerifyStatus, shared: &Shared) -> Result<Verdict, Failure> {
    if shared.json {
        let text = serde_json::to_string(status).map_err(|error| Failure::Other(error.into()))?;
        out::line(&text)?;
    } else {
        out::print(&describe(status))?;
    }
    let found = &status.found;
    let left = found.left() > 0 || found.moving > 0 || found.absurd > 0;
    Ok(if left { Verdict::No } else { Verdict::Yes })
}

fn describe(status: &VerifyStatus) -> String {
    let VerifyStatus { partitions, alone, found, .. } = status;
    let Findings { keys, different, mended, moving, absurd, first } = found;
    let mut text = format!("compared  {} keys of {partitions} partitions\n", grouped(*keys));
    let mut line = |count: u64, what: &str| {
        if count > 0 {
            writeln!(text, "          {} {what}", grouped(count)).expect("strings take all");
        }
    };
    line(*alone as u64, "partitions have one replica, which has nobody to be compared with");
    line(*moving, "keys were written all the time and could not be compared: try again");
    line(*absurd, "records have versions that nobody has given out");
    line(*mended, "keys differed and were made right");
    let left = found.left();
    let hint = if status.mend {
        "keys differ, and it is not certain who is right: see docs/operating/recovery.md"
    } else {
        "keys differ: --mend makes right what is certain"
    };
    line(left, hint);
    if *different == 0 {
        text.push_str("          all replicas agree\n");
    }
    for Difference { key, versions, mended } in first {
        let versions: Vec<String> = versions
            .iter()
            .map(|version| version.map_or("-".to_owned(), |version| version.to_string()))
            .collect();
        let end = if *mended { "mended" } else { "left" };
        let (key, versions) = (key.escape_ascii(), versions.join(", "));
        writeln!(text, "  {key}  versions {versions}  {end}").expect("strings take all");
    }
    text
}

#[expect(clippy::disallowed_methods, reason = "a command may wait; this one looks again")]
fn pause() {
    std::thread::sleep(Duration::from_millis(200));
}
