//! What client libraries send before their first command, byte for byte as they were captured, and
//! that each of them then gets its key.

use crate::raw::{Raw, command, put, start};

fn error(text: &str) -> String {
    format!("-ERR {text}\r\n")
}

/// RESP3's greeting, for the connection with this number.
fn greeting(id: u64) -> String {
    format!(
        "%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.0\r\n$5\r\nproto\r\n:3\r\n\
         $2\r\nid\r\n:{id}\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n\
         $7\r\nmodules\r\n*0\r\n"
    )
}

/// What newer clients ask for and servers need not have.
fn maintenance(word: &str) -> (Vec<u8>, String) {
    let on = ["maint_notifications", "on", "moving-endpoint-type", "internal-ip"];
    let client = if word == "CLIENT" { "CLIENT" } else { "client" };
    let name = if word == "CLIENT" { "MAINT_NOTIFICATIONS" } else { on[0] };
    let sent = command(&[client, name, on[1], on[2], on[3]]);
    (sent, error(&format!("unknown subcommand '{name}'. Try CLIENT HELP.")))
}

#[test]
fn redis_py() {
    put("py", "1");
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    client.ask(command(&["HELLO", "3"]), greeting(1));
    let (sent, reply) = maintenance("CLIENT");
    client.ask(sent, reply);
    client.ask(command(&["CLIENT", "SETINFO", "LIB-NAME", "redis-py"]), "+OK\r\n");
    client.ask(command(&["CLIENT", "SETINFO", "LIB-VER", "8.1.0"]), "+OK\r\n");
    client.ask(command(&["GET", "py"]), "$1\r\n1\r\n");
    client.ask(command(&["GET", "py-missing"]), "_\r\n");
    let info = client.text(command(&["CLIENT", "INFO"]));
    assert!(info.contains(" resp=3 lib-name=redis-py lib-ver=8.1.0"), "{info}");
}

#[test]
fn go_redis() {
    put("go", "1");
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    client.ask(command(&["hello", "3"]), greeting(1));
    let (sent, reply) = maintenance("client");
    client.ask(sent, reply);
    let name = command(&["client", "setinfo", "LIB-NAME", "go-redis(,go1.23)"]);
    let version = command(&["client", "setinfo", "LIB-VER", "9.23.0"]);
    client.ask([name, version].concat(), "+OK\r\n+OK\r\n");
    client.ask(command(&["get", "go"]), "$1\r\n1\r\n");
}

#[test]
fn jedis() {
    put("jedis", "1");
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    let name = command(&["CLIENT", "SETINFO", "LIB-NAME", "jedis"]);
    let version = command(&["CLIENT", "SETINFO", "LIB-VER", "5.2.0"]);
    client.ask([name, version].concat(), "+OK\r\n+OK\r\n");
    client.ask(command(&["GET", "jedis"]), "$1\r\n1\r\n");
    client.ask(command(&["GET", "jedis-missing"]), "$-1\r\n");
}

#[test]
fn lettuce() {
    put("lettuce", "1");
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    client.ask(command(&["HELLO", "3"]), greeting(1));
    let name = command(&["CLIENT", "SETINFO", "lib-name", "Lettuce"]);
    let version = command(&["CLIENT", "SETINFO", "lib-ver", "6.5.0.RELEASE/abcdef"]);
    client.ask([name, version].concat(), "+OK\r\n+OK\r\n");
    client.ask(command(&["GET", "lettuce"]), "$1\r\n1\r\n");
}

#[test]
fn ioredis_asks_whether_the_server_is_loading() {
    put("io", "1");
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    let info = client.text(command(&["info"]));
    assert!(info.contains("\r\nloading:0\r\n") && info.contains("\r\nrole:master\r\n"), "{info}");
    client.ask(command(&["client", "SETINFO", "LIB-NAME", "ioredis"]), "+OK\r\n");
    client.ask(command(&["get", "io"]), "$1\r\n1\r\n");
}

#[test]
fn redis_benchmark_asks_what_is_saved() {
    let gateway = start();
    let mut client = Raw::connect(gateway.local());
    client.ask(command(&["CONFIG", "GET", "save"]), "*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
    let appendonly = "*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n";
    client.ask(command(&["CONFIG", "GET", "appendonly"]), appendonly);
}
