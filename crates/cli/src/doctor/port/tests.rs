//! Interfaces that nobody has.

use super::*;
use crate::doctor::finding::Grade;
use crate::doctor::link;

/// The interface `pa` that all tests of this program begin with, without its program.
fn port() -> Port {
    let links = link::parse(link::tests::LINKS).unwrap();
    let mut pa = links.into_iter().find(|link| link.name == "pa").unwrap();
    pa.xdp = None;
    Port {
        link: pa,
        driver: Some("veth".into()),
        features: Ok([("generic-receive-offload".to_owned(), true)].into()),
        forward: Some(true),
        rp_filter: Some(0),
        attached: Attached::Tried(Ok(()), Ok(())),
        far_end: FarEnd::Wire,
    }
}

/// What is not well, with what is to be done.
fn ills(port: &Port) -> Vec<(&'static str, Grade, String)> {
    let bad = check(port).into_iter().filter(|it| it.grade != Grade::Ok);
    bad.map(|it| (it.check, it.grade, it.remedy.expect("an ill has a remedy"))).collect()
}

/// That there is one ill, and that its remedy has these words in it.
fn has(port: &Port, check: &str, grade: Grade, words: &str) {
    let ills = ills(port);
    let [(found, how_bad, remedy)] = &ills[..] else { panic!("{ills:?}") };
    assert_eq!((*found, *how_bad), (check, grade));
    assert!(remedy.contains(words), "{remedy}");
}

fn with_link(change: impl FnOnce(&mut Link)) -> Port {
    let mut port = port();
    change(&mut port.link);
    port
}

#[test]
fn an_interface_that_is_well_has_no_ill() {
    assert_eq!(ills(&port()), []);
    assert!(check(&port()).iter().all(|it| it.remedy.is_none()));
}

#[test]
fn a_link_is_up_and_wide_enough() {
    let down = with_link(|link| link.flags.clear());
    has(&down, "link", Grade::Problem, "ip link set dev pa up");
    let unplugged = with_link(|link| link.flags.retain(|flag| flag != "LOWER_UP"));
    has(&unplugged, "link", Grade::Problem, "other end");
    has(&with_link(|link| link.mtu = 1499), "mtu", Grade::Problem, "mtu 1500");
    assert_eq!(ills(&with_link(|link| link.mtu = 9_000)), []);
}

#[test]
fn ports_are_routed_and_not_bridged() {
    let bridged = with_link(|link| link.master = Some("br0".into()));
    has(&bridged, "routing", Grade::Problem, "ip link set dev pa nomaster");
    let still = Port { forward: Some(false), ..port() };
    has(&still, "forwarding", Grade::Problem, "net/ipv4/conf/pa/forwarding=1");
    has(&Port { forward: None, ..port() }, "forwarding", Grade::Warning, "forwarding=1");
    has(&Port { rp_filter: Some(1), ..port() }, "rp_filter", Grade::Warning, "rp_filter=2");
    assert_eq!(ills(&Port { rp_filter: Some(2), ..port() }), []);
}

#[test]
fn whoever_holds_the_interface_is_named() {
    let links = link::parse(link::tests::LINKS).unwrap();
    let ours = links.iter().find(|link| link.xdp.is_some()).unwrap().xdp.clone();
    let taken = |xdp, owner: Option<&str>| {
        let attached = Attached::Taken(owner.map(str::to_owned));
        Port { attached, ..with_link(|link| link.xdp = xdp) }
    };
    assert_eq!(ills(&taken(ours, Some("keyway (process 7)"))), []);
    let xdp = |mode: u32, name: &str| {
        serde_json::from_value(serde_json::json!(
            { "mode": mode, "prog": { "id": 9, "name": name } }
        ))
    };
    let generic = taken(xdp(2, "keyway_one").unwrap(), Some("keyway (process 7)"));
    has(&generic, "native xdp", Grade::Warning, "end that switch");
    let other = taken(xdp(1, "firewall").unwrap(), Some("cilium (process 8)"));
    has(&other, "native xdp", Grade::Problem, "end cilium (process 8)");
    let found = check(&other).into_iter().find(|it| it.check == "native xdp").unwrap().found;
    assert!(found.contains("firewall") && found.contains("id 9"), "{found}");
    let left_behind = taken(xdp(1, "firewall").unwrap(), None);
    has(&left_behind, "native xdp", Grade::Problem, "ip link set dev pa xdp off");
}

#[test]
fn what_the_kernel_says_to_the_program_is_translated() {
    let tried = |native, tc| Port { attached: Attached::Tried(native, tc), ..port() };
    for (errno, grade, words) in [
        (Errno::EOPNOTSUPP, Grade::Warning, "whose driver has it"),
        (Errno::ERANGE, Grade::Warning, "mtu 1500"),
        (Errno::EINVAL, Grade::Warning, "ethtool -K pa lro off"),
        (Errno::ENOMEM, Grade::Warning, "ethtool -L pa combined"),
        (Errno::EPERM, Grade::Problem, "sudo keyway doctor"),
        (Errno::EIO, Grade::Warning, "dmesg"),
    ] {
        has(&tried(Err(errno), Ok(())), "native xdp", grade, words);
    }
    has(&tried(Ok(()), Err(Errno::EINVAL)), "tc", Grade::Problem, "6.6");
    let untried = Port { attached: Attached::Untried, ..port() };
    has(&untried, "native xdp", Grade::Warning, "sudo keyway doctor");
}

#[test]
fn offloads_that_join_datagrams_are_to_be_switched_off() {
    let with = |name: &str| Port { features: Ok([(name.to_owned(), true)].into()), ..port() };
    has(&with("large-receive-offload"), "offloads", Grade::Warning, "-K pa lro off");
    has(&with("rx-gro-list"), "offloads", Grade::Warning, "-K pa rx-gro-list off");
    let forwarding = "rx-udp-gro-forwarding";
    has(&with(forwarding), "offloads", Grade::Warning, "-K pa rx-udp-gro-forwarding off");
    let unseen = Port { features: Err("there is no ethtool".into()), ..port() };
    has(&unseen, "offloads", Grade::Warning, "install ethtool");
}

#[test]
fn the_other_end_of_a_veth_has_to_poll() {
    let with = |namespace: Option<&str>, polls| {
        let namespace = namespace.map(str::to_owned);
        Port { far_end: FarEnd::Veth { name: "eth0".into(), namespace, polls }, ..port() }
    };
    assert_eq!(ills(&with(Some("n1"), true)), []);
    let there = "sudo ip netns exec n1 ethtool -K eth0 gro on";
    has(&with(Some("n1"), false), "other end", Grade::Problem, there);
    has(&with(None, false), "other end", Grade::Problem, "sudo ethtool -K eth0 gro on");
    let hidden = Port { far_end: FarEnd::Hidden, ..port() };
    has(&hidden, "other end", Grade::Warning, "gro on");
}
