//! Commands about the connection and the server.

use crate::raw::{Raw, command, put, start};

#[test]
fn commands_about_the_connection() {
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    client.ask("PING\r\nPING hi\r\nECHO a\r\n", "+PONG\r\n$2\r\nhi\r\n$1\r\na\r\n");
    client.ask("SELECT 0\r\n", "+OK\r\n");
    client.ask("SELECT 1\r\n", "-ERR DB index is out of range\r\n");
    client.ask("SELECT x\r\n", "-ERR value is not an integer or out of range\r\n");
    client.ask("WAIT 1 100\r\n", ":2\r\n");
    client.ask("HELLO 4\r\n", "-NOPROTO unsupported protocol version\r\n");
    client.ask("HELLO x\r\n", "-ERR Protocol version is not an integer or out of range\r\n");
    client.ask("HELLO 2 FOO\r\n", "-ERR Syntax error in HELLO option 'FOO'\r\n");
    client.ask("CLIENT GETNAME\r\n", "$-1\r\n");
    client.ask("CLIENT SETNAME me\r\nCLIENT GETNAME\r\n", "+OK\r\n$2\r\nme\r\n");
    let bad = "-ERR Client names cannot contain spaces, newlines or special characters.\r\n";
    client.ask(command(&["CLIENT", "SETNAME", "a b"]), bad);
    client.ask("CLIENT NO-EVICT on\r\nCLIENT NO-TOUCH on\r\n", "+OK\r\n+OK\r\n");
    let info = client.text("CLIENT INFO\r\n");
    assert!(info.contains(" name=me ") && info.contains(" flags=eT "), "{info}");
    client.ask("RESET\r\nCLIENT GETNAME\r\n", "+RESET\r\n$-1\r\n");
    client.ask("SUBSCRIBE a\r\n", unknown("SUBSCRIBE", "'a' "));
    client.ask("MONITOR\r\n", unknown("MONITOR", ""));
    client.send("TIME\r\n");
    assert_eq!(client.line(), "*2");
}

#[test]
fn clients_are_killed_and_unblocked_as_by_redis() {
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    client.ask("CLIENT KILL USER nobody\r\n", "-ERR No such user 'nobody'\r\n");
    client.ask("CLIENT KILL USER default\r\n", ":0\r\n");
    client.ask("CLIENT UNBLOCK 1\r\nCLIENT UNBLOCK 1 Timeout\r\n", ":0\r\n:0\r\n");
    client.ask("CLIENT UNBLOCK x\r\n", "-ERR value is not an integer or out of range\r\n");
    let reason = "-ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR\r\n";
    client.ask("CLIENT UNBLOCK 1 what\r\n", reason);
}

fn unknown(name: &str, args: &str) -> String {
    format!("-ERR unknown command '{name}', with args beginning with: {args}\r\n")
}

#[test]
fn parameters_are_told_and_changed() {
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    client.ask("CONFIG GET maxcl*\r\n", "*2\r\n$10\r\nmaxclients\r\n$3\r\n100\r\n");
    client.ask("CONFIG SET maxclients 50 timeout 7\r\n", "+OK\r\n");
    let both = "*4\r\n$10\r\nmaxclients\r\n$2\r\n50\r\n$7\r\ntimeout\r\n$1\r\n7\r\n";
    client.ask("CONFIG GET timeout maxclients\r\n", both);
    let fixed = "-ERR CONFIG SET failed (possibly related to argument 'port') - can't set \
                 immutable config\r\n";
    client.ask("CONFIG SET maxclients 60 port 1\r\n", fixed);
    client.ask("CONFIG GET maxclients\r\n", "*2\r\n$10\r\nmaxclients\r\n$2\r\n50\r\n");
    let twice = "-ERR CONFIG SET failed (possibly related to argument 'timeout') - duplicate \
                 parameter\r\n";
    client.ask(
        "CONFIG SET timeout x timeout 1\r\nCONFIG SET timeout 1 Timeout 1\r\n",
        twice.repeat(2),
    );
    let unknown = "-ERR Unknown option or number of arguments for CONFIG SET - 'nothing'\r\n";
    client.ask("CONFIG SET nothing 1\r\n", unknown);
}

#[test]
fn what_happened_is_counted() {
    put("counted", "1");
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    client.ask("CONFIG SET slowlog-log-slower-than 0\r\n", "+OK\r\n");
    client.ask(
        "GET counted\r\nGET counted\r\nGET\r\n",
        format!(
            "{}{}",
            "$1\r\n1\r\n".repeat(2),
            "-ERR wrong number of arguments for 'get' command\r\n"
        ),
    );
    let info = client.text("INFO everything\r\n");
    for line in [
        "redis_version:7.2.0",
        "connected_clients:1",
        "total_connections_received:1",
        "role:master",
        "connected_slaves:2",
        "errorstat_ERR:count=1",
    ] {
        assert!(info.contains(&format!("\r\n{line}\r\n")), "{line} in {info}");
    }
    assert!(info.contains("cmdstat_get:calls=2,usec="), "{info}");
    assert!(info.contains("latency_percentiles_usec_get:p50="), "{info}");
    client.send("LATENCY HISTOGRAM get\r\n");
    let lines: Vec<String> = (0..7).map(|_| client.line()).collect();
    assert_eq!(lines[..6], ["*2", "$3", "get", "*4", "$5", "calls"], "{lines:?}");
    assert_eq!(lines[6], ":2");
    let mut other = Raw::connect(gateway.local());
    other.send("SLOWLOG GET -1\r\n");
    let head = other.line();
    assert!(head.starts_with('*') && head != "*0", "{head}");
    let mut other = Raw::connect(gateway.local());
    other.ask("SLOWLOG RESET\r\nCONFIG SET slowlog-log-slower-than -1\r\n", "+OK\r\n+OK\r\n");
    other.ask("SLOWLOG RESET\r\nSLOWLOG LEN\r\n", "+OK\r\n:0\r\n");
    other.ask("CONFIG RESETSTAT\r\n", "+OK\r\n");
    let info = other.text("INFO commandstats\r\n");
    assert!(!info.contains("cmdstat_get"), "{info}");
}

#[test]
fn commands_are_described() {
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    client.ask("COMMAND GETKEYS get a\r\n", "*1\r\n$1\r\na\r\n");
    client.ask("COMMAND GETKEYS ping\r\n", "-ERR The command has no key arguments\r\n");
    client.ask("COMMAND GETKEYS nosuch a\r\n", "-ERR Invalid command specified\r\n");
    client.ask("COMMAND INFO nosuch\r\n", "*1\r\n*-1\r\n");
    let list = "COMMAND LIST FILTERBY PATTERN pin*\r\n";
    client.ask(list, "*1\r\n$4\r\nping\r\n");
    let counted = |client: &mut Raw, sent: &str| {
        client.send(sent);
        client.line()[1..].parse::<usize>().unwrap()
    };
    let count = counted(&mut client, "COMMAND COUNT\r\n");
    assert_eq!(count, gateway::command::all().count());
    for (sent, expected) in
        [("COMMAND\r\n", count), ("COMMAND LIST\r\n", count), ("COMMAND DOCS\r\n", 2 * count)]
    {
        let mut client = Raw::connect(gateway.local());
        assert_eq!(counted(&mut client, sent), expected, "{sent}");
    }
    let get = "*1\r\n*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n";
    client.ask("COMMAND INFO get\r\n", get);
}
