//! `keyway sim`: the deterministic world.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use cluster::Mutant;
use console::chart::{grouped, table};
use console::exit::{Failure, Verdict};
use console::out;
use console::progress::Progress;
use console::save::save;
use console::shared::Shared;
use runtime::clock::Clock;
use sim::check::Violation;
use sim::{
    Attacks, Catch, Failure as Failed, HUNT_SEEDS, Options, Outages, Outcome, Profile, Stats,
};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;
use wire::EnvelopeRefusal;

/// Run the whole cluster in a simulated world full of faults and check its promises.
///
/// One seed of one profile is one world: its clients, switches, nodes, controllers, faults and the
/// order of all events follow from it. Ends with exit code 1 if a promise was broken. With
/// --mutants it is the other way round: a machine has a bug on purpose, and the exit code is 1
/// unless it is seen.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  keyway sim --seed 17
  keyway sim --seed 17 --profile amnesia
  keyway sim --seeds 1..2000
  keyway sim --seeds 1..100 --profile switches --json
  keyway sim --seed 3 --mutant drop-sessions --html broken.html
  keyway sim --mutants
  keyway sim --unavailability
  keyway sim --unavailability --nodes 16 --crashes 8
  keyway sim --unavailability --switch")]
pub(crate) struct Args {
    /// Run one world, and say what it is like.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Run the worlds from A to B, the last one included.
    #[arg(long, value_name = "A..B", value_parser = parse_seeds)]
    seeds: Option<(u64, u64)>,
    /// What the worlds are about. Without it, --seed means everything and --seeds means all.
    #[arg(long, value_name = "NAME", value_parser = profiles())]
    #[arg(conflicts_with_all = ["mutants", "unavailability"])]
    profile: Option<Profiles>,
    /// Put this bug into the machines, in a build with the feature mutants.
    #[arg(long, value_name = "NAME", value_parser = sim::mutant_named)]
    #[arg(conflicts_with_all = ["mutants", "unavailability"])]
    mutant: Option<Mutant>,
    /// Say what happened to processes, links and chains. A world that breaks a promise says so
    /// anyway.
    #[arg(long, conflicts_with_all = ["mutants", "unavailability"])]
    journal: bool,
    /// Draw the histories that break a promise into this file, for a browser.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["mutants", "unavailability"])]
    html: Option<PathBuf>,
    /// Put in one bug after the other, and look for a world in which it is seen; in a build with
    /// the feature mutants.
    #[arg(long)]
    mutants: bool,
    /// Measure how long keys are out of reach after a node has failed.
    #[arg(long)]
    unavailability: bool,
    /// How many nodes there are for that, with three replicas of everything.
    #[arg(long, value_name = "N", default_value_t = 5, requires = "unavailability")]
    #[arg(value_parser = clap::value_parser!(u16).range(3..=24))]
    nodes: u16,
    /// How many of them fail at once. Keys that nobody is left of are counted apart.
    #[arg(long, value_name = "N", default_value_t = 1, requires = "unavailability")]
    crashes: u16,
    /// It is the active switch that fails instead, beside one that stands by.
    #[arg(long, requires = "unavailability", conflicts_with_all = ["nodes", "crashes"])]
    switch: bool,
}

/// One profile, or all of them.
#[derive(Clone, Debug)]
struct Profiles(Vec<Profile>);

/// Where machines cannot break rules, which is so in what people run.
const WITHOUT_MUTANTS: &str = "no machine of this build can break a rule; of this one they can: \
    cargo build --release --bin keyway --features mutants";

/// Worlds in which outages are measured.
const OUTAGE_SEEDS: u64 = 200;

impl Args {
    pub(crate) fn run(self, shared: &Shared) -> Result<Verdict, Failure> {
        let ways = usize::from(self.seed.is_some()) + usize::from(self.seeds.is_some());
        if ways + usize::from(self.mutants) + usize::from(self.unavailability) != 1 {
            let what =
                "say which worlds: --seed N or --seeds A..B, or else --mutants or --unavailability";
            return Err(Failure::usage(what));
        }
        if (self.mutants || self.mutant.is_some()) && !cluster::MUTANTS {
            return Err(Failure::usage(WITHOUT_MUTANTS));
        }
        if self.mutants {
            return hunt(shared.json);
        }
        if self.unavailability {
            let nodes = Failed::Nodes { failed: self.crashes, of: self.nodes };
            outages(if self.switch { Failed::Switch } else { nodes }, shared.json)?;
            return Ok(Verdict::Yes);
        }
        self.run_worlds(shared.json)
    }

    fn run_worlds(self, json: bool) -> Result<Verdict, Failure> {
        let (first, last) = self.seeds.or(self.seed.map(|seed| (seed, seed))).unwrap_or((1, 1));
        let alone = self.seed.is_some();
        let usual = if alone { vec![Profile::Everything] } else { Profile::ALL.to_vec() };
        let Profiles(profiles) = self.profile.unwrap_or(Profiles(usual));
        let of_seed = |seed| {
            let draw = |profile| Options { mutant: self.mutant, ..Options::draw(profile, seed) };
            profiles.iter().copied().map(draw).collect::<Vec<_>>()
        };
        let worlds: Vec<Options> = (first..=last).flat_map(of_seed).collect();
        let mut clock = Clock::new();
        let (began, mut total, mut broken) = (clock.now(), Stats::default(), 0u64);
        let mut pictures = Vec::new();
        let progress = Progress::keys("worlds", worlds.len() as u64);
        let ran = sim::run_many(&worlds, |options, outcome| {
            progress.add(1);
            broken += u64::from(!outcome.violations.is_empty());
            let journal = self.journal || (alone && !outcome.violations.is_empty());
            let told = if json {
                progress.beside(|| out::line(&as_json(options, &outcome).to_string()))
            } else {
                let journal = journal.then(|| outcome.journal.join("\n") + "\n");
                let shown = alone || self.journal || !outcome.violations.is_empty();
                let text = shown.then(|| describe(options, &outcome));
                let text = [journal, text].map(Option::unwrap_or_default).concat();
                if text.is_empty() { Ok(()) } else { progress.beside(|| out::print(&text)) }
            };
            if let Err(failure) = told {
                return ControlFlow::Break(failure);
            }
            total = total.plus(&outcome.stats);
            if pictures.len() < PICTURES_MAX {
                let (seed, profile) = (options.seed, options.profile);
                pictures.extend(outcome.pictures.into_iter().map(|it| Violation {
                    key: format!("{} of seed {seed}, {profile}", it.key),
                    ..it
                }));
            }
            ControlFlow::Continue(())
        });
        drop(progress);
        if let ControlFlow::Break(failure) = ran {
            return Err(failure);
        }
        if !json && !alone {
            let took = clock.now().since(began);
            out::line(&format!("{} worlds, {broken} with a broken promise", worlds.len()))?;
            out::print(&of(&total))?;
            out::line(&rate(worlds.len(), &total, took))?;
        }
        if let Some(file) = self.html {
            save(&file, sim::check::draw_html("keyway sim", &pictures).as_bytes())?;
        }
        Ok(if broken == 0 { Verdict::Yes } else { Verdict::No })
    }
}

/// Histories in one drawing: more than anybody looks at.
const PICTURES_MAX: usize = 50;

fn hunt(json: bool) -> Result<Verdict, Failure> {
    let mut missed = 0;
    for mutant in Mutant::ALL {
        let name = sim::mutant_name(mutant);
        let caught = sim::hunt(mutant, &Profile::ALL, HUNT_SEEDS);
        missed += u64::from(caught.is_none());
        if json {
            let profile = caught.as_ref().map(|it| it.profile.name());
            let seed = caught.as_ref().map(|it| it.seed);
            let line = serde_json::json!({ "mutant": name, "profile": profile, "seed": seed });
            out::line(&line.to_string())?;
            continue;
        }
        out::line(&match caught {
            Some(Catch { profile, seed, violation, .. }) => {
                let what = violation.lines().next().unwrap_or_default();
                format!("{name:22} caught by seed {seed:4} of {profile:11} {what}")
            }
            None => format!("{name:22} NOT CAUGHT by {HUNT_SEEDS} seeds of every profile"),
        })?;
    }
    Ok(if missed == 0 { Verdict::Yes } else { Verdict::No })
}

fn outages(failed: Failed, json: bool) -> Result<(), Failure> {
    let seeds: Vec<u64> = (1..=OUTAGE_SEEDS).collect();
    let Outages { reads, writes, gone } = sim::measure_outages(&seeds, failed);
    let ms =
        |sorted: &[Duration], percent| Outages::percentile(sorted, percent).as_secs_f64() * 1_000.0;
    let columns = [("p50", 50), ("p90", 90), ("p99", 99), ("max", 100)];
    if json {
        let of = |sorted: &[Duration]| {
            let figures = columns.map(|(name, percent)| (name.to_owned(), ms(sorted, percent)));
            serde_json::json!({
                "keys": sorted.len(),
                "ms": figures.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
            })
        };
        let line = serde_json::json!({ "reads": of(&reads), "writes": of(&writes), "gone": gone });
        return out::line(&line.to_string());
    }
    let mut rows = vec![vec!["ms out of reach".to_owned(), "keys".to_owned()]];
    if let Some(head) = rows.first_mut() {
        head.extend(columns.map(|(name, _)| name.to_owned()));
    }
    for (name, sorted) in [("reads", &reads), ("writes", &writes)] {
        let mut row = vec![name.to_owned(), sorted.len().to_string()];
        row.extend(columns.map(|(_, percent)| format!("{:.0}", ms(sorted, percent))));
        rows.push(row);
    }
    out::print(&table(&rows))?;
    if gone > 0 {
        out::line(&format!("{gone} keys more had nobody left to serve them"))?;
    }
    Ok(())
}

fn describe(options: &Options, outcome: &Outcome) -> String {
    let mut text = format!("{options}{}", of(&outcome.stats));
    text.push_str(&format!("fingerprint {:016x}\n", outcome.fingerprint));
    for violation in &outcome.violations {
        text.push_str(&format!("BROKEN: {violation}\n"));
    }
    for picture in &outcome.pictures {
        text.push_str(&sim::check::draw_text(picture));
    }
    if outcome.violations.is_empty() {
        text.push_str("every promise was kept\n");
        return text;
    }
    let mutant = options.mutant.map(|mutant| format!(" --mutant {}", sim::mutant_name(mutant)));
    let (seed, profile, mutant) = (options.seed, options.profile, mutant.unwrap_or_default());
    text.push_str(&format!("replay: keyway sim --seed {seed} --profile {profile}{mutant}\n"));
    text
}

fn of(stats: &Stats) -> String {
    let Stats { events, done, unknown, operations, unchecked, crashes, disks_lost, .. } = *stats;
    let Stats { disturbances, interventions, epochs, healed_within, elapsed, .. } = *stats;
    let Stats { spread, delegated, delegations_begun, delegations_ended, .. } = *stats;
    let Stats { takeovers, deposed, unheeded, turns, moves, splits, merges, alterations, .. } =
        *stats;
    let [nodes, switches, controllers] = stats.crashes_under_delegations;
    format!(
        "{done} requests done, {unknown} unknown; {operations} operations checked, {unchecked} \
         histories too long to check\n{crashes} crashes, {disks_lost} disks lost, {disturbances} \
         disturbances, {interventions} interventions, {epochs} new epochs; replicated within \
         {healed_within:?} of the last fault\n{spread} reads of hot keys from copies; \
         {delegations_begun} delegations begun, {delegations_ended} ended, {delegated} writes \
         under them, and {nodes} crashes of nodes, {switches} of switches, {controllers} of \
         controllers meanwhile\n\
         {takeovers} leaders of several controllers, {deposed} deposed; {unheeded} orders of \
         deposed ones refused\n\
         {turns} tails chosen anew and {moves} replicas moved because of the load; {splits} \
         partitions split, {merges} pairs merged, {alterations} times keyspaces altered\n\
         {}{events} events in {:.1} simulated seconds\n",
        of_attacks(&stats.attacks),
        elapsed.as_secs_f64(),
    )
}

/// What was attacked, if anything was: a line.
fn of_attacks(attacks: &Attacks) -> String {
    let sent: u64 = attacks.sent.iter().sum();
    if sent == 0 {
        return String::new();
    }
    let each = EnvelopeRefusal::ALL.iter().zip(attacks.refused);
    let refused: Vec<String> = each.map(|(why, count)| format!("{count} {}", why.name())).collect();
    let (refused, cookies) = (refused.join(", "), attacks.cookies);
    format!("{sent} attacks; refused: {refused}; {cookies} cookies for people who never asked\n")
}

/// How fast the worlds went by.
fn rate(worlds: usize, total: &Stats, took: Duration) -> String {
    let seconds = took.as_secs_f64().max(1e-9);
    let (worlds, events) = (worlds as f64 / seconds, total.events as f64 / seconds);
    let simulated = total.elapsed.as_secs_f64() / seconds;
    format!(
        "{simulated:.0} simulated seconds, {worlds:.0} worlds, {} events a second",
        grouped(events as u64)
    )
}

fn as_json(options: &Options, outcome: &Outcome) -> serde_json::Value {
    let Stats { events, done, unknown, operations, unchecked, crashes, .. } = outcome.stats;
    let Stats { disks_lost, disturbances, interventions, epochs, .. } = outcome.stats;
    let Stats { healed_within, elapsed, takeovers, deposed, unheeded, attacks, .. } = outcome.stats;
    let Stats { turns, moves, splits, merges, alterations, .. } = outcome.stats;
    let Stats { spread, delegated, delegations_begun, delegations_ended, .. } = outcome.stats;
    serde_json::json!({
        "seed": options.seed,
        "profile": options.profile.name(),
        "mutant": options.mutant.map(sim::mutant_name),
        "options": options.to_string(),
        "violations": outcome.violations,
        "fingerprint": format!("{:016x}", outcome.fingerprint),
        "events": events,
        "done": done,
        "unknown": unknown,
        "operations": operations,
        "unchecked": unchecked,
        "crashes": crashes,
        "disks_lost": disks_lost,
        "disturbances": disturbances,
        "interventions": interventions,
        "epochs": epochs,
        "takeovers": takeovers,
        "deposed": deposed,
        "unheeded": unheeded,
        "turns": turns,
        "moves": moves,
        "splits": splits,
        "merges": merges,
        "alterations": alterations,
        "spread": spread,
        "delegated": delegated,
        "delegations_begun": delegations_begun,
        "delegations_ended": delegations_ended,
        "healed_within_ms": millis(healed_within),
        "simulated_ms": millis(elapsed),
        "attacks": attacks.sent.iter().sum::<u64>(),
        "attacks_refused": attacks.refused.iter().sum::<u64>(),
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn parse_seeds(text: &str) -> Result<(u64, u64), String> {
    let parts = text.split_once("..").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    match parts {
        Some((first, last)) if first <= last => Ok((first, last)),
        _ => Err("write two numbers such as 1..2000, the smaller one first".into()),
    }
}

fn profiles() -> impl TypedValueParser<Value = Profiles> {
    let each = Profile::ALL.map(|it| PossibleValue::new(it.name()).help(it.about()));
    let all = PossibleValue::new("all").help("All of these.");
    PossibleValuesParser::new(each.into_iter().chain([all])).try_map(|name| match &*name {
        "all" => Ok(Profiles(Profile::ALL.to_vec())),
        name => name.parse().map(|profile| Profiles(vec![profile])),
    })
}
