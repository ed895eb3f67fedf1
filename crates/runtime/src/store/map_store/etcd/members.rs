//! What the members of an etcd say of themselves, for those who look after it.

use super::access::EtcdAccess;
use super::api::{Api, CallError, PATIENCE};
use super::url::EtcdUrl;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;

/// A member of an etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdMember {
    /// `HOST:PORT`.
    pub at: String,
    /// What it says, or why it says nothing.
    pub said: Result<EtcdFacts, String>,
}

/// What a member says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdFacts {
    /// Of etcd, as `3.4.23`.
    pub version: String,
    /// Whether it knows of a leader among the members.
    pub has_leader: bool,
    /// Alarms that are raised, as `NOSPACE`.
    pub alarms: Vec<String>,
    /// How long it waits for a leader's word before another one is elected, if its command line
    /// says so; it may stand in its environment or in a file, too.
    pub election_timeout: Option<Duration>,
}

/// Asks each of them.
#[must_use]
pub fn look_at_members(url: &EtcdUrl, access: EtcdAccess) -> Vec<EtcdMember> {
    let api = Api::new(url.clone(), access);
    let look = |at: usize| {
        let at = url.endpoint(at);
        let said = look_at(&api, at).map_err(|error| error.text().to_owned());
        EtcdMember { at: at.to_owned(), said }
    };
    (0..url.count()).map(look).collect()
}

/// Answer to `maintenance/status`, as far as it is used.
#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    version: String,
    /// Left out if there is none.
    #[serde(default)]
    leader: Option<String>,
    #[serde(default)]
    errors: Vec<String>,
}

/// What a Go program tells of itself, as far as it is used.
#[derive(Deserialize)]
struct Vars {
    cmdline: Vec<String>,
}

fn look_at(api: &Api, at: &str) -> Result<EtcdFacts, CallError> {
    let status: Status = api.ask_as_user(at, "maintenance/status", &json!({}), PATIENCE)?;
    // Not every version tells it.
    let vars: Option<Vars> = api.read_page(at, "debug/vars", PATIENCE).ok();
    Ok(EtcdFacts {
        version: status.version,
        has_leader: status.leader.is_some(),
        alarms: status.errors.iter().filter_map(|it| alarm(it)).collect(),
        election_timeout: vars.and_then(|vars| election_timeout(&vars.cmdline)),
    })
}

/// The alarm in `memberID:10276657743932975437 alarm:NOSPACE`.
fn alarm(error: &str) -> Option<String> {
    error.split_once("alarm:").map(|(_, name)| name.trim().to_owned())
}

/// What follows the option's name, in the same word or in the next.
fn election_timeout(words: &[String]) -> Option<Duration> {
    let mut words = words.iter();
    let value = loop {
        let rest = words.next()?.trim_start_matches('-').strip_prefix("election-timeout");
        match rest.map(|rest| rest.strip_prefix('=')) {
            Some(Some(value)) => break value,
            Some(None) => break words.next()?,
            None => {}
        }
    };
    value.parse().ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_election_timeout_is_found_in_a_command_line() {
        let found = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            election_timeout(&words).map(|it| it.as_millis())
        };
        assert_eq!(found("etcd --name a --election-timeout=500 --x"), Some(500));
        assert_eq!(found("etcd -election-timeout 700"), Some(700));
        assert_eq!(found("etcd --election-timeout"), None);
        assert_eq!(found("etcd --election-timeout=soon"), None);
        assert_eq!(found("etcd --heartbeat-interval=50"), None);
    }

    #[test]
    fn alarms_are_named() {
        let error = "memberID:10276657743932975437 alarm:NOSPACE ";
        assert_eq!(alarm(error).as_deref(), Some("NOSPACE"));
        assert_eq!(alarm("etcdserver: no leader"), None);
    }
}
