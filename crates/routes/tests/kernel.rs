//! Routes in a network namespace of the test's own. Takes root.

#[cfg(test)]
mod tests {
    use content::{Change, Entry};
    use nix::errno::Errno;
    use nix::sched::{CloneFlags, unshare};
    use routes::Fib;
    use std::collections::{BTreeMap, BTreeSet};
    use std::net::Ipv6Addr;
    use std::process::Command;
    use std::thread;
    use testkit::skip;
    use wire::{AddressPrefix, ContentClass, ServicePrefix};

    fn service() -> ServicePrefix {
        "fd00:6b77:1::/48".parse().expect("a service prefix")
    }

    /// Does this in a namespace with two links and a router behind the second, if one can be had.
    fn in_a_namespace(test: &'static str, job: fn()) {
        let thread = thread::spawn(move || {
            if let Err(why) = unshare(CloneFlags::CLONE_NEWNET) {
                return skip::report(test, &format!("no network namespace: {why}"));
            }
            ip("link set lo up");
            for (link, subnet) in [("east", 1), ("west", 2)] {
                ip(&format!("link add name {link} type veth peer name {link}2"));
                ip(&format!("link set {link} up"));
                ip(&format!("link set {link}2 up"));
                ip(&format!("address add fd00:77:{subnet}::ffff/64 dev {link} nodad"));
            }
            job();
        });
        thread.join().expect("the test fails in its namespace");
    }

    /// Runs `ip -6` with these words; what it says.
    fn ip(words: &str) -> String {
        let output = Command::new("ip").arg("-6").args(words.split(' ')).output();
        let output = output.expect("iproute2 is installed");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ip {words}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn node(subnet: u16, id: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfd00, 0x77, subnet, 0, 0, 0, 0, id)
    }

    /// One of 16 partitions.
    fn partition(number: u128) -> AddressPrefix {
        let addresses = service().keyspace(2).expect("a small id");
        let (first, last) = (number << 124, number << 124 | u128::MAX >> 4);
        addresses.of_interval(ContentClass::Read, first, last).expect("a prefix")
    }

    fn rule(number: u128) -> AddressPrefix {
        let addresses = service().keyspace(2).expect("a small id");
        addresses.rule_of_key(ContentClass::Read, number << 64)
    }

    fn to(prefix: AddressPrefix, via: Ipv6Addr) -> Change {
        Change { prefix, via: Some(via) }
    }

    fn gone(prefix: AddressPrefix) -> Change {
        Change { prefix, via: None }
    }

    fn no_refusal() -> BTreeMap<AddressPrefix, Errno> {
        BTreeMap::new()
    }

    fn all_of(fib: &mut Fib, wanted: &[Entry]) -> BTreeSet<Entry> {
        let wanted: BTreeMap<_, _> = wanted.iter().map(|it| (it.prefix, it.via)).collect();
        let routes = fib.routes(|prefix| wanted.get(&prefix).copied());
        routes.expect("the kernel lists them").into_iter().collect()
    }

    #[test]
    fn routes_come_lead_elsewhere_and_go_and_all_others_stay() {
        in_a_namespace("routes_come_lead_elsewhere_and_go_and_all_others_stay", || {
            ip("route add fd00:6b77:1:1002::/64 via fd00:77:1::9 metric 10");
            ip("route add fd00:6b77:1:1002::/64 via fd00:77:1::8 proto static");
            let others = ip("route");
            let mut fib = Fib::open(service()).expect("root may");
            assert_eq!(all_of(&mut fib, &[]), BTreeSet::new());
            let first = [to(partition(0), node(1, 1)), to(partition(1), node(2, 1))];
            assert_eq!(fib.apply(&first).expect("it answers"), no_refusal());
            let said = ip("route show proto 107");
            assert!(said.contains("via fd00:77:2::1 dev west metric 7700"), "{said}");
            let more = [to(partition(0), node(2, 2)), to(rule(7), node(1, 5)), gone(partition(1))];
            assert_eq!(fib.apply(&more).expect("it answers"), no_refusal());
            let wanted = [
                Entry { prefix: partition(0), via: node(2, 2) },
                Entry { prefix: rule(7), via: node(1, 5) },
            ];
            assert_eq!(all_of(&mut fib, &wanted), wanted.into());
            let way = ip("route get fd00:6b77:1:1002::7");
            assert!(way.contains("via fd00:77:1::5 dev east"), "{way}");
            assert!(!fib.has_changed().expect("it answers"), "these were our own changes");
            let mut next = Fib::open(service()).expect("root may");
            assert_eq!(all_of(&mut next, &wanted), wanted.into(), "a later start finds them");
            let none = [gone(partition(0)), gone(rule(7)), gone(rule(8))];
            assert_eq!(next.apply(&none).expect("it answers"), no_refusal());
            assert_eq!(ip("route"), others);
        });
    }

    #[test]
    fn what_others_do_is_heard_and_what_leads_nowhere_is_refused() {
        in_a_namespace("what_others_do_is_heard_and_what_leads_nowhere_is_refused", || {
            let mut fib = Fib::open(service()).expect("root may");
            let (near, far) = (node(1, 1), Ipv6Addr::new(0xfd00, 0x99, 0, 0, 0, 0, 0, 1));
            let both = [to(partition(0), near), to(partition(1), far), to(partition(2), near)];
            let refused = fib.apply(&both).expect("it answers");
            assert_eq!(refused, [(partition(1), Errno::EHOSTUNREACH)].into());
            assert!(!fib.has_changed().expect("it answers"));
            ip("route add fd00:99::/64 via fd00:77:2::3");
            assert!(fib.has_changed().expect("it answers"), "there is a way");
            assert_eq!(fib.apply(&both).expect("it answers"), no_refusal());
            let said = ip("route show proto 107");
            assert!(said.contains("via fd00:77:2::3 dev west"), "by the router in between: {said}");
            ip("route del fd00:6b77:1:1002::/68 proto 107");
            assert!(fib.has_changed().expect("it answers"), "somebody took one of ours");
            ip("link set east down");
            assert!(fib.has_changed().expect("it answers"), "they go with the link");
            let left = Entry { prefix: partition(1), via: far };
            assert_eq!(all_of(&mut fib, &[left]), [left].into());
            assert!(!fib.apply(&both).expect("it answers").is_empty(), "the link is down");
            ip("link set east up");
            ip("address add fd00:77:1::fffe/64 dev east nodad");
            assert!(fib.has_changed().expect("it answers"), "there is a way again");
            assert_eq!(fib.apply(&both).expect("it answers"), no_refusal());
            ip("route replace fd00:99::/64 via fd00:77:2::4");
            assert!(fib.has_changed().expect("it answers"), "there is another way");
            let old = Entry { prefix: partition(1), via: node(2, 3) };
            assert!(all_of(&mut fib, &[left]).contains(&old), "it still leads the old way");
        });
    }

    #[test]
    fn many_thousand_routes_are_made_and_listed() {
        in_a_namespace("many_thousand_routes_are_made_and_listed", || {
            let mut fib = Fib::open(service()).expect("root may");
            let all: Vec<Change> = (0..5_000).map(|key| to(rule(key), node(1, 1))).collect();
            for batch in all.chunks(content::BATCH_MAX) {
                assert_eq!(fib.apply(batch).expect("it answers"), no_refusal());
            }
            assert!(!fib.has_changed().expect("it answers"), "nothing was missed");
            assert_eq!(all_of(&mut fib, &[]).len(), all.len());
        });
    }
}
