//! The admin server of a process: metrics, health, and the control transport.
//!
//! | Request | Answer |
//! |---|---|
//! | `GET /metrics` | everything counted, in the exposition format of Prometheus |
//! | `GET /healthz` | `{"status":"ok"}` if every thread answers, else 503 |
//! | `GET /readyz` | `{"status":"ready"}` if every switch and node also has a lease, else 503 |
//! | `PUT /v1/order` | a `cluster::Order`, answered by a `cluster::Report` (one switch or node) |
//! | `GET /v1/alerts?heard=N` | how many alerts a node has given, once that is not N (one node) |
//! | `GET /v1/record` | a `cluster::NodeRecord`: what it has on record of the map (one node) |
//! | `GET /v1/record` | a `cluster::SwitchRecord`: what it follows (one switch) |
//! | `GET /v1/explain?keyspace=ID&match=HEX` | `driver::InKernel` (switch in the kernel) |
//! | `GET /v1/explain/hot?keyspace=ID&keyhash=HEX` | `switch::HotExplanation`, or null (switch) |
//! | `GET /v1/audit` | a list of [`AuditEntry`]: who has changed what lately (controller) |
//! | `GET /v1/status` | `controller::Status` (controller) |
//! | `GET /v1/map` | `cluster::Map` (controller) |
//! | `POST /v1/pass` | an [`AskPass`], answered by an `envelope::Pass` (controller) |
//! | `POST /v1/keyspaces` | a `controller::KeyspaceSpec`, answered by `{"id":...}` (controller) |
//! | `POST /v1/keyspaces/alter` | an [`Alter`]: other replicas, say; they follow (controller) |
//! | `POST /v1/nodes` | a [`NewNode`]; `{}` once it is known (controller) |
//! | `POST /v1/nodes/{id}/accept-loss` | believe its older store (controller) |
//! | `POST /v1/nodes/{id}/drain` | replace it in all its chains, as the status shows (controller) |
//! | `POST /v1/nodes/{id}/keep` | cancel that (controller) |
//! | `DELETE /v1/nodes/{id}` | forget a node that holds nothing (controller) |
//! | `POST /v1/hot/pin`, `.../unpin` | a `driver::NamedKey`: keep it hot or not (controller) |
//! | `POST /v1/verify` | a [`Verify`]: compare replicas, as the status shows (controller) |
//! | `POST /v1/copies/pause`, `.../resume` | let copies stand still, or go on (controller) |
//! | `POST /v1/placement/pause`, `.../resume` | leave placement as it is, or not (controller) |
//! | `POST /v1/placement/move` | move a replica (controller) |
//! | `POST /v1/placement/split`, `.../merge` | split a partition, merge two (controller) |
//!
//! A controller that stands by answers 503 to what is about the cluster, and names the `leader` if
//! it knows it.
//!
//! Errors are `{"error": "..."}` in words for people. Who may ask what stands in `access`; without
//! certificates everybody may who reaches the address, and it must be one of this machine. `doors`
//! says how many are let in, and `origin` what the pages of other sites cannot do.

mod access;
mod audit;
mod doors;
mod keyspaces;
mod order;
mod origin;
mod pass;
mod placement;
mod record;
mod refusals;

pub use access::{Access, ROUTES, Route};
pub use audit::{AuditEntry, AuditOutcome};
pub use keyspaces::Alter;
pub use pass::{AskPass, Renewal};
pub use placement::{Merge, Move, Split};

use crate::driver::{
    Change, ControllerHandle, MemberHandle, NamedKey, NodeHandle, RequestError, SwitchHandle,
};
use crate::fatal;
use crate::mailbox::{MailError, blocking};
use crate::metrics;
use crate::roles::Roles;
use access::Rules;
use audit::{Audit, What, Why};
use axum::Json;
use axum::Router;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use cluster::{KeyspaceId, Map, Match, NodeId, NodeSpec, PartitionId};
use controller::{CommandError, Status};
use doors::Doors;
use keyspaces::{KEYSPACE_SIZE_MAX, alter_keyspace, create_keyspace};
use order::{Orders, take_order};
use pass::Desk;
use placement::{merge, move_replica, pause_placement, resume_placement, split};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use tokio::sync::oneshot;

/// A running admin server. Dropping it ends it.
#[derive(Debug)]
pub struct Admin {
    local: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Bytes of an order: tables of `PARTITIONS_MAX` partitions, some 250 bytes of JSON each.
const ORDER_SIZE_MAX: usize = 32 << 20;

impl Admin {
    /// Serves these roles at this address, in a thread of its own.
    ///
    /// # Errors
    ///
    /// If the address cannot be bound or the thread not be started.
    pub fn start(at: SocketAddr, roles: Roles) -> io::Result<Self> {
        let listener = TcpListener::bind(at)?;
        listener.set_nonblocking(true)?;
        let local = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(REQUESTS_AT_ONCE_MAX)
            .build()?;
        let (stop, stopped) = oneshot::channel();
        if !roles.security.may_serve_at(at) {
            let why = format!("{at} is reached from other machines, and there are no certificates");
            return Err(io::Error::other(why));
        }
        let doors = Doors::new(roles.security.clone());
        roles.others.add(doors.source());
        let thread = Builder::new().name("admin".into()).spawn(move || {
            let _guard = fatal::EndOnPanic;
            let served =
                runtime.block_on(doors::serve(listener, router(roles, &doors), &doors, stopped));
            if let Err(error) = served {
                tracing::error!(%error, "the admin server has ended; nothing else is affected");
            }
            // Connections that are still open are closed, not waited for.
            runtime.shutdown_background();
        })?;
        Ok(Self { local, stop: Some(stop), thread: Some(thread) })
    }

    /// The address it serves at, with the port that was given if none was asked for.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.local
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the admin thread ends the process if it panics");
        }
    }
}

/// Requests that are worked on at a time. They come from one controller, one scraper and a few
/// people; others wait.
const REQUESTS_AT_ONCE_MAX: usize = 8;

fn router(roles: Roles, doors: &Doors) -> Router {
    let refusals = Arc::clone(doors.refusals());
    let certificates = roles.security.credentials().is_some();
    let rules = Rules { certificates, refusals: Arc::clone(&refusals) };
    let mut router = Router::new();
    if let Some(member) = roles.member() {
        let limit = DefaultBodyLimit::max(ORDER_SIZE_MAX);
        router = match &member {
            MemberHandle::Node(node) => router
                .route("/v1/alerts", get(listen).with_state(node.clone()))
                .route("/v1/record", get(record::of_node).with_state(node.clone())),
            MemberHandle::Cache(_) => router,
            MemberHandle::Switch(switch) => {
                router.route("/v1/record", get(record::of_switch).with_state(switch.clone()))
            }
        };
        let state = Orders::of(member);
        let order = put(take_order).layer(limit).with_state(state);
        router = router.route("/v1/order", order);
    }
    if let Some(switch) = roles.switch.clone() {
        router = router.route("/v1/explain", get(explain).with_state(switch.clone()));
        router = router.route("/v1/explain/hot", get(explain_hot).with_state(switch.clone()));
        router = router.route("/v1/explain/cached", get(explain_cached).with_state(switch));
    }
    if let Some(controller) = roles.controller.clone() {
        let desk = Desk { controller: controller.clone(), classes: roles.classes.clone() };
        router = router.route("/v1/pass", post(pass::give).with_state(desk));
        router = router.merge(controller_router(controller));
    }
    router
        .route("/metrics", get(show_metrics).with_state(roles.clone()))
        .route("/healthz", get(check_health).with_state(roles.clone()))
        .route("/readyz", get(check_ready).with_state(roles))
        .fallback(|| async { refuse(StatusCode::NOT_FOUND, "no such page here") })
        .layer(from_fn_with_state(rules, access::check))
        .layer(from_fn_with_state(refusals, origin::check))
}

fn controller_router(controller: ControllerHandle) -> Router {
    let limit = DefaultBodyLimit::max(KEYSPACE_SIZE_MAX);
    let audit = Audit::default();
    Router::new()
        .route("/v1/audit", get(audit::show).with_state(audit.clone()))
        .route("/v1/status", get(show_status))
        .route("/v1/map", get(show_map))
        .route("/v1/keyspaces", post(create_keyspace).layer(limit))
        .route("/v1/keyspaces/alter", post(alter_keyspace))
        .route("/v1/nodes", post(add_node))
        .route("/v1/nodes/{id}/drain", post(drain_node))
        .route("/v1/nodes/{id}/accept-loss", post(accept_loss))
        .route("/v1/nodes/{id}/keep", post(keep_node))
        .route("/v1/nodes/{id}", delete(remove_node))
        .route("/v1/hot/pin", post(pin_key))
        .route("/v1/hot/unpin", post(unpin_key))
        .route("/v1/verify", post(verify))
        .route("/v1/copies/pause", post(pause_copies))
        .route("/v1/copies/resume", post(resume_copies))
        .route("/v1/placement/pause", post(pause_placement))
        .route("/v1/placement/resume", post(resume_placement))
        .route("/v1/placement/move", post(move_replica))
        .route("/v1/placement/split", post(split))
        .route("/v1/placement/merge", post(merge))
        .layer(from_fn_with_state(audit, audit::note))
        .with_state(controller)
}

async fn show_metrics(State(roles): State<Roles>) -> Response {
    let text = blocking(move || metrics::expose(&roles)).await;
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response()
}

async fn check_health(State(roles): State<Roles>) -> Response {
    match blocking(move || roles.check_health()).await {
        Ok(()) => Json(json!({ "status": "ok" })).into_response(),
        Err(error) => unreached(error),
    }
}

async fn check_ready(State(roles): State<Roles>) -> Response {
    match blocking(move || roles.unready()).await {
        Ok(unready) if unready.is_empty() => Json(json!({ "status": "ready" })).into_response(),
        Ok(unready) => {
            let body = Json(json!({ "status": "not ready", "why": unready }));
            (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
        }
        Err(error) => unreached(error),
    }
}

/// How many alerts have been heard.
#[derive(Deserialize)]
struct Heard {
    heard: u64,
}

async fn listen(
    State(node): State<NodeHandle>,
    heard: Result<Query<Heard>, QueryRejection>,
) -> Response {
    match heard {
        Ok(Query(Heard { heard })) => {
            node.listen(heard).await.map_or_else(unreached, |alerts| Json(alerts).into_response())
        }
        Err(rejection) => refuse(rejection.status(), rejection.body_text()),
    }
}

/// What is to be explained.
#[derive(Deserialize)]
struct Wanted {
    keyspace: KeyspaceId,
    #[serde(rename = "match")]
    at: Match,
}

async fn explain(
    State(switch): State<SwitchHandle>,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Response {
    let Query(Wanted { keyspace, at }) = match wanted {
        Ok(wanted) => wanted,
        Err(rejection) => return refuse(rejection.status(), rejection.body_text()),
    };
    match blocking(move || switch.explain_in_kernel(keyspace, at)).await {
        Ok(Some(in_kernel)) => Json(in_kernel).into_response(),
        Ok(None) => refuse(StatusCode::CONFLICT, "this switch was not started with --plane xdp"),
        Err(error) => refuse(StatusCode::SERVICE_UNAVAILABLE, error),
    }
}

/// A key, as the switch knows it.
#[derive(Deserialize)]
struct WantedKey {
    keyspace: KeyspaceId,
    keyhash: String,
}

async fn explain_hot(
    State(switch): State<SwitchHandle>,
    wanted: Result<Query<WantedKey>, QueryRejection>,
) -> Response {
    let Query(WantedKey { keyspace, keyhash }) = match wanted {
        Ok(wanted) => wanted,
        Err(rejection) => return refuse(rejection.status(), rejection.body_text()),
    };
    let keyhash = match parse_keyhash(&keyhash) {
        Ok(keyhash) => keyhash,
        Err(why) => return refuse(StatusCode::BAD_REQUEST, why),
    };
    match blocking(move || switch.explain_hot(keyspace, keyhash)).await {
        Ok(hot) => Json(hot).into_response(),
        Err(error) => refuse(StatusCode::SERVICE_UNAVAILABLE, error),
    }
}

async fn explain_cached(
    State(switch): State<SwitchHandle>,
    wanted: Result<Query<WantedKey>, QueryRejection>,
) -> Response {
    let Query(WantedKey { keyspace, keyhash }) = match wanted {
        Ok(wanted) => wanted,
        Err(rejection) => return refuse(rejection.status(), rejection.body_text()),
    };
    match parse_keyhash(&keyhash) {
        Ok(keyhash) => Json(switch.explain_cached(keyspace, keyhash)).into_response(),
        Err(why) => refuse(StatusCode::BAD_REQUEST, why),
    }
}

/// The number of a key hash, as it is written.
fn parse_keyhash(text: &str) -> Result<u64, &'static str> {
    u64::from_str_radix(text, 16).map_err(|_| "a key hash has at most 16 hexadecimal digits")
}

async fn show_status(State(controller): State<ControllerHandle>) -> Response {
    let status: Result<Status, MailError> = blocking(move || controller.status()).await;
    status.map_or_else(unreached, |status| Json(status).into_response())
}

async fn show_map(State(controller): State<ControllerHandle>) -> Response {
    let map: Result<Map, MailError> = blocking(move || controller.map()).await;
    map.map_or_else(unreached, |map| Json(map).into_response())
}

/// A node that is to be made known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewNode {
    /// Its id, which no other node has.
    pub id: u16,
    /// UDP address of its first shard.
    pub listen: SocketAddr,
    /// Its shards, on consecutive ports.
    pub shards: u16,
    /// TCP address of its admin server: where orders reach it.
    pub control: SocketAddr,
}

async fn add_node(
    State(controller): State<ControllerHandle>,
    node: Result<Json<NewNode>, JsonRejection>,
) -> Response {
    let NewNode { id, listen, shards, control } = match node {
        Ok(Json(node)) => node,
        Err(rejection) => return refuse(rejection.status(), rejection.body_text()),
    };
    let node = NodeSpec { id: NodeId(id), endpoint: listen.into(), shards };
    change(controller, Change::AddNode { node, control }).await
}

/// The id in a path.
type NodePath = Result<Path<u16>, PathRejection>;

async fn drain_node(State(controller): State<ControllerHandle>, id: NodePath) -> Response {
    change_node(controller, id, Change::DrainNode).await
}

async fn keep_node(State(controller): State<ControllerHandle>, id: NodePath) -> Response {
    change_node(controller, id, Change::KeepNode).await
}

async fn accept_loss(State(controller): State<ControllerHandle>, id: NodePath) -> Response {
    change_node(controller, id, Change::AcceptLoss).await
}

async fn remove_node(State(controller): State<ControllerHandle>, id: NodePath) -> Response {
    change_node(controller, id, Change::RemoveNode).await
}

async fn pause_copies(State(controller): State<ControllerHandle>) -> Response {
    change(controller, Change::PauseCopies).await
}

async fn resume_copies(State(controller): State<ControllerHandle>) -> Response {
    change(controller, Change::ResumeCopies).await
}

/// Replicas that are to be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verify {
    /// Of this partition; of all if there is none.
    #[serde(default)]
    pub partition: Option<PartitionId>,
    /// Whether what is certainly wrong is to be made right.
    #[serde(default)]
    pub mend: bool,
}

async fn verify(
    State(controller): State<ControllerHandle>,
    wish: Result<Json<Verify>, JsonRejection>,
) -> Response {
    change_as(controller, wish, |Verify { partition, mend }| Change::Verify { partition, mend })
        .await
}

type KeyBody = Result<Json<NamedKey>, JsonRejection>;

async fn pin_key(State(controller): State<ControllerHandle>, name: KeyBody) -> Response {
    change_as(controller, name, Change::PinKey).await
}

async fn unpin_key(State(controller): State<ControllerHandle>, name: KeyBody) -> Response {
    change_as(controller, name, Change::UnpinKey).await
}

/// Carries out the change that a body asks for.
async fn change_as<T>(
    controller: ControllerHandle,
    wish: Result<Json<T>, JsonRejection>,
    make: fn(T) -> Change,
) -> Response {
    match wish {
        Ok(Json(wish)) => change(controller, make(wish)).await,
        Err(rejection) => refuse(rejection.status(), rejection.body_text()),
    }
}

async fn change_node(
    controller: ControllerHandle,
    id: NodePath,
    make: fn(NodeId) -> Change,
) -> Response {
    match id {
        Ok(Path(id)) => change(controller, make(NodeId(id))).await,
        Err(rejection) => refuse(rejection.status(), rejection.body_text()),
    }
}

async fn change(controller: ControllerHandle, change: Change) -> Response {
    let what = What(change.to_string());
    let mut response = carry_out(controller, change).await;
    response.extensions_mut().insert(what);
    response
}

async fn carry_out(controller: ControllerHandle, change: Change) -> Response {
    match blocking(move || controller.change(change)).await {
        Ok(()) => Json(json!({})).into_response(),
        Err(RequestError::Unreached(error)) => unreached(error),
        Err(RequestError::Refused(error)) => {
            let status = match &error {
                CommandError::UnknownNode(_)
                | CommandError::NodeExists(_)
                | CommandError::SharedEndpoint(_)
                | CommandError::NodeInUse { .. }
                | CommandError::NodeInDelegations(_)
                | CommandError::NothingToAccept(_)
                | CommandError::TooFewNodes { .. }
                | CommandError::NoPartition(_)
                | CommandError::Move(..)
                | CommandError::Remake(..)
                | CommandError::UnknownKeyspace(_)
                | CommandError::NoCaches(_)
                | CommandError::HotIsOff(_)
                | CommandError::PinsFull
                | CommandError::PinnedTwin(_)
                | CommandError::NotPinned
                | CommandError::Foreign(_) => StatusCode::CONFLICT,
                CommandError::Replicas { .. }
                | CommandError::KeyTooLong(_)
                | CommandError::Unsound(_) => StatusCode::UNPROCESSABLE_ENTITY,
            };
            refuse(status, error)
        }
    }
}

fn unreached(error: MailError) -> Response {
    if let MailError::StandsBy { leader: Some(leader) } = error {
        let body = json!({ "error": error.to_string(), "leader": leader });
        return (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response();
    }
    refuse(StatusCode::SERVICE_UNAVAILABLE, error)
}

fn refuse(status: StatusCode, error: impl ToString) -> Response {
    let why = error.to_string();
    let mut response = (status, Json(json!({ "error": why }))).into_response();
    response.extensions_mut().insert(Why(why));
    response
}
