//! Packets of those who have no keys, or not the right ones, at the sockets of a switch and a node:
//! nothing comes of them but counters.

use crate::config::Cluster;
use crate::full::Redis;
use crate::processes::Processes;
use crate::secured::asker::Asker;
use crate::secured::certs;
use envelope::{ClientEnvelopes, ClientOpened, ENVELOPE_LEN, ENVELOPE_MAGIC, Pass, Passes};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;
use wire::{EnvelopeBody, EnvelopeKind, EnvelopeRefusal, HEADER_LEN, Header, Op, hop_flag};

/// How long nothing must come.
const SILENCE: Duration = Duration::from_millis(300);
/// How long what should come may take.
const WAIT: Duration = Duration::from_secs(10);

const RIGHTS: &str = "
[[security.rights]]
identity = \"client/reports\"
read = [\"*\"]

[[security.rights]]
identity = \"gateway/2\"
read = [\"*\"]
write = [\"*\"]
acts_for = [\"client/writer\"]
";

/// A cluster with certificates, and one more for a client that may only read.
fn start() -> Processes {
    let mut cluster = Cluster::new().secured();
    cluster.text.push_str(RIGHTS);
    let processes = Processes::start(cluster, &[1, 2, 3]);
    let dir = certs(&processes).display().to_string();
    processes.ask(&format!("certs issue client reports --dir {dir}")).expect(0);
    processes.ask("put greeting hello").expect(0);
    processes
}

/// Where data packets go: the switch and a node.
fn targets(processes: &Processes) -> [(SocketAddr, SocketAddr); 2] {
    let cluster = &processes.cluster;
    let [node, node_admin] = cluster.nodes[0];
    [(cluster.services[0], cluster.switch_admins[0]), (node, node_admin)]
}

/// What a role has refused, for this reason.
fn refused(asker: &Asker, admin: SocketAddr, why: EnvelopeRefusal) -> u64 {
    let page = asker.ask("GET", admin, "/metrics", &[]).body;
    let label = format!("why=\"{}\"}} ", why.name());
    let lines = page.lines().filter(|line| line.starts_with("keyway_envelopes_refused_total"));
    let count = lines.filter_map(|line| line.split_once(&label)).map(|(_, count)| count);
    count.map(|count| count.parse::<u64>().unwrap()).sum()
}

fn all_refused(asker: &Asker, admin: SocketAddr) -> u64 {
    EnvelopeRefusal::ALL.into_iter().map(|why| refused(asker, admin, why)).sum()
}

fn packet(client: u64, op: Op, hop_flags: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = Header {
        client,
        seq: 1,
        op: op as u8,
        keyspace: 1,
        key_len: 8,
        hop_flags,
        ..Header::default()
    };
    wire::emit(&mut bytes, &header, &[b"greetinghacked"]);
    bytes
}

fn in_made_up_envelope(kind: u8, period: u8, packet: &[u8]) -> Vec<u8> {
    let (edge, end) = (0x1122_3344_5566_7788, 0x99aa_bbcc_ddee_ff00);
    let body = EnvelopeBody { magic: ENVELOPE_MAGIC, kind, period, echo: 0, edge, end };
    [&body.to_bytes()[..], packet].concat()
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(SILENCE)).unwrap();
    socket
}

fn is_silent(socket: &UdpSocket) -> bool {
    socket.recv(&mut [0; 2_000]).is_err()
}

/// Waits until that many more datagrams were refused.
fn wait_for(asker: &Asker, admin: SocketAddr, expected: u64) {
    for _ in 0..200 {
        if all_refused(asker, admin) >= expected {
            return;
        }
        std::thread::park_timeout(Duration::from_millis(50));
    }
    panic!("{} of {expected} were refused at {admin}", all_refused(asker, admin));
}

/// Whether all is as it was.
fn assert_unharmed(processes: &Processes, before: &serde_json::Value) {
    assert_eq!(processes.ask("get greeting").expect(0).stdout, "hello");
    let now = processes.status().unwrap();
    for what in ["revision", "covered", "envelopes"] {
        assert_eq!(now[what], before[what], "{what}");
    }
}

#[test]
fn packets_without_keys_are_counted_and_nothing_else() {
    let processes = start();
    let asker = Asker::new(&certs(&processes).join("ca.crt"), None);
    let before = processes.status().unwrap();
    let period = envelope::Period::at(before["at_ms"].as_u64().unwrap()).byte();
    for (target, admin) in targets(&processes) {
        let (socket, already) = (socket(), all_refused(&asker, admin));
        let mut sent = 0;
        let mut send = |bytes: &[u8]| {
            socket.send_to(bytes, target).unwrap();
            sent += 1;
        };
        for op in Op::ALL {
            for flags in [0, hop_flag::DIRECT, hop_flag::MISSED] {
                let bare = packet(7, op, flags);
                send(&bare);
                for kind in EnvelopeKind::ALL {
                    send(&in_made_up_envelope(kind as u8, period, &bare));
                }
                send(&in_made_up_envelope(1, period.wrapping_add(100), &bare));
                send(&in_made_up_envelope(9, period, &bare));
                send(&in_made_up_envelope(1, period, &bare[..HEADER_LEN - 1]));
            }
        }
        send(b"");
        send(b"KE");
        send(&in_made_up_envelope(1, period, &[]));
        wait_for(&asker, admin, already + sent);
        assert!(is_silent(&socket), "nobody is answered");
        // Of what clients may send here, each is looked at closely.
        let (all, requests) = (Op::ALL.len() as u64, 10);
        for (why, least) in [
            (EnvelopeRefusal::Bare, 3 * all),
            (EnvelopeRefusal::Period, 3 * all),
            (EnvelopeRefusal::Sender, 3 * all),
            (EnvelopeRefusal::Malformed, 3 * all),
            (EnvelopeRefusal::Edge, requests),
        ] {
            assert!(refused(&asker, admin, why) >= least, "{}", why.name());
        }
    }
    assert_unharmed(&processes, &before);
}

/// A stolen pass, of a client that may only read.
fn stolen(processes: &Processes) -> Pass {
    let dir = certs(processes);
    let asker = Asker::new(&dir.join("ca.crt"), Some(&dir.join("client-reports.crt")));
    let json = [("content-type", "application/json")];
    let asked = asker.ask("POST", processes.cluster.admins[0], "/v1/pass", &json);
    assert_eq!(asked.status, Some(200), "{asked:?}");
    serde_json::from_str(&asked.body).unwrap()
}

/// Sends a packet, with a cookie if one has to be shown.
fn send(with: &mut ClientEnvelopes, socket: &UdpSocket, to: SocketAddr, packet: &[u8]) {
    let out = |envelope: &[u8], packet: &[u8]| [envelope, packet].concat();
    with.seal(Duration::from_secs(1), to.into(), packet, |it| {
        socket.send_to(&out(it, packet), to).unwrap();
    });
    let mut buffer = [0; 2_000];
    if let Ok(len) = socket.recv(&mut buffer)
        && with.open(to.into(), &mut buffer[..len]) == Ok(ClientOpened::Cookie)
    {
        assert_eq!(len, ENVELOPE_LEN, "shorter than what was asked");
        with.resend(|to, it, packet| {
            socket.send_to(&out(it, packet), SocketAddr::from(to)).unwrap();
        });
    }
}

#[test]
fn a_stolen_pass_is_of_no_use_beyond_its_rights() {
    let processes = start();
    let asker = Asker::new(&certs(&processes).join("ca.crt"), None);
    let before = processes.status().unwrap();
    let passes = Passes::new(stolen(&processes));
    let client = passes.seat().unwrap().client();
    for (target, admin) in targets(&processes) {
        let socket = socket();
        let mut with = ClientEnvelopes::new(passes.clone());
        let writes = [Op::Put, Op::Del, Op::Cas, Op::Incr, Op::Batch, Op::Range];
        for op in writes {
            send(&mut with, &socket, target, &packet(client, op, hop_flag::DIRECT));
        }
        assert!(is_silent(&socket), "it may not write, so it is not answered");
        let count = writes.len() as u64;
        assert!(refused(&asker, admin, EnvelopeRefusal::Right) >= count);
        assert!(refused(&asker, admin, EnvelopeRefusal::NoCookie) >= 1);
        // In another's name, and as a member.
        send(&mut with, &socket, target, &packet(client ^ 1 << 20, Op::Get, hop_flag::DIRECT));
        send(&mut with, &socket, target, &packet(client, Op::ChainWrite, hop_flag::DIRECT));
        send(&mut with, &socket, target, &packet(0, Op::CacheRules, hop_flag::DIRECT));
        assert!(is_silent(&socket));
        assert!(refused(&asker, admin, EnvelopeRefusal::Malformed) >= 2);
    }
    assert_unharmed(&processes, &before);
}

#[test]
fn clients_have_their_rights_and_gateways_and_loads_a_pass() {
    let mut processes = start();
    let dir = certs(&processes).display().to_string();
    let reader = format!("--certs {dir}/client-reports.crt --timeout 1s");
    assert_eq!(processes.ask(&format!("{reader} get greeting")).expect(0).stdout, "hello");
    processes.ask(&format!("{reader} put greeting hacked")).expect(4);
    assert_eq!(processes.ask("get greeting").expect(0).stdout, "hello");

    processes.ask(&format!("certs issue gateway 1 --address 127.0.0.1 --dir {dir}")).expect(0);
    let gateway = "gateway --json --listen 127.0.0.1:0 --metrics 127.0.0.1:0 --certs";
    let line = processes.run_client("gateway", &format!("{gateway} {dir}/gateway-1.crt"));
    let said: serde_json::Value = serde_json::from_str(&line).unwrap();
    let at: SocketAddr = said["redis"].as_str().unwrap().parse().unwrap();
    let mut redis = TcpStream::connect(at).unwrap();
    redis.set_read_timeout(Some(WAIT)).unwrap();
    redis.write_all(b"SET a 1\r\nGET greeting\r\nGET a\r\n").unwrap();
    let mut answer = [0; 23];
    redis.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+OK\r\n$5\r\nhello\r\n$1\r\n1\r\n");
    let metrics = said["metrics"].as_str().unwrap().parse().unwrap();
    let asker = Asker::new(&certs(&processes).join("ca.crt"), None);
    let page = asker.ask("GET", metrics, "/metrics", &[]).body;
    for why in EnvelopeRefusal::ALL {
        let row = format!("_refused_total{{role=\"gateway\",why=\"{}\"}} ", why.name());
        assert!(page.contains(&row), "{row} in {page}");
    }

    let load = "bench --json --threads 1 --keys 100 --load --duration 1s --rate 500 --workload A";
    let measured = processes.ask(load).expect(0).json();
    let endings = &measured["run"]["summary"]["all"]["endings"];
    assert_eq!((&endings["unknown"], &endings["refused"]), (&0.into(), &0.into()), "{endings}");
    processes.ask(&format!("certs rotate --envelopes --dir {dir}")).expect(0);
    let status = processes.wait("it goes on", |it| it["covered"] == true);
    assert_eq!(status["envelopes"], true);
    assert_eq!(processes.ask("get greeting").expect(0).stdout, "hello");
}

const USERS: &str = "
user default off
user reports on >sesame ~* +@all
user writer on >sesame ~* +@all
";

#[test]
fn a_gateway_acts_for_its_users_by_their_rights_and_for_nobody_whom_it_may_not() {
    let mut processes = start();
    let dir = certs(&processes).display().to_string();
    for gateway in ["1", "2"] {
        processes.ask(&format!("certs issue gateway {gateway} --dir {dir}")).expect(0);
    }
    let users = certs(&processes).join("users.acl");
    std::fs::write(&users, USERS).unwrap();
    std::fs::set_permissions(&users, std::fs::Permissions::from_mode(0o600)).unwrap();
    let gateway = |name: &str| {
        let (users, certs) = (users.display(), format!("--certs {dir}/gateway-{name}.crt"));
        format!(
            "gateway --json --listen 127.0.0.1:0 --timeout 1s --acl-file {users} \
             --act-for-users {certs}"
        )
    };
    let refused = processes.ask(&gateway("2")).expect(3);
    let said = format!("{refused:?}");
    assert!(said.contains("gateway/2 may not act for client/reports"), "{said}");
    let line = processes.run_client("gateway", &gateway("1"));
    let said: serde_json::Value = serde_json::from_str(&line).unwrap();
    let mut redis = Redis::connect(said["redis"].as_str().unwrap().parse().unwrap());
    assert_eq!(redis.ask(&["AUTH", "writer", "sesame"]), "+OK");
    assert_eq!(redis.ask(&["SET", "greeting", "hi"]), "+OK");
    // The same connection, for somebody else.
    assert_eq!(redis.ask(&["AUTH", "reports", "sesame"]), "+OK");
    assert_eq!(redis.ask(&["GET", "greeting"]), "hi");
    let answer = redis.ask(&["SET", "greeting", "hacked"]);
    assert!(answer.starts_with('-'), "{answer}");
    assert_eq!(redis.ask(&["AUTH", "writer", "sesame"]), "+OK");
    assert_eq!(redis.ask(&["APPEND", "greeting", "!"]), ":3");
}
