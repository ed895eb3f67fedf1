//! What a node has on record, for whoever makes the map anew: it needs neither lease nor
//! controller.

use super::unreached;
use crate::driver::NodeHandle;
use crate::mailbox::{MailError, blocking};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use cluster::NodeRecord;

pub(super) async fn show(State(node): State<NodeHandle>) -> Response {
    let record: Result<NodeRecord, MailError> = blocking(move || node.record()).await;
    record.map_or_else(unreached, |record| Json(record).into_response())
}
