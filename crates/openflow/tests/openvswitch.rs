//! The machine and Open vSwitch, with its datapath in user space, in a network namespace of the
//! test's own. Takes root, and `openvswitch-switch`.

#[cfg(test)]
mod tests {
    use content::{Change, Entry};
    use machine::Instant;
    use nix::sched::{CloneFlags, unshare};
    use openflow::{Answer, Channel, Exit, Exits, Mac, Part, Stage};
    use std::collections::{BTreeMap, BTreeSet};
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::net::Ipv6Addr;
    use std::os::unix::net::UnixStream;
    use std::process::{Child, Command, Stdio};
    use std::thread;
    use std::time::Duration;
    use tempfile::TempDir;
    use testkit::skip;
    use wire::{AddressPrefix, ContentClass, ServicePrefix};

    const NOW: Instant = Instant::from_unix_ms(1_000);

    /// The two processes of an Open vSwitch, and what is theirs alone.
    struct Ovs {
        folder: TempDir,
        processes: Vec<Child>,
    }

    impl Ovs {
        /// With a bridge, in the namespace of this thread.
        fn start() -> Self {
            let folder = tempfile::tempdir().expect("there is room");
            let mut ovs = Self { folder, processes: Vec::new() };
            let file = ovs.path("conf.db");
            let schema = "/usr/share/openvswitch/vswitch.ovsschema";
            ovs.run("ovsdb-tool", &["create", &file, schema]);
            let remote = format!("--remote=punix:{}", ovs.path("db.sock"));
            ovs.spawn("ovsdb-server", &[&file, &remote]);
            ovs.listens("db.sock");
            ovs.start_switch();
            let bridge = "add-br br0 -- set bridge br0 datapath_type=netdev fail_mode=secure";
            ovs.vsctl(bridge);
            ovs.listens("br0.mgmt");
            ovs
        }

        fn start_switch(&mut self) {
            let at = format!("unix:{}", self.path("db.sock"));
            self.spawn("ovs-vswitchd", &[&at]);
        }

        fn kill_switch(&mut self) {
            let mut switch = self.processes.pop().expect("it runs");
            switch.kill().expect("it is ours");
            switch.wait().expect("it is ours");
            std::fs::remove_file(self.path("br0.mgmt")).expect("its socket is left behind");
        }

        fn path(&self, name: &str) -> String {
            self.folder.path().join(name).display().to_string()
        }

        fn command(&self, program: &str) -> Command {
            let mut command = Command::new(program);
            for name in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"] {
                command.env(name, self.folder.path());
            }
            command.stdin(Stdio::null());
            command
        }

        fn spawn(&mut self, program: &str, words: &[&str]) {
            let mut command = self.command(program);
            let pid = format!("--pidfile={}", self.path(&format!("{program}.pid")));
            command.args(words).arg(pid).stdout(Stdio::null()).stderr(Stdio::null());
            self.processes.push(command.spawn().expect("it was found before"));
        }

        fn run(&self, program: &str, words: &[&str]) -> String {
            let output = self.command(program).args(words).output().expect("it was found before");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{program} {words:?}: {said}");
            String::from_utf8_lossy(&output.stdout).into_owned()
        }

        fn vsctl(&self, words: &str) {
            let at = format!("--db=unix:{}", self.path("db.sock"));
            let mut all = vec![at.as_str(), "--timeout=20"];
            all.extend(words.split(' '));
            self.run("ovs-vsctl", &all);
        }

        fn ofctl(&self, words: &[&str]) -> String {
            self.run("ovs-ofctl", &[&["-O", "OpenFlow13"], words].concat())
        }

        /// What would become of a packet to this address.
        fn trace(&self, addr: Ipv6Addr) -> String {
            let switch = self.path("ovs-vswitchd.pid");
            let pid = std::fs::read_to_string(switch).expect("it runs");
            let at = self.path(&format!("ovs-vswitchd.{}.ctl", pid.trim()));
            let packet = format!("in_port=LOCAL,ipv6,ipv6_dst={addr},dl_dst=02:00:00:00:00:99");
            let words = ["-t", &at, "ofproto/trace", "br0", &packet];
            self.run("ovs-appctl", &words)
        }

        fn listens(&self, name: &str) {
            let path = self.path(name);
            let there = (0..400).any(|_| {
                thread::park_timeout(Duration::from_millis(50));
                // It is there before anybody listens at it.
                UnixStream::connect(&path).is_ok()
            });
            assert!(there, "nobody listens at {path}");
        }
    }

    impl Drop for Ovs {
        fn drop(&mut self) {
            for process in &mut self.processes {
                process.kill().ok();
                process.wait().ok();
            }
        }
    }

    /// Does this in a namespace, if there is one, and an Open vSwitch.
    fn in_a_namespace(test: &'static str, job: fn(Ovs)) {
        for program in ["ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl"] {
            if Command::new(program).arg("--version").output().is_err() {
                return skip::report(test, &format!("no {program}: install openvswitch-switch"));
            }
        }
        let thread = thread::spawn(move || {
            if let Err(why) = unshare(CloneFlags::CLONE_NEWNET) {
                return skip::report(test, &format!("no network namespace: {why}"));
            }
            job(Ovs::start());
        });
        thread.join().expect("the test fails in its namespace");
    }

    /// A channel over the socket at which the bridge takes others than its controllers.
    struct Driven {
        stream: UnixStream,
        channel: Channel,
    }

    impl Driven {
        fn connect(ovs: &Ovs) -> Self {
            let stream = UnixStream::connect(ovs.path("br0.mgmt")).expect("the bridge is there");
            stream.set_read_timeout(Some(Duration::from_secs(20))).expect("it is a socket");
            let mut driven = Self { stream, channel: Channel::new(NOW, exits()) };
            while driven.channel.stage() != Stage::Ready {
                driven.turn();
            }
            driven
        }

        fn turn(&mut self) {
            self.stream.write_all(&self.channel.take_out()).expect("the bridge is there");
            let mut room = [0; 1_000];
            match self.stream.read(&mut room) {
                Ok(0) => panic!("the bridge hangs up"),
                Ok(len) => self.channel.handle_bytes(NOW, &room[..len]).expect("it is OpenFlow"),
                Err(why) if why.kind() == ErrorKind::Interrupted => {}
                Err(why) => panic!("{why}"),
            }
        }

        fn answer(&mut self) -> Answer {
            loop {
                if let Some(answer) = self.channel.take_answer() {
                    return answer;
                }
                self.turn();
            }
        }

        fn change(&mut self, changes: &[Change]) -> BTreeMap<AddressPrefix, String> {
            self.channel.change(changes);
            match self.answer() {
                Answer::Done(refused) => refused,
                other @ Answer::Has { .. } => panic!("{other:?}"),
            }
        }

        fn has(&mut self) -> (BTreeSet<Entry>, bool) {
            self.channel.list(Part::All);
            match self.answer() {
                Answer::Has { entries, defaults } => {
                    (entries.into_iter().map(|(entry, _)| entry).collect(), defaults)
                }
                other @ Answer::Done(_) => panic!("{other:?}"),
            }
        }
    }

    fn member(id: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 1, id)
    }

    /// Of members 1 and 2 by their ports, of 3 by its hardware address alone.
    fn exits() -> Exits {
        let mac = |id: u16| Mac([2, 0x4b, 0x57, 0, 1, id.to_be_bytes()[1]]);
        let exit = |id| Exit { mac: mac(id), port: (id < 3).then_some(u32::from(id)) };
        (1..=3).map(|id| (member(id), exit(id))).collect()
    }

    fn service() -> ServicePrefix {
        "fd77:1::/48".parse().expect("a service prefix")
    }

    fn half(upper: bool) -> AddressPrefix {
        let (first, last) = if upper { (1 << 127, u128::MAX) } else { (0, u128::MAX >> 1) };
        let addresses = service().keyspace(2).expect("a small id");
        addresses.of_interval(ContentClass::Read, first, last).expect("a prefix")
    }

    fn rule(key: u128) -> AddressPrefix {
        let addresses = service().keyspace(2).expect("a small id");
        addresses.rule_of_key(ContentClass::Read, key << 64)
    }

    fn to(prefix: AddressPrefix, id: u16) -> Change {
        Change { prefix, via: Some(member(id)) }
    }

    fn at(prefix: AddressPrefix, id: u16) -> Entry {
        Entry { prefix, via: member(id) }
    }

    fn gone(prefix: AddressPrefix) -> Change {
        Change { prefix, via: None }
    }

    #[test]
    fn a_bridge_sends_addresses_where_it_is_told_and_others_as_ever() {
        in_a_namespace("a_bridge_sends_addresses_where_it_is_told_and_others_as_ever", |ovs| {
            ovs.ofctl(&["add-flow", "br0", "table=0,priority=7,arp,actions=drop"]);
            let mut driven = Driven::connect(&ovs);
            assert!(driven.channel.features().1 >= 2, "there are enough tables");
            assert_eq!(driven.has(), (BTreeSet::new(), false));
            driven.channel.say_defaults();
            let first = [to(half(false), 1), to(half(true), 2), to(rule(7), 3)];
            assert_eq!(driven.change(&first), BTreeMap::new());
            let all = [at(half(false), 1), at(half(true), 2), at(rule(7), 3)];
            assert_eq!(driven.has(), (all.into(), true));
            let upper = ovs.trace(rule(u128::from(u64::MAX)).addr);
            assert!(upper.contains("02:4b:57:00:01:02->eth_dst") && upper.contains("output:2"));
            let cached = ovs.trace(rule(7).addr);
            assert!(cached.contains("02:4b:57:00:01:03->eth_dst"), "{cached}");
            assert!(cached.contains("NORMAL"), "{cached}");
            let foreign = ovs.trace(member(1));
            assert!(foreign.contains("NORMAL") && !foreign.contains("eth_dst"), "{foreign}");

            let more = [to(half(false), 2), gone(rule(7)), gone(rule(8)), to(rule(9), 4)];
            let refused = driven.change(&more);
            assert_eq!(refused.keys().collect::<Vec<_>>(), [&rule(9)], "{refused:?}");
            let all = BTreeSet::from([at(half(false), 2), at(half(true), 2)]);
            assert_eq!(driven.has(), (all.clone(), true));
            let mut other = Driven::connect(&ovs);
            assert_eq!(other.has(), (all, true), "another agent finds them");
            other.channel.clear();
            assert_eq!(other.answer(), Answer::Done(BTreeMap::new()));
            assert_eq!(other.has(), (BTreeSet::new(), true));
            let flows = ovs.ofctl(&["dump-flows", "br0"]);
            assert!(flows.contains("arp actions=drop"), "others' flows stay: {flows}");
        });
    }

    #[test]
    fn rules_to_a_member_go_with_one_request_and_its_prefixes_stay() {
        in_a_namespace("rules_to_a_member_go_with_one_request_and_its_prefixes_stay", |ovs| {
            let mut driven = Driven::connect(&ovs);
            driven.channel.say_defaults();
            let rules = (0..500).map(|key| to(rule(key), if key % 2 == 0 { 1 } else { 2 }));
            let all: Vec<Change> = rules.chain([to(half(false), 1), to(half(true), 2)]).collect();
            assert_eq!(driven.change(&all), BTreeMap::new());
            driven.channel.sweep(member(1));
            assert_eq!(driven.answer(), Answer::Done(BTreeMap::new()));
            let odd = (0..500).filter(|key| key % 2 == 1).map(|key| at(rule(key), 2));
            let left = odd.chain([at(half(false), 1), at(half(true), 2)]).collect();
            assert_eq!(driven.has(), (left, true));
        });
    }

    #[test]
    fn a_table_that_is_full_refuses_what_is_new() {
        in_a_namespace("a_table_that_is_full_refuses_what_is_new", |ovs| {
            ovs.vsctl(
                "-- --id=@t create Flow_Table flow_limit=4 overflow_policy=refuse \
                 -- set bridge br0 flow_tables:0=@t",
            );
            let mut driven = Driven::connect(&ovs);
            driven.channel.say_defaults();
            // By the time that it has done something it has said how much there is room for.
            assert_eq!(driven.change(&[]), BTreeMap::new());
            assert_eq!(driven.channel.sizes().0, Some(3), "a limit of four, and the default");
            let rules: Vec<Change> = (0..6).map(|key| to(rule(key), 1)).collect();
            let refused = driven.change(&rules);
            let expected = [4, 5].map(|key| (rule(key), "its table is full".to_owned()));
            // One of the four is the default.
            assert_eq!(refused.len(), 3, "{refused:?}");
            assert!(expected.iter().all(|(prefix, why)| refused.get(prefix) == Some(why)));
            assert_eq!(driven.has().0.len(), 3);
            let half_of_them = [gone(rule(0)), gone(rule(1)), to(rule(2), 2)];
            assert_eq!(driven.change(&half_of_them), BTreeMap::new());
            assert_eq!(driven.change(&rules[4..]), BTreeMap::new());
        });
    }

    #[test]
    fn a_switch_that_is_started_anew_has_nothing() {
        in_a_namespace("a_switch_that_is_started_anew_has_nothing", |mut ovs| {
            let mut driven = Driven::connect(&ovs);
            driven.channel.say_defaults();
            let many: Vec<Change> = (0..3_000).map(|key| to(rule(key), 1)).collect();
            assert_eq!(driven.change(&many), BTreeMap::new());
            let (entries, defaults) = driven.has();
            assert_eq!((entries.len(), defaults), (3_000, true), "in many parts");
            ovs.kill_switch();
            ovs.start_switch();
            ovs.listens("br0.mgmt");
            assert_eq!(Driven::connect(&ovs).has(), (BTreeSet::new(), false));
        });
    }
}
