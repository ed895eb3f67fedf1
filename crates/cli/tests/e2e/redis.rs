//! The way in for Redis clients, as the program offers it.

use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use testkit::program::{Daemon, Up, keyway, run};

/// What a gateway answers up to the end of the connection.
fn ask(at: SocketAddr, commands: &str) -> String {
    let mut stream = TcpStream::connect(at).expect("a gateway");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
    stream.write_all(format!("{commands}QUIT\r\n").as_bytes()).expect("it takes commands");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it closes the connection");
    text
}

#[test]
fn a_cluster_in_one_process_serves_redis_clients() {
    let cluster = Up::start(&["--nodes", "3", "--replicas", "2", "--partitions", "8"]);
    cluster.run(&["put", "greeting", "hello"]).expect(0);
    let at = cluster.redis.expect("a gateway by default");
    assert_eq!(ask(at, "GET greeting\r\nWAIT 1 0\r\n"), "$5\r\nhello\r\n:1\r\n+OK\r\n");
    assert_eq!(cluster.interrupt(), Some(0));
}

#[test]
fn a_gateway_stands_before_a_cluster_of_other_processes() {
    let small = ["--nodes", "2", "--replicas", "2", "--partitions", "8", "--redis", "off"];
    let cluster = Up::start(&small);
    assert_eq!(cluster.redis, None);
    cluster.run(&["put", "greeting", "hello"]).expect(0);
    let folder = tempfile::tempdir().expect("a folder");
    let password = folder.path().join("password");
    std::fs::write(&password, "secret\n").expect("a file");
    let mut command = keyway();
    command
        .args(["gateway", "--json", "--listen", "127.0.0.1:0", "--password-file"])
        .arg(&password)
        .args(["--service", &cluster.service.to_string()])
        .args(["--admin", &cluster.admin.to_string()]);
    let (gateway, line) = Daemon::start(&mut command);
    let ready: Value = serde_json::from_str(&line).expect("the ready line is JSON");
    assert_eq!(ready.get("outcome"), Some(&Value::from("ready")));
    let at = ready.get("redis").and_then(Value::as_str).expect("an address");
    let at = at.parse().expect("an address");
    assert_eq!(ask(at, "GET greeting\r\n"), "-NOAUTH Authentication required.\r\n+OK\r\n");
    let told = ask(at, "AUTH secret\r\nGET greeting\r\nWAIT 1 0\r\n");
    assert_eq!(told, "+OK\r\n$5\r\nhello\r\n:1\r\n+OK\r\n");
    assert_eq!(gateway.interrupt(), Some(0));
}

#[test]
fn a_gateway_that_cannot_serve_says_why() {
    let ran = run(&["gateway", "--listen", "0.0.0.0:0", "--service", "127.0.0.1:9"]).expect(2);
    assert!(ran.stderr.contains("nobody would be asked for a password"), "{ran:#?}");
    let short = ["--timeout", "100ms", "--admin", "127.0.0.1:9"];
    let arguments = ["gateway", "--listen", "127.0.0.1:0", "--service", "127.0.0.1:9"];
    let ran = run(&[arguments.as_slice(), &short].concat());
    assert!(ran.code != Some(0) && ran.stderr.contains("no answer from 127.0.0.1:9"), "{ran:#?}");
    let missing = ["gateway", "--acl-file", "/no/such/file"];
    let ran = run(&[missing.as_slice(), &short].concat()).expect(2);
    assert!(ran.stderr.contains("/no/such/file"), "{ran:#?}");
}
