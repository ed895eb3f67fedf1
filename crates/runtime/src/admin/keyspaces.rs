//! What may be asked of keyspaces: that one is created, or altered.

use super::audit::What;
use super::{change_as, refuse, unreached};
use crate::driver::{Change, ControllerHandle, RequestError};
use crate::mailbox::blocking;
use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use cluster::HotPolicy;
use controller::{Alteration, CreateError, KeyspaceSpec};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Bytes of a keyspace to create: a split key for each of many partitions.
pub(super) const KEYSPACE_SIZE_MAX: usize = 16 << 20;

pub(super) async fn create_keyspace(
    State(controller): State<ControllerHandle>,
    spec: Result<Json<KeyspaceSpec>, JsonRejection>,
) -> Response {
    let Json(spec) = match spec {
        Ok(spec) => spec,
        Err(rejection) => return refuse(rejection.status(), rejection.body_text()),
    };
    let what = What(format!("create keyspace {}", spec.name));
    let mut response = create(controller, spec).await;
    response.extensions_mut().insert(what);
    response
}

async fn create(controller: ControllerHandle, spec: KeyspaceSpec) -> Response {
    match blocking(move || controller.create_keyspace(spec)).await {
        Ok(id) => (StatusCode::CREATED, Json(json!({ "id": id }))).into_response(),
        Err(RequestError::Unreached(error)) => unreached(error),
        Err(RequestError::Refused(error)) => {
            let status = match &error {
                CreateError::Exists
                | CreateError::NodesUnknown(_)
                | CreateError::Foreign(_)
                | CreateError::Keyspaces
                | CreateError::NoCaches => StatusCode::CONFLICT,
                CreateError::Name
                | CreateError::Prefix
                | CreateError::Partitions { .. }
                | CreateError::Replicas { .. }
                | CreateError::SplitsOfHash
                | CreateError::SplitCount { .. }
                | CreateError::Split { .. }
                | CreateError::NoAddresses(_)
                | CreateError::Unsound(_) => StatusCode::UNPROCESSABLE_ENTITY,
            };
            refuse(status, error)
        }
    }
}

/// A keyspace that is to be altered. What is left out stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alter {
    /// Its name.
    pub keyspace: String,
    /// How many nodes are to hold each key.
    #[serde(default)]
    pub replicas: Option<u8>,
    /// What is to become of its hot keys.
    #[serde(default)]
    pub hot: Option<HotPolicy>,
}

pub(super) async fn alter_keyspace(
    State(controller): State<ControllerHandle>,
    wish: Result<Json<Alter>, JsonRejection>,
) -> Response {
    change_as(controller, wish, |Alter { keyspace, replicas, hot }| Change::AlterKeyspace {
        keyspace,
        alteration: Alteration { replicas, hot },
    })
    .await
}
