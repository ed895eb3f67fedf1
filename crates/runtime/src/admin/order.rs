//! Orders that come over HTTP.

use super::refuse;
use crate::driver::{MemberHandle, OrderError};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use cluster::{Order, Report, Unheeded};
use serde_json::json;
use std::sync::{Arc, Mutex, PoisonError};

/// The member that takes orders here.
#[derive(Clone)]
pub(super) struct Orders {
    member: MemberHandle,
    /// Why the last one was not carried out, if it was not.
    refused: Arc<Mutex<Option<OrderError>>>,
}

impl Orders {
    pub(super) fn of(member: MemberHandle) -> Self {
        Self { member, refused: Arc::default() }
    }

    /// Notes how an order ended; whether that is news. A controller asks many times a second.
    fn note(&self, refused: Option<OrderError>) -> bool {
        let mut last = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let news = *last != refused;
        *last = refused;
        news
    }
}

/// It comes ten times a second and may be long: so it is parsed without keeping track of the path
/// to what is wrong, which takes longer than the parsing.
pub(super) async fn take_order(
    State(orders): State<Orders>,
    order: Result<Bytes, BytesRejection>,
) -> Response {
    let order = match order {
        Ok(order) => order,
        Err(rejection) => return refuse(rejection.status(), rejection.body_text()),
    };
    let order: Order = match serde_json::from_slice(&order) {
        Ok(order) => order,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, format!("not an order: {error}")),
    };
    let obeyed: Result<Report, OrderError> = orders.member.obey(order).await;
    let news = orders.note(obeyed.as_ref().err().cloned());
    match obeyed {
        Ok(report) => Json(report).into_response(),
        Err(error) => {
            if news {
                tracing::warn!(%error, "an order was not carried out");
            }
            if let OrderError::Unheeded(Unheeded::Deposed { newest, .. }) = error {
                let body = json!({ "error": error.to_string(), "newest_term": newest });
                return (StatusCode::CONFLICT, Json(body)).into_response();
            }
            let status = match &error {
                OrderError::Unheeded(_) | OrderError::Version(_) => StatusCode::CONFLICT,
                OrderError::Unreached(_) => StatusCode::SERVICE_UNAVAILABLE,
                OrderError::WrongRole { .. }
                | OrderError::WrongNode { .. }
                | OrderError::Unsound(_)
                | OrderError::UnsoundHot(_)
                | OrderError::Install(_) => StatusCode::UNPROCESSABLE_ENTITY,
            };
            refuse(status, error)
        }
    }
}
