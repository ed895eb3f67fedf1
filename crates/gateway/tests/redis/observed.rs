//! What a gateway tells of itself: each figure is held against what was done.

use crate::raw::{Raw, command, options, put, start};
use gateway::{Gateway, HotKey, HotKeys, Options};
use runtime::admin::Admin;
use runtime::roles::Roles;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use wire::layout::metric;
use wire::metric::{Kind, Metric};

const METRICS: [Metric; 18] = [
    metric::GATEWAY_CONNECTIONS,
    metric::GATEWAY_CONNECTIONS_MAX,
    metric::GATEWAY_ACCEPTED,
    metric::GATEWAY_REJECTED,
    metric::GATEWAY_COMMANDS,
    metric::GATEWAY_LATENCY_SECONDS,
    metric::GATEWAY_ERRORS,
    metric::GATEWAY_PROTOCOL_ERRORS,
    metric::GATEWAY_RECEIVED_BYTES,
    metric::GATEWAY_SENT_BYTES,
    metric::GATEWAY_RUNNING,
    metric::GATEWAY_BUFFERED_BYTES,
    metric::GATEWAY_HELD_BACK,
    metric::GATEWAY_HELD_BYTES,
    metric::GATEWAY_HELD_BYTES_MAX,
    metric::GATEWAY_ENDED,
    metric::GATEWAY_WRONG_PASSWORDS,
    metric::GATEWAY_RESIDENT_BYTES,
];

/// The admin server of a gateway, as `keyway gateway --metrics` starts it.
fn serve(gateway: &Gateway) -> Admin {
    let roles = Roles::default();
    roles.others.add(gateway.metrics());
    Admin::start("127.0.0.1:0".parse().unwrap(), roles).unwrap()
}

fn http(at: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    answer
}

/// The value of a sample, by all of its line but that.
#[track_caller]
fn sample(text: &str, name: &str) -> f64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{name} in\n{text}")).trim().parse().unwrap()
}

/// How often a client had to wait because of that.
#[track_caller]
fn held(admin: &Admin, why: &str) -> f64 {
    let text = http(admin.local(), "/metrics");
    sample(&text, &format!("keyway_gateway_held_back_total{{why=\"{why}\"}}"))
}

/// A figure of INFO.
#[track_caller]
fn figure(info: &str, name: &str) -> u64 {
    let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.unwrap_or_else(|| panic!("{name} in\n{info}")).trim().parse().unwrap()
}

#[test]
fn every_metric_of_a_gateway_is_exposed_and_no_other() {
    let gateway = start();
    let admin = serve(&gateway);
    Raw::connect(gateway.local()).ask("PING\r\nnosuch\r\n", "+PONG\r\n");
    let text = http(admin.local(), "/metrics");
    for metric in METRICS {
        let kind = match metric.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let header = format!("# TYPE {} {kind}\n", metric.name);
        assert_eq!(text.matches(&header).count(), 1, "{header} once in\n{text}");
    }
    assert_eq!(text.matches("# TYPE keyway_gateway_").count(), METRICS.len());
    assert!(http(admin.local(), "/healthz").contains("\"ok\""));
    // The figures go with the gateway.
    gateway.stop();
    assert!(!http(admin.local(), "/metrics").contains("keyway_gateway_"));
}

#[test]
fn metrics_and_latencies_are_those_of_what_was_done() {
    put("seen", "12345");
    let gateway = Gateway::start(Options { maxclients: 2, ..options() }).unwrap();
    let admin = serve(&gateway);
    let mut client = Raw::connect(gateway.local());
    let get = command(&["GET", "seen"]);
    client.ask(get.repeat(5), "$5\r\n12345\r\n".repeat(5));
    let wrong = "-ERR value is not an integer or out of range\r\n";
    client.ask(command(&["INCRBY", "seen", "x"]), wrong);
    client.ask("GET\r\n", "-ERR wrong number of arguments for 'get' command\r\n");
    let mut broken = Raw::connect(gateway.local());
    assert_eq!(Raw::connect(gateway.local()).rest(), "-ERR max number of clients reached\r\n");
    broken.send("*x\r\n");
    broken.rest();
    crate::raw::eventually(|| http(admin.local(), "/metrics").contains("_connections{} 1\n"));
    let text = http(admin.local(), "/metrics");
    let is = |name: &str, value: f64| {
        let name = format!("keyway_gateway_{name}");
        assert!((sample(&text, &name) - value).abs() < 1e-9, "{name} is to be {value}:\n{text}");
    };
    is("accepted_total{}", 2.0);
    is("rejected_total{}", 1.0);
    is("connections_max{}", 2.0);
    is("protocol_errors_total{}", 1.0);
    is("commands_total{command=\"get\",outcome=\"ok\"}", 5.0);
    is("commands_total{command=\"get\",outcome=\"refused\"}", 1.0);
    is("commands_total{command=\"incrby\",outcome=\"error\"}", 1.0);
    is("errors_total{code=\"ERR\"}", 3.0);
    is("latency_seconds_count{command=\"get\"}", 5.0);
    is("latency_seconds_bucket{le=\"+Inf\",command=\"get\"}", 5.0);
    let incrby = command(&["INCRBY", "seen", "x"]).len();
    is("received_bytes_total{}", (get.len() * 5 + incrby + "GET\r\n*x\r\n".len()) as f64);
    is("running{}", 0.0);
    is("buffered_bytes{direction=\"in\"}", 0.0);
    assert!(sample(&text, "keyway_gateway_latency_seconds_sum{command=\"get\"}") > 0.0);
    assert!(sample(&text, "keyway_gateway_resident_bytes{}") > 1e6);
    // INFO and LATENCY tell the same.
    let info = client.text("INFO everything\r\n");
    assert!(info.contains("\r\ncmdstat_get:calls=5,usec="), "{info}");
    assert_eq!(figure(&info, "total_commands_processed"), 6);
    client.ask(
        "LATENCY HISTOGRAM incrby\r\n",
        "*2\r\n$6\r\nincrby\r\n*4\r\n$5\r\ncalls\r\n:1\r\n$14\r\nhistogram_usec\r\n*2\r\n",
    );
}

#[test]
fn figures_of_info_are_true() {
    put("told", "1");
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    let _other = Raw::connect(gateway.local());
    client.ask("PING\r\n", "+PONG\r\n");
    crate::raw::eventually(|| figure(&client.text("INFO clients\r\n"), "connected_clients") == 2);
    client.ask("SET goes-some-day 1 EX 1000\r\n", "+OK\r\n");
    client.ask("CONFIG RESETSTAT\r\n", "+OK\r\n");
    // What the reset itself was answered with is counted after it.
    let before = client.text("INFO stats\r\n");
    let sent_before = figure(&before, "total_net_output_bytes");
    let read_before = figure(&before, "total_net_input_bytes");
    client.ask("PING\r\n", "+PONG\r\n");
    let info = client.text("INFO everything\r\n");
    assert_eq!(figure(&info, "process_id"), u64::from(std::process::id()));
    assert_eq!(figure(&info, "tcp_port"), u64::from(gateway.local().port()));
    let length = |text: &str| format!("${}\r\n{text}\r\n", text.len()).len() as u64;
    let sent = figure(&info, "total_net_output_bytes") - sent_before;
    assert_eq!(sent, length(&before) + "+PONG\r\n".len() as u64);
    let read = figure(&info, "total_net_input_bytes") - read_before;
    assert_eq!(read, "PING\r\nINFO everything\r\n".len() as u64);
    let memory = figure(&info, "used_memory");
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let resident: u64 = resident.trim().split(' ').next().unwrap().parse().unwrap();
    assert!(memory.abs_diff(resident << 10) < memory / 2, "{memory} and {resident} kB");
    assert!(figure(&info, "used_memory_peak") >= memory);
    assert!(info.contains("\r\ncluster_enabled:0\r\n") && info.contains("\r\nrole:master\r\n"));
    let human = info.lines().find_map(|it| it.strip_prefix("used_memory_human:")).unwrap();
    assert!(human.ends_with('M') || human.ends_with('G'), "{human}");
    // The keys are those of the cluster, counted.
    let text = client.text("INFO keyspace\r\n");
    let counted = text.strip_prefix("# Keyspace\r\ndb0:keys=").unwrap().trim_end();
    let (keys, expiring) = counted.split_once(",expires=").unwrap();
    let (keys, expiring): (u64, u64) = (keys.parse().unwrap(), expiring.parse().unwrap());
    assert!((1..keys).contains(&expiring), "{text}: there is one more that stays");
}

#[test]
fn keys_that_were_there_and_that_were_not_are_counted() {
    put("{looked}up", "value");
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    let looked = |client: &mut Raw| {
        let info = client.text("INFO stats\r\n");
        ["keyspace_hits", "keyspace_misses"].map(|name| figure(&info, name))
    };
    assert_eq!(looked(&mut client), [0, 0]);
    let (found, absent) = ("$5\r\nvalue\r\n", "$-1\r\n");
    let gets = "GET {looked}up\r\nGET {looked}not\r\n".repeat(10);
    client.ask(gets, format!("{found}{absent}").repeat(10));
    assert_eq!(looked(&mut client), [10, 10]);
    client
        .ask("MGET {looked}up {looked}not {looked}up\r\n", format!("*3\r\n{found}{absent}{found}"));
    client.ask("EXISTS {looked}up {looked}not\r\nTTL {looked}up\r\n", ":1\r\n:-1\r\n");
    assert_eq!(looked(&mut client), [14, 12]);
    // A value that a SET before has told, one that streams, and those of a transaction.
    let long = "v".repeat(300_000);
    client.ask(command(&["SET", "{looked}long", &long]), "+OK\r\n");
    client.ask("SET {looked}new 1\r\nGET {looked}new\r\n", "+OK\r\n$1\r\n1\r\n");
    client.ask("GET {looked}long\r\n", format!("$300000\r\n{long}\r\n"));
    client
        .ask("MULTI\r\nGET {looked}up\r\nGETDEL {looked}not\r\n", "+OK\r\n+QUEUED\r\n+QUEUED\r\n");
    client.ask("EXEC\r\n", format!("*2\r\n{found}{absent}"));
    assert_eq!(looked(&mut client), [17, 13]);
    client
        .ask("INCR {looked}new\r\nDEL {looked}not\r\nSTRLEN {looked}not\r\n", ":2\r\n:0\r\n:0\r\n");
    assert_eq!(looked(&mut client), [17, 13]);
    let info = client.text("INFO\r\n");
    assert!(info.contains("\r\nevicted_keys:0\r\n") && !info.contains("expired_keys"), "{info}");
    client.ask("WATCH a b\r\n", "+OK\r\n");
    let info = client.text("INFO clients\r\n");
    assert_eq!([figure(&info, "watching_clients"), figure(&info, "total_watched_keys")], [1, 2]);
    client.ask("CONFIG RESETSTAT\r\n", "+OK\r\n");
    assert_eq!(looked(&mut client), [0, 0]);
}

/// A gateway whose controller tells of these keys; how often it was asked.
fn with_hot_keys() -> (Gateway, Arc<AtomicU32>) {
    let key = |key: &'static str, reads, writes, copies| HotKey {
        key: key.into(),
        reads,
        writes,
        copies,
    };
    let asked = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&asked);
    let hot = HotKeys::new(move || {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(vec![key("cool", 1, 0, 0), key("hot", 70, 30, 2), key("warm", 0, 40, 0)])
    });
    let mut options = options();
    options.databases[0].hot = Some(hot);
    (Gateway::start(options).unwrap(), asked)
}

/// Milliseconds that two clocks may be apart.
const APART: u64 = 1_000;

#[test]
fn hot_keys_are_told_in_the_form_of_redis() {
    let (gateway, _) = with_hot_keys();
    let mut client = Raw::connect(gateway.local());
    let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
    let ranking = |name: &str, rows: &[(&str, u64)]| {
        let words: String =
            rows.iter().map(|(key, figure)| format!("{}:{figure}\r\n", bulk(key))).collect();
        format!("{}*{}\r\n{words}", bulk(name), rows.len() * 2)
    };
    let lists = ranking("by-requests-per-second", &[("hot", 100), ("warm", 40), ("cool", 1)])
        + &ranking("by-reads-per-second", &[("hot", 70), ("cool", 1)])
        + &ranking("by-writes-per-second", &[("warm", 40), ("hot", 30)])
        + &ranking("copies", &[("hot", 2)]);
    let head = |active: u8| {
        let two = [("tracking-active", active), ("sample-ratio", 1)]
            .map(|(name, value)| format!("{}:{value}\r\n", bulk(name)))
            .concat();
        format!("{two}{}*1\r\n*2\r\n:0\r\n:16383\r\n", bulk("selected-slots"))
    };
    // One server's reply, as an element of an array. Gives the figures before the lists.
    let told = |client: &mut Raw, active: u8, lists: &str| {
        client.ask("HOTKEYS GET\r\n", format!("*1\r\n*22\r\n{}", head(active)));
        let figures = [
            "all-commands-all-slots-us",
            "net-bytes-all-commands-all-slots",
            "collection-start-time-unix-ms",
            "collection-duration-ms",
        ]
        .map(|name| {
            client.expect(bulk(name));
            client.line()[1..].parse::<u64>().unwrap()
        });
        client.expect(lists);
        figures
    };
    let [.., since, lasted] = told(&mut client, 1, &lists);
    assert!(since > 1_500_000_000_000, "{since}");
    client.ask("HOTKEYS STOP\r\nHOTKEYS RESET\r\n", "$-1\r\n+OK\r\n");

    // Somebody wants to know from now on, and the hottest only.
    client.ask("HOTKEYS START METRICS 2 CPU NET COUNT 1 SAMPLE 5\r\n", "+OK\r\n");
    let busy = "-ERR hotkey tracking session already in progress\r\n";
    client.ask("HOTKEYS START METRICS 1 CPU\r\n", busy);
    let first = ranking("by-requests-per-second", &[("hot", 100)])
        + &ranking("by-reads-per-second", &[("hot", 70)])
        + &ranking("by-writes-per-second", &[("warm", 40)])
        + &ranking("copies", &[("hot", 2)]);
    let sent = command(&["GET", "nosuch"]);
    client.ask(&sent, "$-1\r\n");
    let [micros, bytes, later, _] = told(&mut client, 1, &first);
    assert!(micros > 0 && bytes >= sent.len() as u64, "{micros} us, {bytes} bytes");
    assert!(later + APART >= since + lasted, "{since}, {lasted}, then {later}");
    let active = "-ERR hotkey tracking session in progress, stop tracking first\r\n";
    client.ask("HOTKEYS RESET\r\nHOTKEYS STOP\r\n", format!("{active}+OK\r\n"));
    let [micros, bytes, began, lasted] = told(&mut client, 0, &first);
    assert!(began.abs_diff(later) <= APART, "{began} and {later}");
    let [micros_then, bytes_then, _, lasted_then] = told(&mut client, 0, &first);
    assert_eq!([micros_then, bytes_then, lasted_then], [micros, bytes, lasted], "it has ended");
    client.ask("HOTKEYS RESET\r\n", "+OK\r\n");
    let [_, _, again, _] = told(&mut client, 1, &lists);
    assert!(again.abs_diff(since) <= APART, "since the gateway's start again");

    let mut client = Raw::connect(gateway.local());
    client.send("HELLO 3\r\nHOTKEYS GET\r\n");
    while client.line() != "%11" {}
}

#[test]
fn what_hotkeys_start_is_to_do_is_checked_as_redis_does() {
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    for (words, error) in [
        ("", "METRICS parameter is required"),
        ("COUNT 3", "METRICS parameter is required"),
        ("METRICS 0 CPU", "METRICS count must be > 0 and <= 2"),
        ("METRICS 2 CPU", "METRICS count does not match number of metric types provided"),
        ("METRICS 2 CPU CPU", "METRICS CPU defined more than once!"),
        ("METRICS 1 DISK", "METRICS no valid metrics passed. Supported: CPU|NET"),
        ("METRICS 1 CPU COUNT 65", "COUNT must be between 1 and 64"),
        ("METRICS 1 CPU DURATION 0", "DURATION must be between 1 and 1000000"),
        ("METRICS 1 NET SAMPLE x", "SAMPLE ratio must be positive"),
        ("METRICS 1 NET SLOTS 1 0", "SLOTS parameter cannot be used in non-cluster mode"),
        ("METRICS 1 NET what", "syntax error"),
    ] {
        client.ask(format!("HOTKEYS START {words}\r\n"), format!("-ERR {error}\r\n"));
    }
}

#[test]
fn the_frequency_of_a_key_is_what_is_asked_of_it() {
    put("hot", "v");
    put("unasked", "v");
    let (gateway, asked) = with_hot_keys();
    let mut client = Raw::connect(gateway.local());
    client.ask("OBJECT FREQ hot\r\nOBJECT FREQ unasked\r\n", ":100\r\n:0\r\n");
    client.ask("OBJECT FREQ nosuch\r\n", "$-1\r\n");
    client.ask("OBJECT FREQ hot\r\n".repeat(100), ":100\r\n".repeat(100));
    assert!(asked.load(Ordering::Relaxed) < 50, "an answer serves for a while");
    let without = start();
    let mut client = Raw::connect(without.local());
    let told_of_none = "and this gateway was told of none\r\n";
    let text = format!("-ERR access frequencies are known to controllers, {told_of_none}");
    client.ask("OBJECT FREQ hot\r\n", text);
    let text = format!("-ERR the hot keys are known to controllers, {told_of_none}");
    client.ask("HOTKEYS GET\r\n", text);
}

#[test]
fn what_holds_clients_back_is_counted() {
    put("held", &"v".repeat(1_000));
    let gateway = start();
    let admin = serve(&gateway);
    let held = |why| held(&admin, why);
    let mut client = Raw::connect(gateway.local());
    client.ask("PING\r\n", "+PONG\r\n");
    assert_eq!(["order", "overlap", "replies", "pause"].map(held), [0.0; 4]);
    // A command about several keys lets none in behind it, if it does not read or write each.
    let exists = command(&["EXISTS", "held", "nosuch"]);
    client.send(exists.repeat(20));
    crate::raw::eventually(|| held("order") > 0.0);
    let mut deaf = TcpStream::connect(gateway.local()).unwrap();
    deaf.set_write_timeout(Some(std::time::Duration::from_secs(1))).unwrap();
    let part = command(&["GET", "held"]).repeat(1_000);
    let sent = (0..1_000).take_while(|_| deaf.write_all(&part).is_ok()).count();
    assert!(sent < 1_000);
    crate::raw::eventually(|| held("replies") > 0.0);
    Raw::connect(gateway.local()).ask("CLIENT PAUSE 100000\r\n", "+OK\r\n");
    let mut paused = Raw::connect(gateway.local());
    paused.send("GET held\r\n");
    crate::raw::eventually(|| held("pause") > 0.0);
    drop(paused);
    Raw::connect(gateway.local()).ask("CLIENT UNPAUSE\r\n", "+OK\r\n");
}

#[test]
fn what_is_done_to_each_key_alone_holds_no_others_up() {
    put("asked", "old");
    let gateway = start();
    let admin = serve(&gateway);
    let mut client = Raw::connect(gateway.local());
    let get = command(&["GET", "asked"]);
    client.ask(get.repeat(1_000), "$3\r\nold\r\n".repeat(1_000));
    assert!(held(&admin, "overlap") > 0.0, "as many as may be were under way");
    let set = command(&["SET", "asked", "new"]);
    let (before, after) = ("$3\r\nold\r\n".repeat(20), "$3\r\nnew\r\n".repeat(20));
    client.ask([get.repeat(20), set, get.repeat(20)].concat(), format!("{before}+OK\r\n{after}"));
    let mget = command(&["MGET", "asked", "absent", "asked"]);
    let found = "*3\r\n$3\r\nnew\r\n$-1\r\n$3\r\nnew\r\n";
    client.ask(mget.repeat(200), found.repeat(200));
    let mset = command(&["MSET", "beside", "1", "asked", "2"]);
    let then = "*3\r\n$1\r\n2\r\n$-1\r\n$1\r\n2\r\n";
    client.ask([mget.clone(), mset, mget].concat(), format!("{found}+OK\r\n{then}"));
    assert_eq!(held(&admin, "order"), 0.0, "also where one waits for others");
}
