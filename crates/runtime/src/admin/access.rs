//! Who may ask what: one table of all that an admin server answers, and the layer that goes by it.

use super::refusals::{Refusals, Refused};
use super::refuse;
use crate::identity::{Peer, Role};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::Arc;

/// Something that may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// By which method.
    pub method: &'static str,
    /// Where, as the router writes it.
    pub path: &'static str,
    /// By whom.
    pub access: Access,
}

/// Who may ask something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A controller: to order, and to hear what those say that have been ordered.
    Orders,
    /// A controller, and people: what members know.
    Members,
    /// A controller, people, and those who read and write keys: how the cluster stands.
    Reading,
    /// People who run the cluster.
    Changes,
    /// Those who read and write keys.
    Passes,
    /// Everybody who belongs to the cluster, and everybody on this machine: figures.
    Figures,
}

impl Access {
    /// Whether somebody of this role may ask.
    #[must_use]
    pub fn is_for(self, role: Role) -> bool {
        match self {
            Self::Orders => role == Role::Controller,
            Self::Members => matches!(role, Role::Controller | Role::Admin),
            Self::Reading => {
                matches!(role, Role::Controller | Role::Admin | Role::Gateway | Role::Client)
            }
            Self::Changes => role == Role::Admin,
            Self::Passes => matches!(role, Role::Admin | Role::Gateway | Role::Client),
            Self::Figures => true,
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Orders => "a controller",
            Self::Members => "a controller or an admin",
            Self::Reading => "a controller, an admin, a gateway or a client",
            Self::Changes => "an admin",
            Self::Passes => "an admin, a gateway or a client",
            Self::Figures => "anybody of the cluster",
        }
    }
}

const fn get(path: &'static str, access: Access) -> Route {
    Route { method: "GET", path, access }
}

const fn post(path: &'static str) -> Route {
    Route { method: "POST", path, access: Access::Changes }
}

/// All that is answered, whatever role it is that answers. What is not here is refused.
pub const ROUTES: [Route; 30] = [
    get("/metrics", Access::Figures),
    get("/healthz", Access::Figures),
    get("/readyz", Access::Figures),
    Route { method: "PUT", path: "/v1/order", access: Access::Orders },
    get("/v1/alerts", Access::Orders),
    get("/v1/record", Access::Members),
    get("/v1/explain", Access::Members),
    get("/v1/explain/hot", Access::Members),
    get("/v1/explain/cached", Access::Members),
    get("/v1/status", Access::Reading),
    get("/v1/map", Access::Reading),
    get("/v1/audit", Access::Members),
    Route { method: "POST", path: "/v1/pass", access: Access::Passes },
    post("/v1/keyspaces"),
    post("/v1/keyspaces/alter"),
    post("/v1/nodes"),
    post("/v1/nodes/{id}/drain"),
    post("/v1/nodes/{id}/accept-loss"),
    post("/v1/nodes/{id}/keep"),
    Route { method: "DELETE", path: "/v1/nodes/{id}", access: Access::Changes },
    post("/v1/hot/pin"),
    post("/v1/hot/unpin"),
    post("/v1/verify"),
    post("/v1/copies/pause"),
    post("/v1/copies/resume"),
    post("/v1/placement/pause"),
    post("/v1/placement/resume"),
    post("/v1/placement/move"),
    post("/v1/placement/split"),
    post("/v1/placement/merge"),
];

/// What the layer goes by.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// Whether certificates are asked for.
    pub(super) certificates: bool,
    pub(super) refusals: Arc<Refusals>,
}

/// Lets those through who may ask.
pub(super) async fn check(State(rules): State<Rules>, request: Request, next: Next) -> Response {
    let matched = request.extensions().get::<MatchedPath>();
    let access = match matched.map(|path| find(request.method(), path.as_str())) {
        Some(Some(route)) => route.access,
        Some(None) => {
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "this is not asked by that method");
        }
        // There is no such page, which is no secret among members.
        None => Access::Figures,
    };
    if !rules.certificates {
        return next.run(request).await;
    }
    let Some(peer) = request.extensions().get::<Peer>() else {
        return refuse(StatusCode::UNAUTHORIZED, "nobody knows who asks");
    };
    match peer.role() {
        Some(role) if access.is_for(role) => next.run(request).await,
        None if access == Access::Figures && peer.is_local() => next.run(request).await,
        Some(_) => {
            rules.refusals.note(Refused::Role);
            let needed = access.in_words();
            let why = format!("{peer} may not ask this: it is for {needed}");
            refuse(StatusCode::FORBIDDEN, why)
        }
        None => {
            rules.refusals.note(Refused::Anonymous);
            let why = "show a certificate of the cluster: --certs DIR (or KEYWAY_CERTS) for \
                       commands, see keyway certs --help";
            refuse(StatusCode::UNAUTHORIZED, why)
        }
    }
}

/// Whether this is a page of figures.
pub(super) fn is_figure(path: &str) -> bool {
    ROUTES.iter().any(|route| route.path == path && route.access == Access::Figures)
}

fn find(method: &Method, path: &str) -> Option<&'static Route> {
    let method = if method == Method::HEAD { &Method::GET } else { method };
    ROUTES.iter().find(|route| route.path == path && route.method == method.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_controller_orders_and_only_an_admin_changes() {
        for role in Role::ALL {
            assert_eq!(Access::Orders.is_for(role), role == Role::Controller, "{role}");
            assert_eq!(Access::Changes.is_for(role), role == Role::Admin, "{role}");
            assert!(Access::Figures.is_for(role));
            let member = matches!(role, Role::Node | Role::Switch | Role::Cache);
            assert!(!(member && Access::Reading.is_for(role)), "{role}");
            assert!(!Access::Members.is_for(role) || Access::Reading.is_for(role));
        }
        let changes = ROUTES.iter().filter(|route| !matches!(route.method, "GET" | "HEAD"));
        for route in changes {
            let access = [Access::Changes, Access::Orders, Access::Passes];
            assert!(access.contains(&route.access), "{route:?}");
        }
    }

    #[test]
    fn a_route_is_found_by_its_method_and_no_other() {
        assert!(find(&Method::HEAD, "/v1/status").is_some());
        assert!(find(&Method::GET, "/v1/order").is_none());
        assert!(find(&Method::POST, "/v1/status").is_none());
        assert!(find(&Method::GET, "/nonsense").is_none());
        assert!(is_figure("/metrics") && !is_figure("/v1/status") && !is_figure("/nonsense"));
    }
}
