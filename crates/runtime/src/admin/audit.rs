//! Who has changed what, when, and what came of it.

use crate::clock::Clock;
use crate::identity::Peer;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// A change that somebody asked a controller for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When it was answered, in Unix milliseconds.
    pub at_ms: u64,
    /// Whose certificate was shown, as `admin/alice`; `loopback` for somebody on the controller's
    /// machine without one.
    pub who: String,
    /// Where the request came from.
    pub address: String,
    /// What was asked for.
    pub what: String,
    /// What came of it.
    pub outcome: AuditOutcome,
    /// Why it was not done, if it was not.
    pub why: Option<String>,
}

/// What came of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditOutcome {
    /// It was decided.
    Done,
    /// It was refused, and nothing has changed.
    Refused,
    /// Nobody knows: the controller has not answered in time, or does not lead.
    Unknown,
}

impl AuditOutcome {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused => "refused",
            Self::Unknown => "unknown",
        }
    }

    fn of(status: StatusCode) -> Self {
        if status.is_success() {
            Self::Done
        } else if status.is_client_error() {
            Self::Refused
        } else {
            Self::Unknown
        }
    }
}

/// Changes that are remembered: a few screens of them. The log has them all.
const ENTRIES_MAX: usize = 256;

/// The last changes, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Audit(Arc<Mutex<VecDeque<AuditEntry>>>);

/// What a response says that it was about.
#[derive(Clone, Debug)]
pub(super) struct What(pub(super) String);

/// Why a response says no.
#[derive(Clone, Debug)]
pub(super) struct Why(pub(super) String);

impl Audit {
    fn note(&self, entry: AuditEntry) {
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= ENTRIES_MAX {
            entries.pop_front();
        }
        entries.push_back(entry);
    }

    fn entries(&self) -> Vec<AuditEntry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

/// Notes each change, and what came of it.
pub(super) async fn note(State(audit): State<Audit>, request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return next.run(request).await;
    }
    let peer = request.extensions().get::<Peer>().cloned();
    let asked = format!("{} {}", request.method(), request.uri().path());
    let response = next.run(request).await;
    let extensions = response.extensions();
    let what = extensions.get::<What>().map_or(asked, |what| what.0.clone());
    let why = extensions.get::<Why>().map(|why| why.0.clone());
    let outcome = AuditOutcome::of(response.status());
    let who = peer.as_ref().map_or_else(|| "unknown".to_owned(), ToString::to_string);
    let address = peer.map_or_else(String::new, |peer| peer.address.to_string());
    let at_ms = Clock::new().now().0 / 1_000_000;
    let entry = AuditEntry { at_ms, who, address, what, outcome, why };
    log(&entry);
    audit.note(entry);
    response
}

fn log(entry: &AuditEntry) {
    let AuditEntry { at_ms, who, address, what, outcome, why } = entry;
    let (outcome, why) = (outcome.name(), why.as_deref().unwrap_or_default());
    tracing::info!(target: "audit", who, address, what, outcome, why, at_ms, "change");
}

/// Tells the last changes, the oldest first.
pub(super) async fn show(State(audit): State<Audit>) -> Response {
    Json(audit.entries()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_changes_are_remembered_and_no_more() {
        let audit = Audit::default();
        for at_ms in 0..=ENTRIES_MAX as u64 {
            let (who, outcome) = ("loopback".to_owned(), AuditOutcome::Done);
            let (address, what) = (String::new(), "drain node 1".to_owned());
            audit.note(AuditEntry { at_ms, who, address, what, outcome, why: None });
        }
        let entries = audit.entries();
        assert_eq!((entries.len(), entries[0].at_ms), (ENTRIES_MAX, 1));
    }

    #[test]
    fn an_outcome_goes_by_the_status() {
        assert_eq!(AuditOutcome::of(StatusCode::CREATED), AuditOutcome::Done);
        assert_eq!(AuditOutcome::of(StatusCode::CONFLICT), AuditOutcome::Refused);
        assert_eq!(AuditOutcome::of(StatusCode::SERVICE_UNAVAILABLE), AuditOutcome::Unknown);
    }
}
