//! `cargo xtask measure`: every benchmark that docs/performance.md has tables of, one after the
//! other, and its tables written anew. No figure there is typed by hand.

mod command;
mod machine;
mod markdown;
mod need;
mod page;
mod progress;
mod record;
mod sections;
mod tables;

use anyhow::{Context, Result, bail};
use command::Places;
use machine::Machine;
use page::Page;
use progress::Progress;
use record::Recorded;
use sections::Section;
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;
use xshell::Shell;

/// What is written.
const PAGE: &str = "docs/performance.md";

/// Other work above which figures are worth less, in cores.
const BUSY: f64 = 0.1;

/// Measure what docs/performance.md has tables of, and write those tables
///
/// Builds everything first, then runs one benchmark after the other, and writes each section's
/// tables as soon as it is measured: what is interrupted goes on with --only. Nothing else should
/// be at work on the machine. What benchmarks printed is kept under target/measured.
///
/// A section that cannot be measured here (it needs root, or a program that is not installed) keeps
/// its tables, with a note that says why.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask measure --list                       what there is, and how long each takes
  cargo xtask measure                              everything, which takes hours
  cargo xtask measure --only coordination,stores
  cargo xtask measure --only balance --runs 1
  cargo xtask measure --render                     tables of what was recorded, once more")]
pub(crate) struct Args {
    /// Measure these sections and no others
    #[arg(long, value_name = "SECTION", value_delimiter = ',')]
    only: Vec<String>,
    /// Say which sections there are, how long they take, and what they need; measure nothing
    #[arg(long, conflicts_with_all = ["render", "runs"])]
    list: bool,
    /// How often each section is run; tables have medians. Without it 3 times if a table has
    /// ratios
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=99))]
    runs: Option<u8>,
    /// Write the tables of what was recorded before; measure nothing
    #[arg(long, conflicts_with = "runs")]
    render: bool,
}

/// Measures, or lists, or renders.
pub(crate) fn run(root: &Path, target: &Path, args: &Args) -> Result<()> {
    let sections = sections::named(&args.only)?;
    let book = Book { path: root.join(PAGE), records: target.join("measured") };
    if args.list {
        list(&book, &sections, args);
        return Ok(());
    }
    // Before hours are spent on what has no place there.
    book.page()?;
    std::fs::create_dir_all(&book.records)
        .with_context(|| format!("{} cannot be made", book.records.display()))?;
    if args.render {
        return render(&book, &sections, args.only.is_empty());
    }
    measure(&book, &Places::of(root, target), &sections, args)
}

/// Writes what was recorded: of all sections, or of these, which must have been.
fn render(book: &Book, sections: &[Section], all: bool) -> Result<()> {
    let is_recorded = |it: &&Section| record::path(&book.records, it.name).is_file();
    let (recorded, others): (Vec<_>, Vec<_>) = sections.iter().partition(is_recorded);
    let missing = if all && !recorded.is_empty() { Vec::new() } else { others };
    if let Some(section) = missing.first() {
        bail!("nothing is recorded of {0}: cargo xtask measure --only {0}", section.name);
    }
    recorded
        .into_iter()
        .try_for_each(|section| book.write(section, &Recorded::read(&book.records, section.name)?))
}

fn measure(book: &Book, places: &Places, sections: &[Section], args: &Args) -> Result<()> {
    let (mut able, mut seconds) = (Vec::new(), 0.0);
    for section in sections {
        if let Some(why) = section.lacks() {
            book.leave(section, &why)?;
        } else {
            seconds += book.thought(section) * args.runs_of(section) as f64;
            able.push(section);
        }
    }
    places.build(able.iter().flat_map(|it| &it.commands).map(|it| it.program))?;
    let shell = Shell::new()?;
    shell.change_dir(&places.root);
    let mut progress = Progress::new(seconds);
    let mut failed = Vec::new();
    for (number, section) in (1..).zip(&able) {
        let count = format!("{number} of {}: {}", able.len(), section.name);
        let on = Machine::look(&shell, PAGE)?;
        let measured = measure_section(book, places, section, args, on, &count, &mut progress);
        if let Err(error) = measured {
            let log = book.log(section).display().to_string();
            eprintln!("FAILED: {}: {error:#}\n  what it said: {log}", section.name);
            book.leave(section, "it ended badly")?;
            failed.push(section.name);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    let names = failed.join(",");
    bail!("{} failed; when that is mended: cargo xtask measure --only {names}", failed.len())
}

#[expect(clippy::disallowed_methods, reason = "a chore has a clock")]
fn measure_section(
    book: &Book,
    places: &Places,
    section: &Section,
    args: &Args,
    mut on: Machine,
    count: &str,
    progress: &mut Progress,
) -> Result<()> {
    let (runs, thought) = (args.runs_of(section), book.thought(section));
    let log = File::create(book.log(section)).context("the log cannot be written")?;
    let mut recorded = Recorded { on: on.clone(), seconds: 0.0, runs: Vec::new() };
    for number in 1..=runs {
        let busy = machine::busy_cores()?;
        if busy > BUSY {
            eprintln!("other work takes {busy:.2} cores: the figures will be worth less");
        }
        on.busy_cores = on.busy_cores.max(busy);
        let running = progress.begin(&format!("{count}, run {number} of {runs}"));
        let began = Instant::now();
        let rows = run_once(places, section, &log);
        drop(running);
        let took = began.elapsed().as_secs_f64();
        let rows = rows.inspect_err(|_| progress.skip(thought * (runs + 1 - number) as f64))?;
        if let Some(why) = record::skipped(&rows) {
            progress.skip(thought * (runs + 1 - number) as f64);
            return book.leave(section, &why);
        }
        progress.done(thought, took);
        recorded.seconds = recorded.seconds.max(took);
        recorded.runs.push(rows);
    }
    recorded.on = on;
    recorded.write(&book.records, section.name)?;
    book.write(section, &recorded)
}

/// The rows of all commands of a section.
fn run_once(places: &Places, section: &Section, log: &File) -> Result<Vec<Value>> {
    let mut rows = Vec::new();
    for command in &section.commands {
        rows.extend(command.run(places, log)?);
    }
    Ok(rows)
}

impl Args {
    fn runs_of(&self, section: &Section) -> usize {
        self.runs.map_or(section.runs, usize::from)
    }
}

/// The page, and where is kept what it is made of.
#[derive(Debug)]
struct Book {
    path: PathBuf,
    records: PathBuf,
}

impl Book {
    fn page(&self) -> Result<Page> {
        let text = std::fs::read_to_string(&self.path)
            .with_context(|| format!("{} cannot be read", self.path.display()))?;
        let sections = sections::all();
        let tables = sections.iter().flat_map(|it| &it.tables).map(|it| it.name);
        Page::of(&text, &tables.collect::<Vec<_>>())
            .with_context(|| self.path.display().to_string())
    }

    fn save(&self, page: &Page) -> Result<()> {
        std::fs::write(&self.path, page.text())
            .with_context(|| format!("{} cannot be written", self.path.display()))
    }

    /// Writes a section's tables.
    fn write(&self, section: &Section, recorded: &Recorded) -> Result<()> {
        // Read each time: somebody may edit it meanwhile.
        let mut page = self.page()?;
        let rows = recorded.medians()?;
        for table in &section.tables {
            let text = (table.of)(&rows).with_context(|| format!("the table {}", table.name))?;
            page.set(table.name, &format!("{text}\n{}\n", origin(section, recorded)));
        }
        self.save(&page)?;
        eprintln!("{}: written", section.name);
        Ok(())
    }

    /// Leaves a section's tables, and says why.
    fn leave(&self, section: &Section, why: &str) -> Result<()> {
        eprintln!("SKIPPED: {}: {why}", section.name);
        let mut page = self.page()?;
        let date = machine::date();
        section.tables.iter().for_each(|table| page.leave(table.name, &date, why));
        self.save(&page)
    }

    /// What a run of a section takes: what the last one did, or a guess.
    fn thought(&self, section: &Section) -> f64 {
        Recorded::read(&self.records, section.name).map_or(section.seconds, |it| it.seconds)
    }

    fn log(&self, section: &Section) -> PathBuf {
        self.records.join(format!("{}.log", section.name))
    }
}

/// The line below a table: how it was made, and on what.
fn origin(section: &Section, recorded: &Recorded) -> String {
    let runs = match recorded.runs.len() {
        1 => "one run".to_owned(),
        runs => format!("medians of {runs} runs"),
    };
    format!("*`cargo xtask measure --only {}`: {runs}, {}.*", section.name, recorded.on)
}

fn list(book: &Book, sections: &[Section], args: &Args) {
    let mut all = 0.0;
    for section in sections {
        let (run, runs) = (book.thought(section), args.runs_of(section));
        all += run * runs as f64;
        println!("{:16} {:>7} x {runs}  {}", section.name, progress::text(run), section.about);
        for command in &section.commands {
            println!("{:29}{}", "", command.shown());
        }
        if let Some(why) = section.lacks() {
            println!("{:29}not here: {why}", "");
        }
    }
    println!("\nabout {} in all, without the time to build", progress::text(all));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_page_has_a_place_for_every_table() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let book = Book { path: root.join(PAGE), records: PathBuf::new() };
        book.page().unwrap();
    }

    /// A copy of the page, and a program `keyway` that is this script.
    struct Bench {
        folder: tempfile::TempDir,
        book: Book,
        places: Places,
    }

    impl Bench {
        fn new(script: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
            let path = folder.path().join("page.md");
            std::fs::copy(page, &path).unwrap();
            let program = folder.path().join("release/keyway");
            std::fs::create_dir(program.parent().unwrap()).unwrap();
            std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&program, Permissions::from_mode(0o700)).unwrap();
            let places = Places::of(folder.path(), folder.path());
            let book = Book { path, records: folder.path().to_owned() };
            Self { folder, book, places }
        }

        fn measure(&self, section: &Section, runs: u8) -> Result<()> {
            let args = Args { only: Vec::new(), list: false, runs: Some(runs), render: false };
            let (mut progress, on) = (Progress::new(1.0), Machine::default());
            measure_section(&self.book, &self.places, section, &args, on, "it", &mut progress)
        }

        fn page(&self) -> String {
            std::fs::read_to_string(&self.book.path).unwrap()
        }

        fn file(&self, name: &str) -> String {
            std::fs::read_to_string(self.folder.path().join(name)).unwrap()
        }
    }

    fn section(name: &str) -> Section {
        sections::named(&[name.to_owned()]).unwrap().remove(0)
    }

    #[test]
    fn what_is_measured_is_written_and_recorded_and_can_be_written_again() {
        let row = r#"{"mix":"put=1","arm":"etcd","pace":{"closed":8},"kind":"put","#.to_owned()
            + r#""per_second":2577.3,"p50_us":2400,"p99_us":19000,"p999_us":26000}"#;
        let bench = Bench::new(&format!("echo $* >&2; echo '{{\"rows\":[{row}]}}'"));
        let section = section("durable-etcd");
        bench.measure(&section, 2).unwrap();
        let line = "| etcd | 8 in flight | 19.0 ms / 26.0 ms | 2.40 ms | 2,577 |  |\n\n\
                    *`cargo xtask measure --only durable-etcd`: medians of 2 runs, ";
        assert!(bench.page().contains(line), "{}", bench.page());
        let said = "--json bench --versus etcd --duration 5s\n".repeat(2);
        assert_eq!(bench.file("durable-etcd.log"), said);
        let written = bench.page();
        std::fs::write(&bench.book.path, written.replace("| etcd |", "| by hand |")).unwrap();
        render(&bench.book, &[section], true).unwrap();
        assert_eq!(bench.page(), written);
        let error = render(&bench.book, &sections::all(), false).unwrap_err().to_string();
        assert_eq!(error, "nothing is recorded of switch: cargo xtask measure --only switch");
    }

    #[test]
    fn what_cannot_be_measured_keeps_its_tables() {
        let bench = Bench::new(r#"echo '{"skipped":"the kernel refuses"}'"#);
        bench.measure(&section("durable-redis"), 1).unwrap();
        let note = format!("*Not measured again on {}: the kernel refuses.*", machine::date());
        assert_eq!(bench.page().matches(&note).count(), 1);
        let bench = Bench::new("exit 3");
        let error = bench.measure(&section("durable-redis"), 1).unwrap_err().to_string();
        let expected =
            "keyway bench --versus redis-durable --duration 5s ended badly: exit status: 3";
        assert_eq!(error, expected);
    }
}
