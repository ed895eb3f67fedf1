//! What may be asked of where partitions lie.

use super::{change, change_as};
use crate::driver::{Change, ControllerHandle};
use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::response::Response;
use cluster::{NodeId, PartitionId};
use serde::{Deserialize, Serialize};

pub(super) async fn pause_placement(State(controller): State<ControllerHandle>) -> Response {
    change(controller, Change::PausePlacement).await
}

pub(super) async fn resume_placement(State(controller): State<ControllerHandle>) -> Response {
    change(controller, Change::ResumePlacement).await
}

/// A replica that is to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// Of which partition.
    pub partition: PartitionId,
    /// Which node gives it up.
    pub from: NodeId,
    /// Which node gets it.
    pub to: NodeId,
}

pub(super) async fn move_replica(
    State(controller): State<ControllerHandle>,
    wish: Result<Json<Move>, JsonRejection>,
) -> Response {
    change_as(controller, wish, |Move { partition, from, to }| Change::MoveReplica {
        partition,
        from,
        to,
    })
    .await
}

/// A partition that is to be split.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// Which.
    pub partition: PartitionId,
    /// The first key of the second part, byte by byte, whether there is such a key or not. Without
    /// one it is cut in the middle, if its keys are in no order.
    #[serde(default)]
    pub at: Option<Vec<u8>>,
}

pub(super) async fn split(
    State(controller): State<ControllerHandle>,
    wish: Result<Json<Split>, JsonRejection>,
) -> Response {
    change_as(controller, wish, |Split { partition, at }| Change::Split { partition, at }).await
}

/// Two neighbouring partitions that are to become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Merge {
    /// Which.
    pub partition: PartitionId,
    /// And which other.
    pub with: PartitionId,
}

pub(super) async fn merge(
    State(controller): State<ControllerHandle>,
    wish: Result<Json<Merge>, JsonRejection>,
) -> Response {
    change_as(controller, wish, |Merge { partition, with }| Change::Merge { partition, with }).await
}
