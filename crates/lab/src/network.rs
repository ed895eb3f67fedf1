//! Namespaces and links. The switch's namespace routes: every host has an address of its own and
//! nothing else on its link, so that the kernel's forwarding and a program in the driver that asks
//! the kernel's routes find the same way. Neighbours are written down, not asked for: nobody
//! answers ARP for the service address when packets never reach the kernel.

use crate::cluster::{addresses_of_a_cache, addresses_of_a_node, content};
use crate::namespace::{self, inside};
use crate::plane::Plane;
use crate::rack::{LabHost, Rack, SERVICE};
use crate::tool::{ip, run};
use anyhow::{Context, Result, anyhow};
use std::fmt::Write as _;
use std::fs;

/// Namespaces of this rack that are there already: somebody else's, or left behind.
pub fn existing(rack: &Rack) -> Vec<String> {
    let names = rack.places().map(|place| rack.namespace(place));
    names.filter(|name| namespace::exists(name)).collect()
}

/// Makes all namespaces and links of the rack.
pub fn build(rack: &Rack, plane: Plane) -> Result<()> {
    let add = rack.places().map(|place| format!("netns add {}\n", rack.namespace(place)));
    ip(&[], &add.collect::<String>())?;
    for place in rack.places() {
        let name = rack.namespace(place);
        // Interfaces that are made later begin with these.
        inside(&name, || set(place, plane)).with_context(|| format!("cannot set up {name}"))?;
    }
    if plane.has_bridge() {
        return link_by_a_bridge(rack);
    }
    let name = rack.namespace(LabHost::Switch);
    let mut links = switch_links(rack);
    if plane.has_content() {
        links.push_str(&switch_links_6(rack));
    }
    inside(&name, || ip(&[], &links)).context("cannot link the rack")?;
    for place in rack.hosts() {
        let name = rack.namespace(place);
        let link = || {
            ip(&[], &host_link(place))?;
            if plane.has_content() {
                ip(&[], &host_link_6(place))?;
            }
            // A packet that is redirected to a veth by a program in the driver is delivered only
            // if the far end polls, which this makes it do.
            run("ethtool", &["-K", "eth0", "gro", "on"], "")
        };
        inside(&name, link).with_context(|| format!("cannot link {name}"))?;
    }
    Ok(())
}

/// Removes these namespaces, and with them the links; those that are not there are passed over.
pub fn remove(names: &[String]) -> Result<()> {
    let there = || names.iter().filter(|name| namespace::exists(name));
    let batch: String = there().map(|name| format!("netns del {name}\n")).collect();
    if batch.is_empty() {
        return Ok(());
    }
    let removed = ip(&["-force"], &batch);
    match there().next() {
        Some(left) => Err(removed.err().unwrap_or_else(|| anyhow!("{left} is still there"))),
        None => Ok(()),
    }
}

/// Whether the switch's kernel is to cut what it sends to these hosts into datagrams itself; else
/// it may leave that to the far end of the link.
pub fn segment(rack: &Rack, hosts: &[LabHost], at_the_port: bool) -> Result<()> {
    let left_to_others = if at_the_port { "off" } else { "on" };
    inside(&rack.namespace(LabHost::Switch), || {
        for place in hosts {
            let port = place.port();
            run("ethtool", &["-K", &port, "tx-udp-segmentation", left_to_others], "")?;
        }
        Ok(())
    })
}

/// Whether the switch's kernel passes packets between hosts.
pub fn forward(rack: &Rack, passes: bool) -> Result<()> {
    let value = if passes { "1" } else { "0" };
    inside(&rack.namespace(LabHost::Switch), || write(FORWARD, value))
}

/// The setting for it.
const FORWARD: &str = "ipv4/ip_forward";

/// The same for IPv6.
const FORWARD_6: &str = "ipv6/conf/all/forwarding";

/// Settings of a namespace's kernel.
fn set(place: LabHost, plane: Plane) -> Result<()> {
    // Packets come with addresses of hosts that another way leads to: those of the chain.
    for scope in ["all", "default"] {
        write(&format!("ipv4/conf/{scope}/rp_filter"), "0")?;
        let path = format!("ipv6/conf/{scope}/disable_ipv6");
        if plane.has_content() {
            // Nobody is asked for other addresses.
            write(&format!("ipv6/conf/{scope}/accept_ra"), "0")?;
        } else if fs::exists(format!("{SETTINGS}/{path}"))? {
            // Nothing here speaks it, and its own messages would be counted among the others.
            write(&path, "1")?;
        }
    }
    if place == LabHost::Switch && plane.has_content() {
        write(FORWARD_6, "1")?;
    }
    match place {
        // This sets it for all ports to come, too.
        LabHost::Switch => write(FORWARD, "1"),
        LabHost::Controller | LabHost::Node(_) | LabHost::Cache(_) | LabHost::Client(_) => Ok(()),
    }
}

/// What lies below is that of the thread that opens it.
const SETTINGS: &str = "/proc/sys/net";

fn write(path: &str, value: &str) -> Result<()> {
    let path = format!("{SETTINGS}/{path}");
    fs::write(&path, value).with_context(|| format!("cannot set {path} to {value}"))
}

/// For `ip -batch` in the switch's namespace.
fn switch_links(rack: &Rack) -> String {
    let mut text = format!("link set lo up\naddress add {SERVICE}/32 dev lo\n");
    for place in rack.hosts() {
        let (port, port_mac, host_mac) = (place.port(), place.port_mac(), place.host_mac());
        let (address, far_end) = (place.address(), rack.namespace(place));
        write!(
            text,
            "link add {port} address {port_mac} type veth \
             peer name eth0 address {host_mac} netns {far_end}\n\
             link set {port} up\n\
             route add {address}/32 dev {port} src {SERVICE}\n\
             neighbour add {address} lladdr {host_mac} dev {port} nud permanent\n"
        )
        .expect("strings take everything");
    }
    text
}

/// For `ip -batch` in the namespace of a host.
fn host_link(place: LabHost) -> String {
    let (address, port_mac) = (place.address(), place.port_mac());
    format!(
        "link set lo up\n\
         address add {address}/32 dev eth0\n\
         link set eth0 up\n\
         neighbour add {SERVICE} lladdr {port_mac} dev eth0 nud permanent\n\
         route add default via {SERVICE} dev eth0 onlink src {address}\n"
    )
}

/// For `ip -batch` in the switch's namespace, where keys have addresses. How those are routed, the
/// switch says when it runs.
fn switch_links_6(rack: &Rack) -> String {
    let service = LabHost::Switch.address6();
    let mut text = format!("address add {service}/128 dev lo nodad\n");
    for place in rack.hosts() {
        let (port, host_mac, address) = (place.port(), place.host_mac(), place.address6());
        write!(
            text,
            "route add {address}/128 dev {port} src {service}\n\
             neighbour add {address} lladdr {host_mac} dev {port} nud permanent\n"
        )
        .expect("strings take everything");
    }
    text
}

/// For `ip -batch` in the namespace of a host, where keys have addresses: a node has all of them, a
/// cache those by which keys are read, so that it can send on what it does not hold.
fn host_link_6(place: LabHost) -> String {
    let (address, port_mac) = (place.address6(), place.port_mac());
    let service = LabHost::Switch.address6();
    let mut text = format!(
        "address add {address}/128 dev eth0 nodad\n\
         neighbour add {service} lladdr {port_mac} dev eth0 nud permanent\n\
         route add default via {service} dev eth0 onlink src {address}\n"
    );
    text.push_str(&own_addresses(place));
    text
}

/// The addresses of keys that a host takes as its own.
fn own_addresses(place: LabHost) -> String {
    match place {
        LabHost::Node(_) => addresses_of_a_node(),
        LabHost::Cache(_) => addresses_of_a_cache(),
        LabHost::Switch | LabHost::Controller | LabHost::Client(_) => String::new(),
    }
}

/// Links all hosts, that of the switch's process among them, by ports that are a bridge's. They
/// find each other as hosts of one segment do; a key's address leads to the switch's host, unless
/// the bridge knows better.
fn link_by_a_bridge(rack: &Rack) -> Result<()> {
    let name = rack.namespace(LabHost::Switch);
    let ports = || {
        ip(&[], &bridge_links(rack))?;
        // They are the bridge's: this kernel is no host behind them.
        let mut ports = rack.places().map(LabHost::port);
        ports.try_for_each(|port| write(&format!("ipv6/conf/{port}/disable_ipv6"), "1"))
    };
    inside(&name, ports).context("cannot link the rack")?;
    for place in rack.places() {
        let name = rack.namespace(place);
        let link = || {
            ip(&[], &segment_link(place))?;
            // The bridge gets packets as they are when they leave, and sums nothing up.
            run("ethtool", &["-K", "eth0", "tx", "off"], "")
        };
        inside(&name, link).with_context(|| format!("cannot link {name}"))?;
    }
    Ok(())
}

/// For `ip -batch` in the switch's namespace, if a bridge is there.
fn bridge_links(rack: &Rack) -> String {
    let mut text = String::new();
    for place in rack.places() {
        let (port, port_mac, host_mac) = (place.port(), place.port_mac(), place.host_mac());
        let far_end = rack.namespace(place);
        write!(
            text,
            "link add {port} address {port_mac} type veth \
             peer name eth0 address {host_mac} netns {far_end}\n\
             link set {port} arp off up\n"
        )
        .expect("strings take everything");
    }
    text
}

/// For `ip -batch` in the namespace of a host that a bridge links to others.
fn segment_link(place: LabHost) -> String {
    let (address, address_6) = (place.address(), place.address6());
    let gateway = LabHost::Switch.address6();
    let mut text = format!(
        "link set lo up\n\
         address add {address}/16 dev eth0\n\
         address add {address_6}/64 dev eth0 nodad\n\
         link set eth0 up\n"
    );
    if place != LabHost::Switch {
        let keys = content().addresses();
        writeln!(text, "route add {keys} via {gateway} dev eth0").expect("strings take all");
    }
    text.push_str(&own_addresses(place));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::ContentClass;

    #[test]
    fn a_cache_has_the_addresses_by_which_keys_are_read_and_no_others() {
        assert_eq!(content().class(ContentClass::Read).to_string(), "fd77:1:0:1000::/52");
        assert_eq!(content().class(ContentClass::Write).to_string(), "fd77:1:0:3000::/52");
        let lines = [LabHost::Node(1), LabHost::Cache(1), LabHost::Client(1)].map(host_link_6);
        let local = lines.map(|it| it.lines().find(|it| it.contains("local")).map(str::to_owned));
        let [node, cache, client] = local;
        assert_eq!(node.as_deref(), Some("route add local fd77:1::/48 dev lo"));
        assert_eq!(cache.as_deref(), Some("route add local fd77:1:0:1000::/52 dev lo"));
        assert_eq!(client, None);
    }
}
