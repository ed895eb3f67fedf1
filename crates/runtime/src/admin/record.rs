//! What a node has on record and what a switch follows, for whoever makes the map anew: it needs
//! neither lease nor controller.

use super::unreached;
use crate::driver::{NodeHandle, SwitchHandle};
use crate::mailbox::{MailError, blocking};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use cluster::{NodeRecord, SwitchRecord};

pub(super) async fn of_node(State(node): State<NodeHandle>) -> Response {
    let record: Result<NodeRecord, MailError> = blocking(move || node.record()).await;
    record.map_or_else(unreached, |record| Json(record).into_response())
}

pub(super) async fn of_switch(State(switch): State<SwitchHandle>) -> Response {
    let snapshot = blocking(move || switch.snapshot()).await;
    let record = snapshot.map(|it| SwitchRecord { revision: it.revision });
    record.map_or_else(unreached, |record| Json(record).into_response())
}
