//! An Open vSwitch whose flows lead to the nodes of keys, between real processes. Takes root, and
//! `openvswitch-switch`.

use crate::metrics::samples;
use crate::rack::{Lab, can_build};
use crate::routes::{Switch, signal};
use crate::tests::MACHINE;
use client::blocking::Client;
use client::{Options, Outcome, PutOptions};
use lab::hammer::wait;
use lab::openvswitch::is_installed;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use testkit::flag::RaiseOnDrop;
use testkit::program::keyway;
use testkit::skip;

/// Partitions of the keyspace whose keys have addresses, and flows that they take.
const PARTITIONS: usize = 8;
const PREFIXES: usize = PARTITIONS * 3;

/// Keys that are asked for all the time.
const KEYS: u64 = 20;

/// What the flows to the first cache have for a cookie.
const TO_THE_CACHE: &str = "cookie=0x6b77800000030001/-1";

/// Whether such racks can be built here; if not, it is reported that this test is skipped.
fn can_bridge(test: &str) -> bool {
    if let Err(why) = is_installed() {
        skip::report(test, &why);
        return false;
    }
    can_build(test)
}

/// A rack whose hosts an Open vSwitch links.
struct Bridged {
    lab: Lab,
    admin_port: u16,
}

impl Bridged {
    fn up() -> Self {
        let partitions = PARTITIONS.to_string();
        let options = ["--plane", "openflow", "--nodes", "3", "--replicas", "2", "--caches", "1"];
        let lab = Lab::up(&[&options[..], &["--partitions", &partitions]].concat());
        let controller: SocketAddr = lab.ready["admin"].as_str().unwrap().parse().unwrap();
        let bridged = Self { lab, admin_port: controller.port() };
        bridged.settle();
        bridged
    }

    fn folder(&self) -> String {
        format!("/run/keyway-lab/{}/openvswitch", self.lab.name())
    }

    /// A program of the switch's, in its namespace.
    fn command(&self, program: &str) -> Command {
        let namespace = format!("keyway-{}-sw", self.lab.name());
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &namespace, program]).stdin(Stdio::null());
        for name in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"] {
            command.env(name, self.folder());
        }
        command
    }

    /// What `ovs-ofctl` says, if the bridge is there.
    fn ofctl(&self, words: &[&str]) -> Option<String> {
        let mut command = self.command("ovs-ofctl");
        let output = command.args(["-O", "OpenFlow13"]).args(words).output().expect("there is ip");
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Flows that are like this.
    fn flows(&self, like: &str) -> Vec<String> {
        let said = self.ofctl(&["dump-flows", "br0", like]).unwrap_or_default();
        said.lines().filter(|line| line.contains("cookie=")).map(str::to_owned).collect()
    }

    /// Those of partitions, but for the last, which is for all other packets.
    fn prefixes(&self) -> Vec<String> {
        let all = self.flows("table=1").into_iter();
        all.filter(|it| it.contains("eth_dst")).collect()
    }

    fn becomes(&self, what: &str, is: impl Fn(&Self) -> bool) {
        let seen = wait(|| is(self).then_some(()));
        assert!(seen.is_some(), "{what}: {:#?}", self.ofctl(&["dump-flows", "br0"]));
    }

    /// Waits until the switch has a flow for each partition and each class.
    fn settle(&self) {
        self.becomes("flows of partitions", |it| it.prefixes().len() == PREFIXES);
    }

    /// A metric of the switch's process.
    fn metric(&self, name: &str, label: &str) -> u64 {
        let switch = SocketAddr::new([10, 77, 255, 1].into(), self.admin_port);
        let all = self.lab.on("c0", || samples(switch, name)).into_iter();
        all.filter(|(labels, _)| labels.contains(label)).map(|(_, count)| count).sum()
    }

    /// Kills a process that the lab has started.
    fn kill(&self, host: &str) {
        signal(&self.lab.pid(host), "-KILL");
    }

    fn spawn(&self, program: &str, words: &[&str]) -> Switch {
        let mut command = self.command(program);
        command.args(words).stdout(Stdio::null()).stderr(Stdio::null());
        Switch(command.spawn().expect("there is ip"))
    }

    /// Another agent, where the first one was.
    fn start_agent(&self) -> Switch {
        let config = format!("/run/keyway-lab/{}/cluster.toml", self.lab.name());
        let binary = keyway().get_program().to_owned();
        let words = ["switch", "--plane", "openflow", "--config", &config];
        self.spawn(&binary.to_string_lossy(), &words)
    }

    /// Another process of the switch, where the first one was.
    fn start_switch(&self) -> Switch {
        let folder = self.folder();
        let (at, pid) =
            (format!("unix:{folder}/db.sock"), format!("--pidfile={folder}/ovs-vswitchd.pid"));
        self.spawn("ovs-vswitchd", &[&at, &pid])
    }

    fn client(&self) -> Client {
        let service: SocketAddr = "[fd77::ff:1]:7700".parse().unwrap();
        let connect = || Client::connect(&[service][..], Options::default());
        self.lab.on("c0", || connect().expect("a socket"))
    }

    fn pings(&self) -> String {
        let namespace = format!("keyway-{}-c0", self.lab.name());
        let words = ["netns", "exec", &namespace, "ping", "-6", "-c", "20", "-i", "0.02"];
        let mut command = Command::new("ip");
        let output = command.args(words).args(["-W", "5", "fd77::1:2"]).output();
        String::from_utf8_lossy(&output.expect("there is ip").stdout).into_owned()
    }
}

/// What somebody who asks all the time has seen.
#[derive(Debug, Default)]
struct Seen {
    answers: AtomicU64,
    unknown: AtomicU64,
}

impl Seen {
    /// Waits until so many more have been answered.
    fn more(&self, answers: u64) {
        let from = self.answers.load(Ordering::Relaxed);
        let there = wait(|| (self.answers.load(Ordering::Relaxed) >= from + answers).then_some(()));
        assert!(there.is_some(), "nobody answers any more: {self:?}");
    }
}

/// What may be read of a key that nobody else writes.
#[derive(Debug, Default)]
struct Known {
    last: Vec<u8>,
    /// Written, perhaps: when that takes place nobody knows.
    maybe: Vec<Vec<u8>>,
}

/// Writes keys and reads them until it is to end.
fn ask(client: &Client, seen: &Seen, ends: &AtomicBool) {
    let space = client.keyspace("default").expect("it is there");
    let mut all: Vec<Known> = (0..KEYS).map(|_| Known::default()).collect();
    let unknown = || _ = seen.unknown.fetch_add(1, Ordering::Relaxed);
    for (turn, number) in (0u64..).zip((0..KEYS).cycle()) {
        if ends.load(Ordering::Relaxed) {
            return;
        }
        let (key, known) = (format!("key-{number}"), &mut all[usize::try_from(number).unwrap()]);
        if turn % (4 * KEYS) < KEYS {
            let value = format!("turn {turn}").into_bytes();
            match space.put(key.as_bytes(), &value, PutOptions::default()) {
                Outcome::Done(_) => known.last = value,
                Outcome::Unknown(_) => {
                    known.maybe.push(value);
                    unknown();
                }
                Outcome::Refused(why) => panic!("{key}: {why:?}"),
            }
        }
        for _ in 0..5 {
            match space.get(key.as_bytes()) {
                Outcome::Done(found) => {
                    let value = found.map(|it| it.value.to_vec()).unwrap_or_default();
                    let may = value == known.last || known.maybe.contains(&value);
                    assert!(may, "{key} is {value:?}, and not as in {known:?}");
                    known.last = value;
                    seen.answers.fetch_add(1, Ordering::Relaxed);
                }
                Outcome::Unknown(_) => unknown(),
                Outcome::Refused(why) => panic!("{key}: {why:?}"),
            }
        }
    }
}

/// How long a flow has been there, in seconds.
fn age(flow: &str) -> f64 {
    let (_, after) = flow.split_once("duration=").expect("it says so");
    after.split('s').next().and_then(|it| it.parse().ok()).expect("a number")
}

/// TCP and ICMP between other hosts, which have nothing to do with keys.
struct Foreign {
    there: TcpStream,
    back: TcpStream,
}

impl Foreign {
    fn connect(bridged: &Bridged) -> Self {
        let listener = bridged.lab.on("n1", || TcpListener::bind(("::", 9_999)).unwrap());
        let near: SocketAddr = "[fd77::1:1]:9999".parse().unwrap();
        let there = bridged.lab.on("c0", || TcpStream::connect(near).expect("it is linked"));
        let (back, _) = listener.accept().expect("somebody connects");
        for end in [&there, &back] {
            end.set_read_timeout(Some(STREAM_WAIT_MAX)).unwrap();
            end.set_write_timeout(Some(STREAM_WAIT_MAX)).unwrap();
        }
        Self { there, back }
    }

    /// A stream that has been there all the time goes on, and no ping is lost.
    fn pass(&mut self, bridged: &Bridged) {
        let all: Vec<u8> = (0..1_000_000u32).map(|at| at.to_le_bytes()[0]).collect();
        let mut back = vec![0; all.len()];
        thread::scope(|scope| {
            scope.spawn(|| self.there.write_all(&all).expect("it goes there"));
            self.back.read_exact(&mut back).expect("it comes");
        });
        assert!(back == all, "what came is another thing");
        let pings = bridged.pings();
        assert!(pings.contains(" 0% packet loss"), "{pings}");
    }
}

/// How long a stream may stand still before that is said.
const STREAM_WAIT_MAX: Duration = Duration::from_secs(30);

/// Somebody else's flow, which is never touched.
const FOREIGN: &str = "table=0,priority=9000,udp6,tp_dst=9";

/// Without its agent the switch goes on; the next one puts right what is wrong, and that alone.
fn kill_the_agent(bridged: &Bridged, seen: &Seen) -> Switch {
    bridged.kill("sw");
    seen.more(500);
    let gone = "table=1,ipv6,ipv6_dst=fd77:1:0:2001::/67";
    let wrong = "table=0,cookie=0x6b77800000030001,priority=1128,ipv6,\
                 ipv6_dst=fd77:1:0:1001:4::,actions=set_field:02:00:00:00:00:01->eth_dst,output:1";
    assert!(bridged.ofctl(&["del-flows", "br0", gone]).is_some());
    assert!(bridged.ofctl(&["add-flow", "br0", wrong]).is_some());
    assert_eq!(bridged.prefixes().len(), PREFIXES - 1);
    let agent = bridged.start_agent();
    bridged.settle();
    bridged.becomes("the wrong rule goes", |it| {
        it.flows(TO_THE_CACHE).iter().all(|it| !it.contains("ipv6_dst=fd77:1:0:1001:4::"))
    });
    let made = bridged.metric("keyway_content_changes", "\"made\"");
    assert!(made < 5, "{made} changes");
    let old = bridged.flows(TO_THE_CACHE).iter().filter(|it| age(it) > 2.0).count() as u64;
    assert!(old + 1 >= KEYS, "{old} rules are as they were");
    seen.more(500);
    agent
}

/// A switch that is started anew has nothing, and gets it again.
fn kill_the_switch(bridged: &Bridged, seen: &Seen) -> Switch {
    bridged.kill("ovs");
    bridged.becomes("it is gone", |it| it.ofctl(&["show", "br0"]).is_none());
    let switch = bridged.start_switch();
    bridged.settle();
    bridged.becomes("rules", |it| it.flows(TO_THE_CACHE).len() as u64 == KEYS);
    seen.more(500);
    assert_eq!(bridged.metric("keyway_content_answers", ""), 1);
    switch
}

/// Client, cache, nodes, and what has nothing to do with them, while everything is killed that
/// keeps the flows.
#[test]
fn requests_are_answered_while_the_switch_its_agent_and_a_cache_are_killed() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let test = "requests_are_answered_while_the_switch_its_agent_and_a_cache_are_killed";
    if !can_bridge(test) {
        return;
    }
    let bridged = Bridged::up();
    let drops = format!("{FOREIGN},actions=drop");
    assert!(bridged.ofctl(&["add-flow", "br0", &drops]).is_some());
    let (client, seen, ends) = (bridged.client(), Seen::default(), AtomicBool::new(false));
    let mut foreign = Foreign::connect(&bridged);
    thread::scope(|scope| {
        let _ends = RaiseOnDrop(&ends);
        scope.spawn(|| ask(&client, &seen, &ends));
        seen.more(500);
        bridged.becomes("rules", |it| it.flows(TO_THE_CACHE).len() as u64 == KEYS);
        let hit = |it: &Bridged| it.flows(TO_THE_CACHE).iter().any(|it| !it.contains("packets=0,"));
        bridged.becomes("reads of cached keys", hit);
        let reads = |it: &Bridged| it.metric("keyway_switch_partition_reads", "");
        bridged.becomes("reads are counted by partition", |it| reads(it) > 0);
        // Those that were asked for in vain before go there as well.
        let passed = bridged.metric("keyway_switch_packets", "\"get\"");
        let answers = seen.answers.load(Ordering::Relaxed);
        assert!(passed < answers / 10, "{passed} of {answers} by the service address");
        foreign.pass(&bridged);

        let agent = kill_the_agent(&bridged, &seen);
        assert_eq!(bridged.flows("table=0,udp6,tp_dst=9").len(), 1, "somebody else's stays");
        foreign.pass(&bridged);

        let _switch = kill_the_switch(&bridged, &seen);
        foreign.pass(&bridged);
        assert!(bridged.ofctl(&["add-flow", "br0", &drops]).is_some());

        bridged.kill("k1");
        bridged.becomes("rules of a cache that is gone go", |it| it.flows(TO_THE_CACHE).is_empty());
        seen.more(500);
        bridged.settle();

        // One that is asked to end takes its flows with it, and no others.
        ends.store(true, Ordering::Relaxed);
        agent.end();
        assert_eq!(bridged.prefixes(), [""; 0]);
        assert_eq!(bridged.flows("table=0,udp6,tp_dst=9").len(), 1, "somebody else's stays");
        foreign.pass(&bridged);
    });
    println!("{seen:?}");
}

/// A table that is full: some keys are not led to the cache, and nothing is wrong.
#[test]
fn what_finds_no_room_in_the_switch_is_read_at_home() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    if !can_bridge("what_finds_no_room_in_the_switch_is_read_at_home") {
        return;
    }
    let bridged = Bridged::up();
    let at = format!("--db=unix:{}/db.sock", bridged.folder());
    let words = "-- --id=@t create Flow_Table flow_limit=8 overflow_policy=refuse \
                 -- set bridge br0 flow_tables:0=@t";
    let mut command = bridged.command("ovs-vsctl");
    let words = words.split_whitespace();
    let said = command.arg(at).args(words).stdout(Stdio::null()).status().expect("there is ip");
    assert!(said.success());
    let (client, seen, ends) = (bridged.client(), Seen::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        let _ends = RaiseOnDrop(&ends);
        scope.spawn(|| ask(&client, &seen, &ends));
        seen.more(1_000);
        // One of the eight is for all other packets.
        bridged.becomes("as many rules as there is room for", |it| {
            it.flows(TO_THE_CACHE).len() == 7
                && it.metric("keyway_content_changes", "\"refused\"") > 0
        });
        assert!(bridged.metric("keyway_content_pending", "") > 0);
        assert_eq!(bridged.metric("keyway_content_answers", ""), 1);
        seen.more(1_000);

        // There is room again.
        let at = format!("--db=unix:{}/db.sock", bridged.folder());
        let mut command = bridged.command("ovs-vsctl");
        let words = [at.as_str(), "clear", "bridge", "br0", "flow_tables"];
        assert!(command.args(words).status().expect("there is ip").success());
        bridged.becomes("all rules", |it| it.flows(TO_THE_CACHE).len() as u64 == KEYS);
        let none = |it: &Bridged| it.metric("keyway_content_pending", "") == 0;
        bridged.becomes("nothing is left to be done", none);
        assert_eq!(bridged.prefixes().len(), PREFIXES);
        println!("{seen:?}");
    });
}
