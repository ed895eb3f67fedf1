//! Which certificates there are.

use console::answer::Answer;
use console::chart::list as columns;
use console::exit::{Failure, Verdict};
use console::out;
use console::shared::Shared;
use machine::Instant;
use runtime::clock::Clock;
use runtime::identity::{Facts, ListedCertificate, Revoked};

/// Shows these certificates. Exit code 1 if one is not valid now.
pub(super) fn run(
    all: &[ListedCertificate],
    revoked: &Revoked,
    shared: &Shared,
) -> Result<Verdict, Failure> {
    let Instant(now) = Clock::new().now();
    let now = i64::try_from(now / 1_000_000_000).unwrap_or(i64::MAX);
    let mut rows = vec![["name", "serial", "valid until", ""].map(str::to_owned).to_vec()];
    for ListedCertificate { certificate, facts } in all {
        let Facts { identity, serial, from, until, until_text, .. } = facts;
        let state = state(facts, revoked, now);
        if shared.json {
            Answer::new("certificate")
                .with("role", identity.as_ref().map(|it| it.role.name()))
                .with("name", identity.as_ref().map(|it| it.name.as_str()))
                .with("serial", serial)
                .with("from_ms", from * 1000)
                .with("until_ms", until * 1000)
                .with("state", state)
                .with("certificate", certificate)
                .print()?;
        }
        let name = identity.as_ref().map_or_else(|| "no role".to_owned(), ToString::to_string);
        let left = if state == VALID { in_days(until - now) } else { state.to_owned() };
        rows.push(vec![name, serial.clone(), until_text.clone(), left]);
    }
    if !shared.json {
        out::print(&columns(&rows))?;
    }
    let good = all.iter().all(|it| state(&it.facts, revoked, now) == VALID);
    Ok(if good { Verdict::Yes } else { Verdict::No })
}

const VALID: &str = "valid";

fn state(facts: &Facts, revoked: &Revoked, now: i64) -> &'static str {
    if revoked.covers(facts) {
        "revoked"
    } else if facts.until < now {
        "expired"
    } else if now < facts.from {
        "not yet valid"
    } else {
        VALID
    }
}

fn in_days(seconds: i64) -> String {
    format!("{} days", seconds / 86_400)
}
