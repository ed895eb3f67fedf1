//! The etcd of several controllers: which of its members leads, and having another one do so.

use crate::cluster::Cluster;
use crate::takeover::SITES;
use lab::redundant::etcd::member;
use serde::Deserialize;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Whether there is such a program.
pub(crate) fn is_there() -> bool {
    let version = Command::new("etcd").arg("--version").stdout(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

/// How a member sees it: numbers as text.
#[derive(Deserialize)]
struct Status {
    header: Header,
    leader: String,
}

#[derive(Deserialize)]
struct Header {
    member_id: String,
}

fn ask(at: SocketAddr, path: &str, body: &Value) -> Result<Value, ureq::Error> {
    let request = ureq::post(format!("http://{at}/v3/maintenance/{path}"));
    let request = request.config().timeout_global(Some(Duration::from_secs(1))).build();
    request.send_json(body)?.body_mut().read_json()
}

fn status(at: SocketAddr) -> Option<Status> {
    serde_json::from_value(ask(at, "status", &json!({})).ok()?).ok()
}

/// Has the member on this site lead the others.
pub(crate) fn lead(cluster: &Cluster, site: u8) {
    let members: Vec<SocketAddr> = (0..SITES).map(|it| member(cluster.hosts(), it)).collect();
    let wanted = members[usize::from(site)];
    let try_it = move || -> Result<(), String> {
        let now = status(wanted).ok_or("a member of etcd does not answer")?;
        if now.leader == now.header.member_id {
            return Ok(());
        }
        let leads = |it: &Status| it.leader == it.header.member_id;
        let leader = members.iter().find(|at| status(**at).is_some_and(|it| leads(&it)));
        let leader = *leader.ok_or("no member of etcd leads")?;
        let body = json!({ "targetID": now.header.member_id });
        ask(leader, "transfer-leadership", &body).map_err(|why| why.to_string())?;
        Err("it has just been asked for".into())
    };
    let become_so = || cluster.at_the_desk(try_it.clone());
    let led = cluster.watch.wait_for(LEAD_WAIT_MAX, become_so);
    led.unwrap_or_else(|why| panic!("the etcd of site {site} does not lead: {why}"));
}

/// How long etcd may take for that: it does so within some 10 ms, once all members are there.
const LEAD_WAIT_MAX: Duration = Duration::from_secs(20);
