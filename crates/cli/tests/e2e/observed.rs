//! What a cluster tells of itself while clients use it: `keyway top`, `/metrics` of gateways, and
//! the hot keys as Redis clients ask for them.

use lab::process::pause;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use testkit::flag::RaiseOnDrop;
use testkit::program::{Daemon, Up, keyway};

const KEY: &str = "front-page";
/// Looks until what is to be seen is seen: far more than it takes.
const LOOKS_MAX: usize = 100;
/// Between two looks: nodes tell what is hot ten times a second.
const PAUSE: Duration = Duration::from_millis(100);

/// What a gateway answers up to the end of the connection.
fn ask(at: SocketAddr, commands: &str) -> String {
    let mut stream = TcpStream::connect(at).expect("a gateway");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
    stream.write_all(format!("{commands}QUIT\r\n").as_bytes()).expect("it takes commands");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it closes the connection");
    text
}

/// Reads the key again and again, and does this meanwhile.
fn while_read<T>(at: SocketAddr, work: impl FnOnce() -> T) -> T {
    let enough = AtomicBool::new(false);
    thread::scope(|scope| {
        let _ends = RaiseOnDrop(&enough);
        scope.spawn(|| {
            while !enough.load(Ordering::Relaxed) {
                ask(at, &format!("GET {KEY}\r\n").repeat(200));
            }
        });
        work()
    })
}

/// Asks until that is found.
#[track_caller]
fn find<T>(mut look: impl FnMut() -> Result<T, String>) -> T {
    let mut last = String::new();
    for _ in 0..LOOKS_MAX {
        match look() {
            Ok(found) => return found,
            Err(what) => last = what,
        }
        pause(PAUSE);
    }
    panic!("not found in {LOOKS_MAX} looks: {last}");
}

fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or_else(|| panic!("{name} in {value}"))
}

#[test]
fn top_shows_what_is_asked_for_most_and_the_load_of_every_node() {
    let cluster = Up::start(&["--nodes", "3", "--replicas", "2", "--partitions", "8"]);
    cluster.run(&["put", KEY, "news"]).expect(0);
    let at = cluster.redis.expect("a gateway by default");
    let once = ["top", "--once", "--interval", "600ms"];
    let seen = while_read(at, || {
        find(|| {
            let seen = cluster.run(&[once.as_slice(), &["--json"]].concat()).expect(0).json();
            let hottest = seen.pointer("/keys/0/key").and_then(Value::as_str);
            if hottest == Some(KEY) { Ok(seen) } else { Err(seen.to_string()) }
        })
    });
    assert!(number(&seen, "reads_per_s") > 0 && number(&seen, "imbalance_permille") >= 1_000);
    let nodes = seen.get("nodes").and_then(Value::as_array).expect("nodes");
    assert_eq!(nodes.len(), 3);
    assert!(nodes.iter().map(|node| number(node, "requests_per_s")).sum::<u64>() > 0, "{seen}");
    assert!(nodes.iter().all(|node| number(node, "busy_permille") <= 1_000), "{seen}");
    assert!(nodes.iter().any(|node| number(node, "busy_permille") > 0), "{seen}");
    let key = seen.pointer("/keys/0").expect("a key");
    assert!(number(key, "reads_per_s") > 0 && key.get("keyspace") == Some(&"default".into()));
    // Without a terminal, plain text.
    let text = cluster.run(&once).expect(0).stdout;
    assert!(text.starts_with("switch: ") && text.contains("\nnode  requests/s"), "{text}");
    let ran = cluster.run(&["top", "--once", "--interval", "1ms"]).expect(2);
    assert!(ran.stderr.contains("at least 200 ms"), "{ran:#?}");
}

#[test]
fn redis_clients_are_told_the_hot_keys_of_the_whole_cluster() {
    let small = ["--nodes", "2", "--replicas", "2", "--partitions", "8"];
    let cluster = Up::start(&small);
    cluster.run(&["put", KEY, "news"]).expect(0);
    let at = cluster.redis.expect("a gateway by default");
    // A second gateway, in a process of its own, serves nobody else.
    let mut command = keyway();
    command
        .args(["gateway", "--json", "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"])
        .args(["--service", &cluster.service.to_string()])
        .args(["--admin", &cluster.admin.to_string()]);
    let (gateway, line) = Daemon::start(&mut command);
    let ready: Value = serde_json::from_str(&line).expect("the ready line is JSON");
    let address = |name: &str| -> SocketAddr {
        let text = ready.get(name).and_then(Value::as_str).unwrap_or_else(|| panic!("{ready}"));
        text.parse().expect("an address")
    };
    let (other, metrics) = (address("redis"), address("metrics"));
    let ranked = format!("$22\r\nby-requests-per-second\r\n*2\r\n$10\r\n{KEY}\r\n:");
    while_read(at, || {
        for gateway in [at, other] {
            find(|| {
                let told = ask(gateway, "HOTKEYS GET\r\n");
                if told.contains(&ranked) { Ok(()) } else { Err(told) }
            });
            find(|| {
                let told = ask(gateway, &format!("OBJECT FREQ {KEY}\r\n"));
                let frequency = told.strip_prefix(':').and_then(|it| it.split('\r').next());
                match frequency.and_then(|it| it.parse::<u64>().ok()) {
                    Some(1..) => Ok(()),
                    _ => Err(told),
                }
            });
        }
    });
    let page = |at: SocketAddr| {
        let mut answer = ureq::get(format!("http://{at}/metrics")).call().expect("a page");
        answer.body_mut().read_to_string().expect("text")
    };
    let object = "keyway_gateway_commands_total{command=\"object\",outcome=\"ok\"} ";
    for at in [cluster.admin, metrics] {
        let text = page(at);
        assert!(text.contains(object), "{text}");
    }
    assert!(page(cluster.admin).contains("keyway_node_cpu_seconds_total{node=\"2\"} "));
    assert!(!page(metrics).contains("keyway_node_"));
    assert_eq!(gateway.interrupt(), Some(0));
}
