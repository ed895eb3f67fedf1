//! Passes of clients: what makes a process a client where packets are in envelopes.

use super::{refuse, unreached};
use crate::config::Classes;
use crate::driver::{ControllerHandle, PassError, PassWish, RequestError};
use crate::identity::Peer;
use crate::mailbox::blocking;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Json};
use envelope::{Key, Pass, PassNumber};
use serde::{Deserialize, Serialize};

/// What is asked with `POST /v1/pass`; answered by an `envelope::Pass`, or by null where packets
/// are in no envelopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskPass {
    /// The pass that is to be renewed; a new one is given if there is none.
    #[serde(default)]
    pub renew: Option<Renewal>,
}

/// A pass that somebody has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Renewal {
    /// Its number.
    pub number: PassNumber,
    /// Its ticket.
    pub ticket: Key,
}

/// Who gives passes here.
#[derive(Clone)]
pub(super) struct Desk {
    pub(super) controller: ControllerHandle,
    pub(super) classes: Classes,
}

pub(super) async fn give(
    State(Desk { controller, classes }): State<Desk>,
    Extension(peer): Extension<Peer>,
    asked: Result<Json<AskPass>, JsonRejection>,
) -> Response {
    let AskPass { renew } = match asked {
        Ok(Json(asked)) => asked,
        Err(rejection) => return refuse(rejection.status(), rejection.body_text()),
    };
    let Some(identity) = peer.identity else { return Json(None::<Pass>).into_response() };
    let class = classes.of(&identity);
    let renew = renew.map(|Renewal { number, ticket }| (number, ticket));
    let wish = PassWish { whose: identity.to_string(), class, renew };
    match blocking(move || controller.pass(wish)).await {
        Ok(pass) => Json(pass).into_response(),
        Err(RequestError::Unreached(error)) => unreached(error),
        Err(RequestError::Refused(error)) => {
            let status = match error {
                PassError::NotRenewable | PassError::OtherRights => StatusCode::FORBIDDEN,
                PassError::NoNumbers => StatusCode::SERVICE_UNAVAILABLE,
            };
            refuse(status, error)
        }
    }
}
