//! `keyway lab faults`: links that lose, double and delay.

use console::answer::Answer;
use console::chart::{grouped, table};
use console::exit::{Failure, Verdict};
use console::out;
use console::shared::Shared;
use lab::name::{Name, no_lab};
use lab::rack::{LabHost, Rack};
use lab::{faults, state};
use serde_json::{Value, json};
use xdp::faults::{Counts, Faults};

/// Let links of a lab lose, double and delay datagrams, or show what they have done.
///
/// It happens to UDP datagrams that come in at the hosts of clients and nodes, so that it meets
/// requests, replies and what nodes say to each other, and orders of the controller never.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway lab faults --lost 1% --doubled 1% --overtaken 5% --seed 7
  keyway lab faults --lost 20% --host n1 --host n2
  keyway lab faults                                        what has happened so far
  keyway lab faults --off")]
pub(crate) struct Args {
    #[command(flatten)]
    lab: Name,
    /// Share of datagrams that are dropped, such as 1% or 0.01.
    #[arg(long, value_name = "SHARE", value_parser = ppm)]
    lost: Option<u32>,
    /// Share that is delivered twice.
    #[arg(long, value_name = "SHARE", value_parser = ppm)]
    doubled: Option<u32>,
    /// Share that is kept back until 1 to 16 others have passed, one at a time on each host.
    #[arg(long, value_name = "SHARE", value_parser = ppm)]
    overtaken: Option<u32>,
    /// Seed of the dice.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Only the links of these hosts: c0, n1 and so on.
    #[arg(long = "host", value_name = "HOST")]
    hosts: Vec<String>,
    /// Make links good again.
    #[arg(long, conflicts_with_all = ["lost", "doubled", "overtaken"])]
    off: bool,
}

/// A share, of a million.
fn ppm(text: &str) -> Result<u32, String> {
    let (digits, of) = text.strip_suffix('%').map_or((text, 1e6), |digits| (digits, 1e4));
    let share: f64 = digits.parse().map_err(|_| format!("{text:?} is no share; try 1% or 0.01"))?;
    let ppm = (share * of).round();
    if (0.0..=1e6).contains(&ppm) { Ok(ppm as u32) } else { Err("choose 0 to 100%".to_owned()) }
}

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let lab = &self.lab.name;
        let Some(state) = state::read(lab)? else { return Err(no_lab(lab)) };
        let rack = state.rack(lab.clone());
        let hosts = self.hosts(&rack)?;
        if self.off {
            faults::clear(&rack, &hosts)?;
        } else if let (None, None, None) = (self.lost, self.doubled, self.overtaken) {
            return show(&rack, &hosts, shared);
        } else {
            let share = |share: Option<u32>| share.unwrap_or(0);
            let [lost_ppm, doubled_ppm, overtaken_ppm] =
                [self.lost, self.doubled, self.overtaken].map(share);
            let wanted = Faults { seed: self.seed, lost_ppm, doubled_ppm, overtaken_ppm };
            faults::set(&rack, &hosts, wanted)?;
        }
        if shared.json {
            Answer::new("done").with("lab", lab).with("hosts", hosts.len()).print()?;
        } else {
            let how = if self.off { "good" } else { "bad" };
            out::line(&format!("{} links of lab {lab} are {how}", hosts.len()))?;
        }
        Ok(Verdict::Yes)
    }

    /// The hosts that are meant.
    fn hosts(&self, rack: &Rack) -> Result<Vec<LabHost>, Failure> {
        let all: Vec<LabHost> = rack.sides().collect();
        if self.hosts.is_empty() {
            return Ok(all);
        }
        let find = |name: &String| {
            let found = all.iter().find(|place| place.to_string() == *name).copied();
            let names: Vec<String> = all.iter().map(ToString::to_string).collect();
            let why = || format!("no host {name} with a link to be made bad: choose of {names:?}");
            found.ok_or_else(|| Failure::usage(why()))
        };
        self.hosts.iter().map(find).collect()
    }
}

fn show(rack: &Rack, hosts: &[LabHost], shared: &Shared) -> Result<Verdict, Failure> {
    let mut bad: Vec<(LabHost, Counts)> = Vec::new();
    for place in hosts {
        bad.extend(faults::counts(rack, *place)?.map(|counts| (*place, counts)));
    }
    if shared.json {
        let links: Vec<Value> = bad.iter().map(|(place, counts)| link(*place, counts)).collect();
        Answer::new("done").with("lab", &rack.lab).with("links", links).print()?;
    } else if bad.is_empty() {
        out::line(&format!("all links of lab {} are good", rack.lab))?;
    } else {
        let head = ["host", "datagrams", "lost", "doubled", "overtaken"];
        let mut rows = vec![head.map(str::to_owned).to_vec()];
        rows.extend(bad.iter().map(|(place, counts)| {
            let Counts { came, lost, doubled, overtaken } = *counts;
            let numbers = [came, lost, doubled, overtaken].map(grouped);
            std::iter::once(place.to_string()).chain(numbers).collect()
        }));
        out::print(&table(&rows))?;
    }
    Ok(Verdict::Yes)
}

fn link(place: LabHost, counts: &Counts) -> Value {
    let Counts { came, lost, doubled, overtaken } = counts;
    let host = place.to_string();
    json!({
        "host": host,
        "datagrams": came,
        "lost": lost,
        "doubled": doubled,
        "overtaken": overtaken,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_percent_or_fractions() {
        for (text, value) in [("1%", 10_000), ("0.5", 500_000), ("0", 0), ("100%", 1_000_000)] {
            assert_eq!(ppm(text), Ok(value), "{text}");
        }
        for text in ["", "%", "2", "101%", "-1%", "nan"] {
            assert!(ppm(text).is_err(), "{text:?}");
        }
    }
}
