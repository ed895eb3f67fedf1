//! What pages of other sites have a browser send is not taken for what people ask.
//!
//! A browser on a machine that reaches an admin server sends it what any page tells it to. Where
//! certificates are asked for it has none; where the control plane is open this layer is all that
//! keeps such pages from changing a cluster. By the `Host` it also recognises pages whose own name
//! was made to lead here. Figures are for everybody, under whatever name.

use super::refusals::{Refusals, Refused};
use super::{access, refuse};
use crate::identity::Peer;
use axum::extract::{Request, State};
use axum::http::header::{
    CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, ORIGIN, TRANSFER_ENCODING,
};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses what another site has sent.
pub(super) async fn check(
    State(refusals): State<Arc<Refusals>>,
    request: Request,
    next: Next,
) -> Response {
    let (method, headers) = (request.method(), request.headers());
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    let peer = request.extensions().get::<Peer>();
    let is_known = peer.is_some_and(|peer| peer.identity.is_some());
    // Scrapers and load balancers ask by whatever name, and no browser shows a certificate.
    if is_read && (is_known || access::is_figure(request.uri().path())) {
        return next.run(request).await;
    }
    match judge(method, headers) {
        Ok(()) => next.run(request).await,
        Err((status, why)) => {
            refusals.note(Refused::Origin);
            refuse(status, why)
        }
    }
}

fn judge(method: &Method, headers: &HeaderMap) -> Result<(), (StatusCode, &'static str)> {
    let forbidden = |why| Err((StatusCode::FORBIDDEN, why));
    let text = |name: &HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(&HOST);
    if host.is_some_and(|host| !is_address(host)) {
        return forbidden("ask by address: Host is neither an address nor localhost");
    }
    if matches!(*method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    if let Some(origin) = text(&ORIGIN)
        && !is_own(origin, host)
    {
        return forbidden("the page of another site may change nothing here (Origin)");
    }
    if text(&SEC_FETCH_SITE).is_some_and(|site| matches!(site, "cross-site" | "same-site")) {
        return forbidden("the page of another site may change nothing here (Sec-Fetch-Site)");
    }
    let has_body = headers.contains_key(TRANSFER_ENCODING)
        || text(&CONTENT_LENGTH).is_some_and(|length| length != "0");
    let kind = text(&CONTENT_TYPE);
    if !kind.map_or(!has_body, is_json) {
        let why = "what changes something is sent as content-type: application/json";
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    Ok(())
}

fn is_json(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

/// Whether an origin is that of the server itself, under this name.
fn is_own(origin: &str, host: Option<&str>) -> bool {
    let place = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    place.is_some_and(|place| Some(place) == host)
}

/// Whether a host is written as an address, or is this machine; a port may follow.
fn is_address(host: &str) -> bool {
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, port)) = rest.split_once(']') else { return false };
        return address.parse::<Ipv6Addr>().is_ok()
            && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    let (name, port) = host.split_once(':').map_or((host, None), |(name, it)| (name, Some(it)));
    port.is_none_or(is_port)
        && (name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok())
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(method: Method, headers: &[(&'static str, &'static str)]) -> Option<u16> {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), value.parse().expect("a value")));
        judge(&method, &headers.collect()).err().map(|(status, _)| status.as_u16())
    }

    #[test]
    fn a_host_is_an_address_or_this_machine() {
        for good in
            ["127.0.0.1", "127.0.0.1:7780", "[::1]:7780", "[::1]", "localhost:1", "10.0.0.1"]
        {
            assert!(is_address(good), "{good}");
        }
        for bad in
            ["evil.example", "evil.example:7780", "127.0.0.1.evil.example", "localhost.a", ""]
        {
            assert!(!is_address(bad), "{bad}");
        }
        for bad in ["[::1", "[::1]x", "[evil]:1", "127.0.0.1:x", "::1"] {
            assert!(!is_address(bad), "{bad}");
        }
        assert_eq!(verdict(Method::GET, &[("host", "evil.example")]), Some(403));
    }

    #[test]
    fn what_other_sites_send_changes_nothing() {
        let own = ("host", "127.0.0.1:7780");
        let json = ("content-type", "application/json; charset=utf-8");
        let body = ("content-length", "2");
        let post = |headers: &[_]| verdict(Method::POST, &[&[own], headers].concat());
        assert_eq!(post(&[]), None);
        assert_eq!(post(&[json, body]), None);
        assert_eq!(post(&[json, body, ("origin", "http://127.0.0.1:7780")]), None);
        assert_eq!(post(&[("sec-fetch-site", "same-origin")]), None);
        assert_eq!(post(&[("origin", "https://evil.example")]), Some(403));
        assert_eq!(post(&[("origin", "null")]), Some(403));
        assert_eq!(post(&[("origin", "http://127.0.0.1:8080")]), Some(403));
        assert_eq!(post(&[("sec-fetch-site", "cross-site")]), Some(403));
        assert_eq!(post(&[("sec-fetch-site", "same-site")]), Some(403));
        assert_eq!(post(&[body]), Some(415));
        assert_eq!(post(&[body, ("content-type", "text/plain")]), Some(415));
        // A form that says nothing has a type all the same.
        assert_eq!(post(&[("content-type", "application/x-www-form-urlencoded")]), Some(415));
        assert_eq!(post(&[("transfer-encoding", "chunked")]), Some(415));
        for method in [Method::PUT, Method::DELETE, Method::PATCH] {
            assert_eq!(verdict(method, &[own, ("origin", "http://evil.example")]), Some(403));
        }
        assert_eq!(verdict(Method::GET, &[own, ("origin", "http://evil.example")]), None);
    }
}
