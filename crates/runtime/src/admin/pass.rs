//! Passes of clients: what makes a process a client where packets are in envelopes.

use super::{refuse, unreached};
use crate::config::Classes;
use crate::driver::{ControllerHandle, PassError, PassWish, RequestError};
use crate::identity::{Identity, Peer, Role};
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AskPass {
    /// The pass that is to be renewed; a new one is given if there is none.
    #[serde(default)]
    pub renew: Option<Renewal>,
    /// By a gateway: the name of the client for whom it is to act. Otherwise it is for who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub act_for: Option<String>,
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
    let AskPass { renew, act_for } = match asked {
        Ok(Json(asked)) => asked,
        Err(rejection) => return refuse(rejection.status(), rejection.body_text()),
    };
    let Some(identity) = peer.identity else { return Json(None::<Pass>).into_response() };
    let (class, whose) = match act_for {
        None => (classes.of(&identity), identity.to_string()),
        Some(name) => match Identity::new(Role::Client, name) {
            Ok(client) if classes.may_act(&identity, &client) => {
                (classes.of(&client), format!("{client} by {identity}"))
            }
            Ok(client) => {
                let why = format!(
                    "{identity} may not act for {client}: name it in acts_for of its section in \
                     [[security.rights]], at all controllers"
                );
                return refuse(StatusCode::FORBIDDEN, why);
            }
            Err(why) => return refuse(StatusCode::BAD_REQUEST, why),
        },
    };
    let renew = renew.map(|Renewal { number, ticket }| (number, ticket));
    let wish = PassWish { whose, class, renew };
    match blocking(move || controller.pass(wish)).await {
        Ok(pass) => Json(pass).into_response(),
        Err(RequestError::Unreached(error)) => unreached(error),
        Err(RequestError::Refused(error)) => {
            let status = match error {
                PassError::NotRenewable | PassError::OtherRights => StatusCode::FORBIDDEN,
                PassError::NoNumbers | PassError::NoClass(_) => StatusCode::SERVICE_UNAVAILABLE,
            };
            refuse(status, error)
        }
    }
}
