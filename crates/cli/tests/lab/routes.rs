//! A router whose routes lead to the nodes of keys, between real processes. What asks are plain
//! datagrams: the router knows nothing of them but their addresses.

use crate::metrics::samples;
use crate::rack::{Lab, can_build};
use crate::tests::MACHINE;
use client::blocking::Client;
use client::{Options, PutOptions};
use cluster::Capabilities;
use lab::hammer::wait;
use lab::namespace;
use lab::process::pause;
use serde_json::Value;
use socket2::{Domain, Socket, Type};
use std::io::{Read as _, Write as _};
use std::net::{Ipv6Addr, Shutdown, SocketAddr, SocketAddrV6, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use testkit::flag::RaiseOnDrop;
use testkit::program::keyway;
use wire::{ContentClass, ServicePrefix};

/// Partitions of the keyspace whose keys have addresses.
const PARTITIONS: u64 = 8;

/// A port at which nothing of the cluster is.
const PORT: u16 = 9_999;

/// Far more than an answer takes.
const WAIT: Duration = Duration::from_secs(5);

/// A rack whose switch is a router.
pub(crate) struct Routed {
    lab: Lab,
    switch: SocketAddr,
}

impl Routed {
    pub(crate) fn up() -> Self {
        let partitions = PARTITIONS.to_string();
        let options = ["--plane", "routes", "--nodes", "4", "--replicas", "2", "--caches", "1"];
        let lab = Lab::up(&[&options[..], &["--partitions", &partitions]].concat());
        let controller: SocketAddr = lab.ready["admin"].as_str().unwrap().parse().unwrap();
        let switch = SocketAddr::new([10, 77, 255, 1].into(), controller.port());
        let routed = Self { lab, switch };
        routed.settle();
        routed
    }

    /// What the lab is called.
    pub(crate) fn name(&self) -> &str {
        self.lab.name()
    }

    /// What a command says on a host.
    fn on(&self, host: &str, words: &str) -> String {
        let namespace = format!("keyway-{}-{host}", self.lab.name());
        let mut command = Command::new("ip");
        let output = command.args(["netns", "exec", &namespace]).args(words.split(' ')).output();
        let output = output.expect("there is ip");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{host}: {words}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Our routes.
    pub(crate) fn routes(&self) -> Vec<String> {
        let said = self.on("sw", "ip -6 route show proto 107");
        said.lines().map(str::to_owned).collect()
    }

    /// Waits until the router has a route for each partition and each class.
    fn settle(&self) {
        let wanted = usize::try_from(PARTITIONS).unwrap() * ContentClass::ALL.len();
        let settled = wait(|| (self.routes().len() == wanted).then_some(()));
        assert!(settled.is_some(), "{:#?}", self.routes());
        let entries = self.lab.on("c0", || samples(self.switch, "keyway_content_entries"));
        let partitions = entries.iter().find(|(labels, _)| labels.contains("partition"));
        assert_eq!(partitions.map(|it| *it.1), Some(wanted as u64), "{entries:?}");
        let answers = self.lab.on("c0", || samples(self.switch, "keyway_content_answers"));
        assert_eq!(answers.into_values().collect::<Vec<_>>(), [1]);
    }

    /// The address of a key for this class, and the node that a switch would send it to.
    fn explain(&self, key: &str, class: ContentClass) -> (Ipv6Addr, Ipv6Addr) {
        let said = self.lab.run(0, &["keyway", "explain", key, "--json"]).expect(0).json();
        let to = if class == ContentClass::Write { "write_goes_to" } else { "read_goes_to" };
        let node: SocketAddrV6 = said[to].as_str().expect("an address").parse().unwrap();
        let at = u128::from_str_radix(said["match"].as_str().expect("hex"), 16).unwrap();
        let list = self.lab.run(0, &["keyway", "keyspace", "list", "--json"]).expect(0);
        let list: Vec<Value> = list.json_lines();
        let spaces = list.iter().flat_map(|it| it["keyspaces"].as_array().unwrap_or(&list));
        let mut named = spaces.filter(|it| it["name"] == said["keyspace"]);
        let id = named.next().and_then(|it| it["id"].as_u64()).expect("it has an id");
        let service: ServicePrefix = "fd77:1::/48".parse().unwrap();
        let addresses = service.keyspace(u16::try_from(id).unwrap()).unwrap();
        (addresses.of_key(class, at), *node.ip())
    }

    /// Whether a datagram to this address comes from a host to this node, and what that answers
    /// from there comes back.
    fn reaches(&self, from: &str, (address, node): (Ipv6Addr, Ipv6Addr)) {
        let host = format!("n{}", node.segments()[7]);
        let at = SocketAddrV6::new(address, PORT, 0, 0);
        let server = self.lab.on(&host, || at_home(at));
        server.set_read_timeout(Some(WAIT)).unwrap();
        let client = namespace::inside(from, || Ok(UdpSocket::bind("[::]:0")?)).unwrap();
        client.set_read_timeout(Some(WAIT)).unwrap();
        client.connect(at).unwrap();
        client.send(b"what is it?").unwrap();
        let mut room = [0; 64];
        let (len, from) = server.recv_from(&mut room).unwrap_or_else(|why| {
            let way = self.on("sw", &format!("ip -6 route get {address}"));
            panic!("{host} did not get it: {why}: {way}")
        });
        server.send_to(&room[..len], from).unwrap();
        let len = client.recv(&mut room).expect("it comes from the address of the key");
        assert_eq!(&room[..len], b"what is it?");
    }

    /// The addresses of some keys for each class, and their nodes. A switch has to say so.
    pub(crate) fn ways(&self) -> Vec<(Ipv6Addr, Ipv6Addr)> {
        let keys = ["apple", "banana", "cherry", "date", "elder", "fig"];
        let of_key = |key| ContentClass::ALL.map(|class| self.explain(key, class));
        keys.into_iter().flat_map(of_key).collect()
    }

    /// Whether datagrams from a host, by its namespace, find their nodes.
    pub(crate) fn reach_from(&self, from: &str, ways: &[(Ipv6Addr, Ipv6Addr)]) {
        ways.iter().for_each(|way| self.reaches(from, *way));
    }

    fn reach(&self, ways: &[(Ipv6Addr, Ipv6Addr)]) {
        self.reach_from(&format!("keyway-{}-c0", self.name()), ways);
    }

    /// Kills the switch that the lab has started.
    pub(crate) fn kill_switch(&self) {
        signal(&self.lab.pid("sw"), "-KILL");
    }

    /// Another switch's process, where the first one was.
    pub(crate) fn start_switch(&self) -> Switch {
        let namespace = format!("keyway-{}-sw", self.lab.name());
        let config = format!("/run/keyway-lab/{}/cluster.toml", self.lab.name());
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &namespace]).arg(keyway().get_program());
        command.args(["switch", "--plane", "routes", "--config", &config]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Switch(command.spawn().expect("there is ip"))
    }
}

/// A socket at an address that comes to its host by a route, and that no link of it has.
fn at_home(at: SocketAddrV6) -> UdpSocket {
    let socket = Socket::new(Domain::IPV6, Type::DGRAM, None).expect("there are sockets");
    socket.set_freebind_v6(true).expect("Linux can do that");
    socket.bind(&at.into()).expect("all keys are at home here");
    socket.into()
}

/// A switch's process that the lab does not know of.
pub(crate) struct Switch(pub(crate) Child);

impl Switch {
    /// Ends it as a service manager does.
    pub(crate) fn end(mut self) {
        signal(&self.0.id().to_string(), "-TERM");
        assert!(self.0.wait().expect("our child").success());
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

pub(crate) fn signal(pid: &str, signal: &str) {
    let sent = Command::new("kill").args([signal, pid]).status().expect("there is a kill");
    assert!(sent.success());
}

#[test]
fn requests_find_their_nodes_by_address_alone() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    if !can_build("requests_find_their_nodes_by_address_alone") {
        return;
    }
    let routed = Routed::up();
    let ways = routed.ways();
    routed.reach(&ways);
    let status = routed.lab.run(0, &["keyway", "status", "--json"]).expect(0).json();
    let members = status["members"].as_array().unwrap();
    let content = members.iter().find_map(|it| it["switch"]["content"].as_object()).unwrap();
    let can = serde_json::to_value(Capabilities::ADDRESSES).unwrap();
    assert_eq!((&content["plane"], &content["capabilities"]), (&"routes".into(), &can));
    // Multigets pass the switch's process, as ever.
    routed.lab.run(0, &["keyway", "put", "greeting", "hello"]).expect(0);
    let mget = routed.lab.run(0, &["keyway", "mget", "greeting", "fig", "--json"]).expect(1);
    assert!(mget.stdout.contains("hello"), "{mget:?}");

    // Without its agent the router goes on, and the next one puts right what is wrong.
    routed.on("sw", "ip -6 route add fd77:1:0:2000::/56 via fd77::1:2 dev p-n2 proto static");
    let foreign = "fd77:1:0:2000::/56 via fd77::1:2";
    routed.kill_switch();
    routed.reach(&ways);
    routed
        .on("sw", "ip -6 route add fd77:1:0:1001:4:: via fd77::3:1 dev p-k1 proto 107 metric 7700");
    let taken = routed.routes().remove(3);
    let taken: Vec<&str> = taken.split(' ').collect();
    routed.on("sw", &format!("ip -6 route del {} proto 107", taken[0]));
    let next = routed.start_switch();
    routed.settle();
    routed.reach(&ways);
    assert!(routed.routes().iter().all(|it| !it.contains("fd77:1:0:1001:4::")));

    // One that is asked to end takes its routes with it, and no others.
    next.end();
    assert_eq!(routed.routes(), [""; 0]);
    assert!(routed.on("sw", "ip -6 route show proto static").contains(foreign));
}

/// Clients ask at the addresses of keys. The switch's process sees nothing of it, and may be dead.
#[test]
fn clients_ask_at_the_addresses_of_keys_also_when_the_agent_is_dead() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    if !can_build("clients_ask_at_the_addresses_of_keys_also_when_the_agent_is_dead") {
        return;
    }
    let routed = Routed::up();
    let service: SocketAddr = "[fd77::ff:1]:7700".parse().unwrap();
    let connect = || Client::connect(&[service][..], Options::default()).expect("a socket");
    let space = routed.lab.on("c0", || connect().keyspace("default").expect("it is there"));
    let write_and_read_all = |value: &str| {
        for key in (0..50).map(|number| format!("key-{number}")) {
            let put = space.put(key.as_bytes(), value.as_bytes(), PutOptions::default());
            put.into_result().expect("it is written");
            let found = space.get(key.as_bytes()).into_result().expect("it is read");
            assert_eq!(found.expect("it is there").value, value.as_bytes(), "{key}");
        }
    };
    write_and_read_all("first");

    // What is read much comes to have a route of its own, to the cache.
    let cache = SocketAddr::new([10, 77, 3, 1].into(), routed.switch.port());
    let hits = || {
        let reads = routed.lab.on("c0", || samples(cache, "keyway_cache_reads"));
        let hits = reads.into_iter().filter(|(labels, _)| labels.contains("\"hit\""));
        hits.map(|(_, count)| count).sum::<u64>()
    };
    let cached = wait(|| {
        (0..100).for_each(|_| drop(space.get(b"key-7").into_result().expect("it is read")));
        (hits() > 100).then_some(())
    });
    assert!(cached.is_some(), "{} hits; {:#?}", hits(), routed.routes());
    let alone = routed.routes().into_iter().filter(|it| it.contains(" via fd77::3:1 "));
    assert!(alone.count() > 0, "{:#?}", routed.routes());
    write_and_read_all("second");
    let packets = routed.lab.on("c0", || samples(routed.switch, "keyway_switch_packets"));
    let seen = |op: &str| packets.iter().find(|(labels, _)| labels.contains(op)).map(|it| *it.1);
    assert_eq!((seen("\"get\""), seen("\"put\"")), (Some(0), Some(0)), "{packets:?}");

    routed.kill_switch();
    write_and_read_all("third");
}

/// TCP and ICMP between other hosts of the rack go through the router while it is under load.
#[test]
fn what_has_nothing_to_do_with_keys_is_not_touched() {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    if !can_build("what_has_nothing_to_do_with_keys_is_not_touched") {
        return;
    }
    let routed = Routed::up();
    let (address, node) = routed.explain("apple", ContentClass::Read);
    let far = SocketAddrV6::new(node, PORT, 0, 0);
    let listener = routed.lab.on("n1", || TcpListener::bind(("::", PORT)).unwrap());
    let busy = routed.lab.on("c0", || UdpSocket::bind("[::]:0").unwrap());
    let near: SocketAddr = "[fd77::1:1]:9999".parse().unwrap();
    let mut stream = routed.lab.on("c0", || TcpStream::connect(near).expect("it is routed"));
    let (mut served, _) = listener.accept().expect("somebody has connected");
    // Whoever waits for the other in vain says so, and does not wait for ever.
    for end in [&stream, &served] {
        end.set_read_timeout(Some(6 * WAIT)).unwrap();
        end.set_write_timeout(Some(6 * WAIT)).unwrap();
    }
    let ends = AtomicBool::new(false);
    let sent = thread::scope(|scope| {
        let _ends = RaiseOnDrop(&ends);
        let load = scope.spawn(|| {
            let (mut sent, at) = (0u64, SocketAddrV6::new(address, far.port(), 0, 0));
            while !ends.load(Ordering::Relaxed) {
                // Nobody listens there: what the node complains of is of no interest.
                sent += u64::from(busy.send_to(&[7; 100], at).is_ok());
            }
            sent
        });
        scope.spawn(|| {
            let mut all = Vec::new();
            served.read_to_end(&mut all).expect("it comes whole");
            served.write_all(&all).expect("it goes back");
            served.shutdown(Shutdown::Write).expect("it is told that this is all");
        });
        let all: Vec<u8> = (0..4_000_000u32).map(|at| at.to_le_bytes()[0]).collect();
        stream.write_all(&all).expect("it goes there");
        stream.shutdown(Shutdown::Write).unwrap();
        let mut back = Vec::new();
        stream.read_to_end(&mut back).expect("it comes back");
        assert!(back == all, "{} bytes came back", back.len());
        let pings = routed.on("c0", "ping -6 -c 20 -i 0.02 -W 5 fd77::1:2");
        assert!(pings.contains(" 0% packet loss"), "{pings}");
        pause(Duration::from_millis(100));
        ends.store(true, Ordering::Relaxed);
        load.join().expect("it sends")
    });
    println!("{sent} datagrams besides");
    assert!(sent > 10_000, "there was load");
}
