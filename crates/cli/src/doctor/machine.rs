//! Checks of the machine as a whole.

use super::finding::Finding;
use std::net::{IpAddr, SocketAddr};

/// What was read of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// `uname -r`.
    pub(crate) release: String,
    /// The most instructions that the verifier went through for one of the programs, or why they
    /// are not loaded.
    pub(crate) loaded: Result<u32, String>,
    /// Whether the kernel makes machine code of programs, if that is known here.
    pub(crate) jit: Option<bool>,
    /// `net.ipv4.ip_forward` of this namespace.
    pub(crate) forward: Option<bool>,
    /// All addresses of this namespace.
    pub(crate) addresses: Vec<IpAddr>,
}

/// The first Linux with tcx links.
const KERNEL_MIN: (u32, u32) = (6, 6);
/// Instructions after which the verifier gives up.
const VERIFIER_MAX: u32 = 1_000_000;

/// All checks.
pub(crate) fn check(machine: &Machine, services: &[SocketAddr]) -> Vec<Finding> {
    vec![
        kernel(&machine.release),
        program(&machine.loaded),
        jit(machine.jit),
        forwarding(machine.forward),
        service(services, &machine.addresses),
    ]
}

fn kernel(release: &str) -> Finding {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|it| it.parse().ok());
    let version = numbers.next().flatten().zip(numbers.next().flatten());
    let (major, minor) = KERNEL_MIN;
    let needs = format!("tcx links, by which MGET and RANGE are split, need {major}.{minor}");
    match version {
        Some(version) if version >= KERNEL_MIN => Finding::ok("kernel", format!("Linux {release}")),
        Some(_) => Finding::problem(
            "kernel",
            format!("Linux {release}: {needs}"),
            "install a newer kernel, or run this switch with --plane user",
        ),
        None => Finding::warning("kernel", format!("Linux {release:?}"), format!("{needs}: see")),
    }
}

fn program(loaded: &Result<u32, String>) -> Finding {
    match loaded {
        Ok(most) => {
            let share = f64::from(*most) * 100.0 / f64::from(VERIFIER_MAX);
            let found =
                format!("the kernel takes it ({most} instructions, {share:.1} % of the limit)");
            Finding::ok("program", found)
        }
        Err(why) => Finding::problem(
            "program",
            why.clone(),
            "sudo keyway doctor; or for good:  \
             sudo setcap cap_bpf,cap_net_admin+ep \"$(command -v keyway)\"",
        ),
    }
}

fn jit(value: Option<bool>) -> Finding {
    const ON: &str = "sudo sysctl -w net.core.bpf_jit_enable=1";
    match value {
        Some(false) => Finding::problem("jit", "off: the kernel interprets BPF programs", ON),
        Some(true) => Finding::ok("jit", "on"),
        None => Finding::warning(
            "jit",
            "unknown: it cannot be read here, and the program is not loaded",
            ON,
        ),
    }
}

fn forwarding(value: Option<bool>) -> Finding {
    const ON: &str = "sudo sysctl -w net.ipv4.ip_forward=1";
    match value {
        Some(true) => Finding::ok("forwarding", "on"),
        Some(false) => Finding::problem(
            "forwarding",
            "off: the kernel forwards nothing, neither for the program nor from node to node",
            ON,
        ),
        None => Finding::warning("forwarding", "net.ipv4.ip_forward cannot be read", ON),
    }
}

/// Of several switches at least one has to be here.
fn service(services: &[SocketAddr], addresses: &[IpAddr]) -> Finding {
    const CHECK: &str = "service address";
    let here = services.iter().find(|it| !it.ip().is_loopback() && addresses.contains(&it.ip()));
    if let Some(here) = here.filter(|it| it.is_ipv4()) {
        return Finding::ok(CHECK, format!("{here} is on this machine"));
    }
    let all: Vec<String> = services.iter().map(ToString::to_string).collect();
    let all = all.join(", ");
    match services.first().map(SocketAddr::ip) {
        Some(ip) if ip.is_ipv6() => Finding::problem(
            CHECK,
            format!("{all}: the program switches IPv4"),
            "give the switch an IPv4 service address",
        ),
        Some(ip) if ip.is_unspecified() => Finding::problem(
            CHECK,
            format!("{all}: the program has to know which address"),
            "give the switch one IPv4 service address",
        ),
        Some(ip) if !ip.is_loopback() => Finding::problem(
            CHECK,
            format!("{all} is not on this machine"),
            format!("sudo ip address add {ip}/32 dev lo"),
        ),
        _ => Finding::warning(
            CHECK,
            format!("{all}: nothing comes to that from other machines"),
            "keyway doctor --service HOST:PORT, as clients have it",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Grade;

    fn machine() -> Machine {
        Machine {
            release: "6.6.0-rc1".into(),
            loaded: Ok(12_345),
            jit: Some(true),
            forward: Some(true),
            addresses: vec!["10.0.0.1".parse().unwrap(), "127.0.0.1".parse().unwrap()],
        }
    }

    fn grades(machine: &Machine, service: &str) -> Vec<(&'static str, Grade)> {
        let findings = check(machine, &[service.parse().unwrap()]);
        for finding in &findings {
            let is_ok = finding.grade == Grade::Ok;
            assert_eq!(finding.remedy.is_none(), is_ok, "what is not well has a remedy");
        }
        let bad = findings.iter().filter(|it| it.grade != Grade::Ok);
        bad.map(|it| (it.check, it.grade)).collect()
    }

    #[test]
    fn a_machine_that_is_well_has_no_problem() {
        assert_eq!(grades(&machine(), "10.0.0.1:7700"), []);
    }

    #[test]
    fn each_ill_is_named() {
        let service = "10.0.0.1:7700";
        for release in ["6.5.13", "5.15.0-91-generic", "6.1"] {
            let old = Machine { release: release.into(), ..machine() };
            assert_eq!(grades(&old, service), [("kernel", Grade::Problem)]);
        }
        for release in ["6.18.44-fc", "7.0", "10.1.2"] {
            assert_eq!(grades(&Machine { release: release.into(), ..machine() }, service), []);
        }
        let odd = Machine { release: "mine".into(), ..machine() };
        assert_eq!(grades(&odd, service), [("kernel", Grade::Warning)]);
        let denied = Machine { loaded: Err("Operation not permitted".into()), ..machine() };
        assert_eq!(grades(&denied, service), [("program", Grade::Problem)]);
        let slow = Machine { jit: Some(false), ..machine() };
        assert_eq!(grades(&slow, service), [("jit", Grade::Problem)]);
        let still = Machine { forward: Some(false), ..machine() };
        assert_eq!(grades(&still, service), [("forwarding", Grade::Problem)]);
        let unseen = Machine { forward: None, jit: None, ..machine() };
        let warned = [("jit", Grade::Warning), ("forwarding", Grade::Warning)];
        assert_eq!(grades(&unseen, service), warned);
    }

    #[test]
    fn the_service_address_is_one_of_this_machine_and_reachable() {
        let bad = |grade| [("service address", grade)];
        assert_eq!(grades(&machine(), "10.0.0.2:7700"), bad(Grade::Problem));
        assert_eq!(grades(&machine(), "0.0.0.0:7700"), bad(Grade::Problem));
        assert_eq!(grades(&machine(), "[fd00::1]:7700"), bad(Grade::Problem));
        assert_eq!(grades(&machine(), "127.0.0.1:7700"), bad(Grade::Warning));
        let both = ["10.0.0.2:7700", "10.0.0.1:7700"].map(|it| it.parse().unwrap());
        assert_eq!(service(&both, &machine().addresses).grade, Grade::Ok);
    }
}
