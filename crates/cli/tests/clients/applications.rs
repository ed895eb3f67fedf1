//! Applications of clients, as they come, against gateways; and the page that says what became of
//! what they were asked to do.

use crate::gateway::Gateway;
use serde_json::Value;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/applications.md");

/// How transactions are carried out, in the order of the page's columns.
const MULTI: [&[&str]; 2] = [
    &["--multi", "atomic", "--database", "1=second"],
    &["--multi", "ordered", "--database", "1=second"],
];

/// What applications of one language do, and that the page says so. `UPDATE_REFERENCE=1` writes it
/// into the page.
pub(crate) fn check(language: &str, driver: fn() -> Result<Command, String>) -> Result<(), String> {
    let mut columns = Vec::new();
    for arguments in MULTI {
        let command = driver()?;
        columns.push(run(command, Gateway::start_with(arguments).at));
    }
    let [atomic, ordered] = &columns[..] else { unreachable!("there are two") };
    let (begin, end) = (format!("<!-- {language} -->\n"), "<!-- its end -->\n");
    let table = table(atomic, ordered);
    print!("{table}");
    let page = std::fs::read_to_string(PAGE).expect("the page");
    let (before, rest) = page.split_once(&begin).expect("the page has a place for the table");
    let (written, after) = rest.split_once(end).expect("the place has an end");
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        let page = format!("{before}{begin}{table}{end}{after}");
        std::fs::write(PAGE, page).expect("the page can be written");
    } else {
        assert_eq!(written, table, "UPDATE_REFERENCE=1 writes it anew");
    }
    Ok(())
}

/// Applications of one language do all that they are asked to do, with this server.
pub(crate) fn do_everything(
    with: SocketAddr,
    driver: fn() -> Result<Command, String>,
) -> Result<(), String> {
    let rows = run(driver()?, with);
    let failed = rows.iter().filter(|[_, _, became]| became != "works");
    assert_eq!(failed.collect::<Vec<_>>(), Vec::<&Row>::new());
    Ok(())
}

/// An application, what it was asked to do, and what became of that.
type Row = [String; 3];

fn run(mut command: Command, to: SocketAddr) -> Vec<Row> {
    command.arg(to.ip().to_string()).arg(to.port().to_string());
    let output = command.stderr(Stdio::inherit()).output().expect("it was there a moment ago");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    let mut rows = Vec::new();
    for line in text.lines() {
        let said: Value = serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"));
        let word = |value: &Value| value.as_str().expect("a word").to_owned();
        let checks = said["checks"].as_array().expect("checks");
        let row = |check: &Value| [word(&said["application"]), word(&check[0]), word(&check[1])];
        rows.extend(checks.iter().map(row));
    }
    rows
}

fn table(atomic: &[Row], ordered: &[Row]) -> String {
    assert_eq!(atomic.len(), ordered.len(), "the same was asked of both");
    let mut table =
        "| application | asked to | `--multi atomic` | `--multi ordered` |\n|---|---|---|---|\n"
            .to_owned();
    for ([application, what, one], [_, same, other]) in atomic.iter().zip(ordered) {
        assert_eq!(what, same, "in the same order");
        table += &format!("| {application} | {what} | {one} | {other} |\n");
    }
    table
}
