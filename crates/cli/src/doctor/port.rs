//! Checks of one interface.

use super::finding::Finding;
use super::link::Link;
use nix::errno::Errno;
use std::collections::BTreeMap;

/// What was read of an interface.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) link: Link,
    /// What `ethtool -i` calls its driver.
    pub(crate) driver: Option<String>,
    /// Which offloads are on, or why that is not known.
    pub(crate) features: Result<BTreeMap<String, bool>, String>,
    /// `net.ipv4.conf.NAME.forwarding`.
    pub(crate) forward: Option<bool>,
    /// What `rp_filter` comes to: the higher of its own and that of all.
    pub(crate) rp_filter: Option<u32>,
    /// Whether the programs could be attached.
    pub(crate) attached: Attached,
    /// What a veth leads to.
    pub(crate) far_end: FarEnd,
}

/// What came of attaching the programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Attached {
    /// It was not tried, because the program is not loaded.
    Untried,
    /// Another XDP program is there; its owner, if one was found.
    Taken(Option<String>),
    /// The outcome in the driver, and that at tc.
    Tried(Result<(), Errno>, Result<(), Errno>),
}

/// What is at the other end of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FarEnd {
    /// A wire.
    Wire,
    /// A veth that cannot be looked at.
    Hidden,
    /// A veth.
    Veth {
        name: String,
        /// Its namespace, if it is another one.
        namespace: Option<String>,
        /// Whether it takes redirected packets: it polls, for GRO or for a program of its own.
        polls: bool,
    },
}

/// Headers of IPv4 and UDP.
const HEADERS: u32 = 28;
/// Whole datagrams.
#[expect(clippy::cast_possible_truncation, reason = "a datagram is no longer than a packet")]
const MTU_MIN: u32 = wire::PACKET_MAX as u32 + HEADERS;

/// All checks.
pub(crate) fn check(port: &Port) -> Vec<Finding> {
    let link = &port.link;
    let mut findings = vec![state(link), driver(port), mtu(link)];
    findings.extend(master(link));
    findings.push(forwarding(link, port.forward));
    findings.extend(reverse_path(link, port.rp_filter));
    findings.extend(attachment(port));
    findings.extend(offloads(link, &port.features));
    findings.extend(far_end(&port.far_end));
    findings
}

fn state(link: &Link) -> Finding {
    let name = &link.name;
    if !link.is("UP") {
        return Finding::problem("link", "down", format!("sudo ip link set dev {name} up"));
    }
    if !link.is("LOWER_UP") {
        let todo = "set the other end up, or plug the cable in";
        return Finding::problem("link", "up, without a carrier", todo);
    }
    Finding::ok("link", "up")
}

fn driver(port: &Port) -> Finding {
    match port.driver.as_deref().or(port.link.kind()) {
        Some(driver) => Finding::ok("driver", driver),
        None => Finding::warning(
            "driver",
            "unknown",
            "sudo apt-get install ethtool iproute2, and again",
        ),
    }
}

fn mtu(link: &Link) -> Finding {
    let Link { name, mtu, .. } = link;
    if *mtu < MTU_MIN {
        return Finding::problem(
            "mtu",
            format!("{mtu}: full datagrams need {MTU_MIN}"),
            format!("sudo ip link set dev {name} mtu {MTU_MIN}"),
        );
    }
    Finding::ok("mtu", mtu.to_string())
}

/// Routes lead to a bridge or bond, which is not the interface that the program is attached to.
fn master(link: &Link) -> Option<Finding> {
    let (name, master) = (&link.name, link.master.as_ref()?);
    Some(Finding::problem(
        "routing",
        format!(
            "it belongs to {master}: the kernel's routes lead to that, so whatever goes out here \
             is left to the switch's socket"
        ),
        format!("sudo ip link set dev {name} nomaster, and give {name} an address and routes"),
    ))
}

fn forwarding(link: &Link, value: Option<bool>) -> Finding {
    let on = format!("sudo sysctl -w net/ipv4/conf/{}/forwarding=1", link.name);
    match value {
        Some(true) => Finding::ok("forwarding", "on"),
        Some(false) => {
            Finding::problem("forwarding", "off: the program is told no way from here", on)
        }
        None => Finding::warning("forwarding", "it has no IPv4 settings that can be read", on),
    }
}

fn reverse_path(link: &Link, value: Option<u32>) -> Option<Finding> {
    const STRICT: u32 = 1;
    (value == Some(STRICT)).then(|| {
        Finding::warning(
            "rp_filter",
            "strict: what nodes send each other, and what is left to the socket, is dropped if \
             the way back is another one",
            format!("sudo sysctl -w net/ipv4/conf/{}/rp_filter=2", link.name),
        )
    })
}

fn attachment(port: &Port) -> Vec<Finding> {
    match &port.attached {
        Attached::Untried => vec![Finding::warning(
            "native xdp",
            "not tried: the program is not loaded",
            "sudo keyway doctor",
        )],
        Attached::Taken(owner) => vec![taken(&port.link, owner.as_deref())],
        Attached::Tried(native, tc) => {
            let mut findings = vec![native_xdp(port, *native)];
            findings.extend(tc.err().map(|errno| {
                let why = format!("the tc program is not attached: {}", errno.desc());
                Finding::problem("tc", why, "install Linux 6.6 or newer, for tcx links")
            }));
            findings
        }
    }
}

/// Somebody's program is there.
fn taken(link: &Link, owner: Option<&str>) -> Finding {
    const CHECK: &str = "native xdp";
    let (name, xdp) = (&link.name, link.xdp.as_ref());
    let by = owner.map_or_else(
        || "held by no process that can be seen".to_owned(),
        |it| format!("held by {it}"),
    );
    let id = xdp.and_then(|it| it.id()).map_or_else(|| "?".to_owned(), |id| id.to_string());
    let is_native = xdp.is_some_and(|it| it.is_native());
    let program = xdp.map_or("", |it| it.name());
    let (mode, what) = (if is_native { "in the driver" } else { "generic" }, program);
    if program == KEYWAY {
        let found = format!("a Keyway switch is attached, {mode} ({by})");
        if is_native {
            return Finding::ok(CHECK, found);
        }
        let todo = "end that switch, and let keyway doctor see whether the driver can do it";
        return Finding::warning(CHECK, found, todo);
    }
    let todo = match owner {
        Some(owner) => format!("end {owner}; if it stays:  sudo ip link set dev {name} xdp off"),
        None => format!("sudo ip link set dev {name} xdp off"),
    };
    Finding::problem(CHECK, format!("the program {what:?} (id {id}) is there, {by}"), todo)
}

/// What the switch's program is called in the kernel.
const KEYWAY: &str = "keyway_one";

fn native_xdp(port: &Port, tried: Result<(), Errno>) -> Finding {
    const CHECK: &str = "native xdp";
    let Link { name, mtu, .. } = &port.link;
    let Err(errno) = tried else { return Finding::ok(CHECK, "the driver runs the program") };
    let driver = port.driver.as_deref().or(port.link.kind()).unwrap_or("its driver");
    let why = errno.desc();
    let (why, todo) = match errno {
        Errno::EOPNOTSUPP => (
            format!("{driver} has none: generic XDP works, and loses most of the gain"),
            "use an interface whose driver has it".to_owned(),
        ),
        Errno::ERANGE | Errno::EMSGSIZE => (
            format!("packets may be too long for {driver} to run it (MTU {mtu}): generic remains"),
            format!("sudo ip link set dev {name} mtu {MTU_MIN}, and at a veth's other end"),
        ),
        Errno::EINVAL => (
            format!(
                "{driver} refuses the program with these settings (MTU {mtu}): generic remains"
            ),
            format!(
                "sudo ip link set dev {name} mtu {MTU_MIN}; sudo ethtool -K {name} lro off; \
                 dmesg | tail says more"
            ),
        ),
        Errno::ENOMEM | Errno::ENOSPC => (
            format!("{driver} has no queues left for it ({why}): generic remains"),
            format!("sudo ethtool -L {name} combined N, with half of the present N"),
        ),
        Errno::EPERM => {
            let todo = "sudo keyway doctor --ports ...";
            return Finding::problem(CHECK, why, todo);
        }
        _ => (
            format!("{driver} refuses the program ({why}): generic remains"),
            "dmesg | tail says why".to_owned(),
        ),
    };
    Finding::warning(CHECK, why, todo)
}

/// Offloads that make one packet of several, or of which drivers say that they are against XDP.
fn offloads(link: &Link, features: &Result<BTreeMap<String, bool>, String>) -> Vec<Finding> {
    const CHECK: &str = "offloads";
    let features = match features {
        Ok(features) => features,
        Err(why) => {
            let todo = "sudo apt-get install ethtool, and again";
            return vec![Finding::warning(CHECK, why, todo)];
        }
    };
    let is_on = |name: &str| features.get(name).copied().unwrap_or(false);
    let bad = [
        ("large-receive-offload", "lro", "drivers with it on refuse XDP"),
        ("rx-udp-gro-forwarding", "rx-udp-gro-forwarding", "datagrams are joined before tc"),
        ("rx-gro-list", "rx-gro-list", "datagrams are joined before tc"),
    ];
    let found = bad.iter().filter(|(long, ..)| is_on(long)).map(|(long, short, why)| {
        let todo = format!("sudo ethtool -K {} {short} off", link.name);
        Finding::warning(CHECK, format!("{long} is on: {why}"), todo)
    });
    let found: Vec<Finding> = found.collect();
    let well = || {
        let gro = if is_on("generic-receive-offload") { "on" } else { "off" };
        vec![Finding::ok(CHECK, format!("none that joins datagrams (gro {gro}: either will do)"))]
    };
    if found.is_empty() { well() } else { found }
}

/// A veth takes redirected packets only if it polls; otherwise they vanish without being counted
/// anywhere but in a tracepoint.
fn far_end(far_end: &FarEnd) -> Option<Finding> {
    const CHECK: &str = "other end";
    match far_end {
        FarEnd::Wire => None,
        FarEnd::Hidden => Some(Finding::warning(
            CHECK,
            "a veth in a namespace without a name: if it has neither GRO nor an XDP program, what \
             is sent to it vanishes",
            "there:  ethtool -K NAME gro on",
        )),
        FarEnd::Veth { name, namespace, polls } => {
            let place = namespace.as_ref().map_or_else(String::new, |it| format!(" in {it}"));
            if *polls {
                return Some(Finding::ok(CHECK, format!("{name}{place} takes redirected packets")));
            }
            let inside = namespace.as_ref().map(|it| format!("ip netns exec {it} "));
            let inside = inside.unwrap_or_default();
            Some(Finding::problem(
                CHECK,
                format!("{name}{place} does not poll: whatever the program sends there vanishes"),
                format!("sudo {inside}ethtool -K {name} gro on"),
            ))
        }
    }
}

#[cfg(test)]
mod tests;
