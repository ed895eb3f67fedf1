//! Looking at the machine. Interfaces are asked of the kernel by `ip` and `ethtool`, not read from
//! /sys, which may be that of another network namespace; /proc/sys/net is that of whoever reads it.

use super::content::Owned;
use super::link::{self, Link};
use super::machine::Machine;
use super::port::{Attached, FarEnd, Port};
use anyhow::{Result, anyhow};
use cluster::ContentRouting;
use lab::namespace;
use nix::errno::Errno;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::process::Command;
use wire::ContentClass;
use xdp::Program;

/// All interfaces of this namespace, with their addresses.
pub(crate) fn links() -> Result<Vec<Link>> {
    let json = run("ip", &["-json", "-details", "address", "show"]).map_err(|why| anyhow!(why))?;
    Ok(link::parse(&json)?)
}

/// Loads the switch for an address that nobody has: packets that meet it while it is tried out
/// are passed on untouched.
pub(crate) fn load() -> Result<Program, String> {
    let nobody = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0);
    Program::load(nobody, None).map_err(|why| why.to_string())
}

/// The machine, on which the program was loaded or not.
pub(crate) fn machine(program: &Result<Program, String>, links: &[Link]) -> Machine {
    let most = |program: &Program| {
        program.instructions().into_iter().map(|(_, count)| count).max().unwrap_or(0)
    };
    Machine {
        release: setting("kernel/osrelease").unwrap_or_default(),
        loaded: program.as_ref().map(most).map_err(Clone::clone),
        // Only the first namespace has the setting.
        jit: program
            .as_ref()
            .ok()
            .and_then(Program::is_compiled)
            .or_else(|| setting("net/core/bpf_jit_enable").map(|it| it != "0")),
        forward: setting("net/ipv4/ip_forward").map(|it| it != "0"),
        addresses: links.iter().flat_map(Link::addresses).collect(),
    }
}

/// Which of these addresses are this machine's own.
pub(crate) fn owned(content: &ContentRouting) -> Owned {
    let each = ContentClass::ALL.into_iter().map(|class| {
        let addr = content.prefix.class(class).addr;
        (class, is_own(addr.into()))
    });
    Owned(each.collect())
}

/// Whether the kernel keeps what is sent to this address: an interface has it, or a route says so.
pub(crate) fn is_own(addr: IpAddr) -> Result<bool, String> {
    #[derive(Deserialize)]
    struct Route {
        #[serde(rename = "type")]
        kind: Option<String>,
    }
    let json = match run("ip", &["-json", "-details", "route", "get", &addr.to_string()]) {
        Ok(json) => json,
        Err(why) if why.contains("unreachable") => return Ok(false),
        Err(why) => return Err(why),
    };
    let routes: Vec<Route> = serde_json::from_str(&json).map_err(|why| format!("ip: {why}"))?;
    Ok(routes.iter().any(|it| it.kind.as_deref() == Some("local")))
}

/// What calls itself a driver of this interface.
pub(crate) fn driver(name: &str) -> Option<String> {
    let text = run("ethtool", &["-i", name]).ok()?;
    let driver = text.lines().find_map(|line| line.strip_prefix("driver: "))?;
    Some(driver.trim().to_owned())
}

/// One interface; tries the program out on it unless another one is there.
pub(crate) fn port(link: &Link, program: Option<&Program>) -> Port {
    let name = &link.name;
    let number = |path: &str| setting(path).and_then(|it| it.parse::<u32>().ok());
    let of = |name: &str, what: &str| number(&format!("net/ipv4/conf/{name}/{what}"));
    Port {
        driver: driver(name),
        features: features(name),
        forward: of(name, "forwarding").map(|it| it != 0),
        rp_filter: of(name, "rp_filter").max(of("all", "rp_filter")),
        attached: attach(link, program),
        far_end: far_end(link),
        link: link.clone(),
    }
}

fn attach(link: &Link, program: Option<&Program>) -> Attached {
    if let Some(xdp) = &link.xdp {
        return Attached::Taken(xdp.id().and_then(owner));
    }
    let Some(program) = program else { return Attached::Untried };
    let errno = |tried: io::Result<()>| {
        tried.map_err(|why| why.raw_os_error().map_or(Errno::UnknownErrno, Errno::from_raw))
    };
    let (native, tc) = (program.try_native(link.index), program.try_tc(link.index));
    Attached::Tried(errno(native), errno(tc))
}

/// The process that holds a program of this number, or a link with it.
fn owner(id: u32) -> Option<String> {
    let line = format!("prog_id:\t{id}");
    let pids = fs::read_dir("/proc")
        .ok()?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    for pid in pids {
        let Ok(files) = fs::read_dir(format!("/proc/{pid}/fdinfo")) else { continue };
        let texts = files.flatten().filter_map(|file| fs::read_to_string(file.path()).ok());
        if texts.into_iter().any(|text| text.lines().any(|it| it == line)) {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            return Some(format!("{} (process {pid})", name.trim()));
        }
    }
    None
}

fn far_end(link: &Link) -> FarEnd {
    if link.kind() != Some("veth") {
        return FarEnd::Wire;
    }
    let polls = |name: &str, xdp: bool| {
        let gro = features(name).map(|all| all.get("generic-receive-offload") == Some(&true));
        xdp || gro.unwrap_or(false)
    };
    if let Some(name) = &link.link {
        let xdp =
            links().is_ok_and(|all| all.iter().any(|it| it.name == *name && it.xdp.is_some()));
        return FarEnd::Veth { name: name.clone(), namespace: None, polls: polls(name, xdp) };
    }
    let (Some(index), Some(id)) = (link.link_index, link.link_netnsid) else {
        return FarEnd::Hidden;
    };
    let Some(namespace) = namespace_name(id) else { return FarEnd::Hidden };
    let seen = namespace::inside(&namespace, || {
        let there = links()?.into_iter().find(|it| it.index == index);
        let there = there.ok_or_else(|| anyhow!("no interface {index}"))?;
        let polls = polls(&there.name, there.xdp.is_some());
        Ok((there.name, polls))
    });
    match seen {
        Ok((name, polls)) => FarEnd::Veth { name, namespace: Some(namespace), polls },
        Err(_) => FarEnd::Hidden,
    }
}

/// The name of the namespace that has this number here.
fn namespace_name(id: i64) -> Option<String> {
    #[derive(Deserialize)]
    struct Namespace {
        nsid: i64,
        name: Option<String>,
    }
    let json = run("ip", &["-json", "netns", "list-id"]).ok()?;
    let all: Vec<Namespace> = serde_json::from_str(&json).ok()?;
    all.into_iter().find(|it| it.nsid == id)?.name
}

fn features(name: &str) -> Result<BTreeMap<String, bool>, String> {
    let json = run("ethtool", &["--json", "-k", name])?;
    link::parse_features(&json).map_err(|why| format!("ethtool -k {name}: {why}"))
}

fn setting(path: &str) -> Option<String> {
    let text = fs::read_to_string(Path::new("/proc/sys").join(path)).ok()?;
    Some(text.trim().to_owned())
}

/// What a program prints, or why it does not.
fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output();
    let output = output.map_err(|why| match why.kind() {
        io::ErrorKind::NotFound => {
            format!("there is no {program}: sudo apt-get install iproute2 ethtool")
        }
        _ => format!("cannot run {program}: {why}"),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
