//! `keyway lab soak`: everything at once for a long time.

use console::answer::Answer;
use console::chart::grouped;
use console::exit::{Failure, Verdict};
use console::out;
use console::parse;
use console::shared::Shared;
use lab::soak::{self, Report, SoakPlan};
use std::path::PathBuf;
use std::time::Duration;

/// Run a cluster while everything goes wrong, and see that nothing is lost or grows.
///
/// Two switches, two controllers, five nodes with the durable engine and two gateways run as
/// processes of their own on the loopback interface; it takes no root. Users read, write, delete,
/// compare and set, count, scan, ask for many keys, write big values and such that expire, through
/// native clients, gateways and commands that end at once, while processes are killed (kill -9) and
/// stopped. Ends with exit code 1 if a history has no order, an acknowledged write is missing, a
/// process ends by itself, or one takes more and more memory, descriptors or disk for its data.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway lab soak                              for an hour
  keyway lab soak --for 10m --seed 7
  keyway lab soak --for 12h --dir /var/tmp/soak --json")]
pub(crate) struct Args {
    /// For how long things go wrong.
    #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = parse::some_time)]
    lasts: Duration,
    /// Decides what goes wrong, and what users ask for.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Where logs and data lie. It must not exist, and is removed in the end if all is well.
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let name = format!("keyway-soak-{}", std::process::id());
        let dir = self.dir.unwrap_or_else(|| std::env::temp_dir().join(name));
        if dir.exists() {
            let dir = dir.display();
            return Err(Failure::usage(format!("{dir} is there already: give --dir a new one")));
        }
        let plan = SoakPlan { lasts: self.lasts, seed: self.seed, dir: dir.clone() };
        let report = soak::run(&plan);
        let report = report.map_err(|why| {
            Failure::Other(
                why.context(format!("the soak ended; its files are in {}", dir.display())),
            )
        })?;
        let well = report.failures.is_empty();
        if well {
            soak::remove(&dir);
        }
        if shared.json {
            let answer = Answer::new(if well { "done" } else { "failed" });
            let answer = answer.with("report", &report);
            if well { answer } else { answer.with("dir", &dir) }.print()?;
        } else {
            out::print(&describe(&report))?;
            if !well {
                out::line(&format!("logs and data are in {}", dir.display()))?;
            }
        }
        Ok(if well { Verdict::Yes } else { Verdict::No })
    }
}

fn describe(report: &Report) -> String {
    let faults: Vec<String> =
        report.faults.iter().map(|(what, count)| format!("{count} times a {what}")).collect();
    let mut text = format!(
        "{} s: {} requests answered, {} of unknown outcome; {} keys judged, {} visitors\n{}\n",
        grouped(report.seconds),
        grouped(report.answered),
        grouped(report.unknown),
        grouped(report.keys_judged),
        grouped(report.visitors),
        faults.join(", "),
    );
    for what in &report.skipped {
        text.push_str(&format!("left out: {what}\n"));
    }
    for (role, grown) in &report.processes {
        let (early, late) = (grown.early, grown.late);
        text.push_str(&format!(
            "{role:<13} {:>6} MiB of memory, then {:>6}; {:>4} descriptors, then {:>4}; {:>6} MiB \
             of disk, then {:>6}\n",
            early.memory >> 20,
            late.memory >> 20,
            early.files,
            late.files,
            early.disk >> 20,
            late.disk >> 20,
        ));
    }
    for failure in &report.failures {
        text.push_str(&format!("FAILED: {failure}\n"));
    }
    text
}
