//! SELECT: each number a keyspace of its own.

use crate::raw::{CLUSTER, Raw, command, database, options};
use cluster::{HotPolicy, KeyspaceKind};
use controller::KeyspaceSpec;
use gateway::Gateway;

/// A gateway with two keyspaces of its own beside that of the others, as databases 1 and 7.
fn start(one: &str, seven: &str) -> Gateway {
    let controller = CLUSTER.roles().controller.clone().unwrap();
    for name in [one, seven] {
        let spec = KeyspaceSpec {
            name: name.to_owned(),
            kind: KeyspaceKind::Hash,
            partitions: 4,
            replicas: 2,
            splits: Vec::new(),
            hot: HotPolicy::default(),
        };
        controller.create_keyspace(spec).unwrap();
    }
    let mut options = options();
    options.databases.extend([database(7, seven), database(1, one)]);
    options.databases[2].replicas = Some(2);
    // The switch hears of a new keyspace in a moment.
    let started = (0..TRIES_MAX).map(|_| Gateway::start(options.clone()));
    started.flat_map(Result::ok).next().expect("its keyspaces are there")
}

/// Each is a question to the switch: some seconds' worth.
const TRIES_MAX: usize = 1_000;

#[test]
fn each_database_has_its_own_keys() {
    let gateway = start("own-one", "own-seven");
    let mut client = Raw::connect(gateway.local());
    let mut other = Raw::connect(gateway.local());
    client.ask("SET in-database 0\r\nSELECT 1\r\nGET in-database\r\n", "+OK\r\n+OK\r\n$-1\r\n");
    client.ask("SET in-database 1\r\nSET b 1\r\nDBSIZE\r\n", "+OK\r\n+OK\r\n:2\r\n");
    other.ask("SELECT 7\r\nSET in-database 7 EX 99\r\nDBSIZE\r\n", "+OK\r\n+OK\r\n:1\r\n");
    client.ask("SELECT 8\r\n", "-ERR DB index is out of range\r\n");
    client.ask("SELECT -1\r\n", "-ERR DB index is out of range\r\n");
    client.ask("SELECT x\r\n", "-ERR value is not an integer or out of range\r\n");
    client.ask("GET in-database\r\nWAIT 0 0\r\n", "$1\r\n1\r\n:1\r\n");
    let line = client.text("CLIENT INFO\r\n");
    assert!(line.contains(" db=1 "), "{line}");
    let list = client.text("CLIENT LIST\r\n");
    assert!(list.contains(" db=7 "), "{list}");
    let keyspace = client.text("INFO keyspace\r\n");
    assert!(keyspace.contains("\r\ndb0:keys="), "{keyspace}");
    assert!(
        keyspace.contains("\r\ndb1:keys=2,expires=0\r\ndb7:keys=1,expires=1\r\n"),
        "{keyspace}"
    );
    let replication = client.text("INFO replication\r\n");
    assert!(replication.contains("\r\nkeyway_keyspace:own-one\r\n"), "{replication}");
    client.ask("CONFIG GET databases\r\n", "*2\r\n$9\r\ndatabases\r\n$1\r\n8\r\n");
    client.ask("COPY b c DB 7\r\n", "-ERR COPY does not reach into another database here\r\n");
    client.ask("COPY b c DB 2\r\n", "-ERR DB index is out of range\r\n");
    // A script is about the keys of its database, and of no other.
    client.ask("EVAL \"return redis.call('GET', 'in-database')\" 0\r\n", "$1\r\n1\r\n");
    client.ask("EVAL \"return redis.call('SELECT', 1)\" 0\r\n", "+OK\r\n");
    let elsewhere = client.text("EVAL \"return redis.pcall('SELECT', 7).err\" 0\r\n");
    assert!(elsewhere.contains("about one database here, this one about 1"), "{elsewhere}");
    client.ask("FLUSHDB\r\nDBSIZE\r\n", "+OK\r\n:0\r\n");
    other.ask("GET in-database\r\n", "$1\r\n7\r\n");
    client.ask("RESET\r\nGET in-database\r\n", "+RESET\r\n$1\r\n0\r\n");
}

#[test]
fn pipelines_and_long_values_go_where_select_stood() {
    let gateway = start("piped-one", "piped-seven");
    let mut client = Raw::connect(gateway.local());
    let long = "v".repeat(200_000);
    let mut sent = Vec::new();
    let mut expected = String::new();
    for number in [1, 7, 1] {
        let number = number.to_string();
        sent.extend(command(&["SELECT", &number]));
        sent.extend(command(&["SET", "long", &(number.clone() + &long)]));
        sent.extend(command(&["GET", "long"]));
        let len = long.len() + 1;
        expected += &format!("+OK\r\n+OK\r\n${len}\r\n{number}{long}\r\n");
    }
    client.ask(sent, expected);
    client.ask("STRLEN long\r\nSELECT 7\r\nGETRANGE long 0 0\r\n", ":200001\r\n+OK\r\n$1\r\n7\r\n");
}

#[test]
fn a_transaction_is_about_one_database() {
    let gateway = start("multi-one", "multi-seven");
    let mut client = Raw::connect(gateway.local());
    client.ask("SELECT 1\r\nMULTI\r\nSELECT 1\r\n", "+OK\r\n+OK\r\n+QUEUED\r\n");
    client.ask("SET a 1\r\nSELECT 9\r\n", "+QUEUED\r\n+QUEUED\r\n");
    client.ask("EXEC\r\n", "*3\r\n+OK\r\n+OK\r\n-ERR DB index is out of range\r\n");
    let refused = "-ERR a transaction is about one database here, and this is one of 1\r\n";
    client.ask("MULTI\r\nSELECT 7\r\n", format!("+OK\r\n{refused}"));
    let aborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    client.ask("SET a 2\r\nEXEC\r\nGET a\r\n", format!("+QUEUED\r\n{aborted}$1\r\n1\r\n"));
    client.ask("WATCH a\r\n", "+OK\r\n");
    let refused = "-ERR keys of database 1 are watched; UNWATCH them to select another\r\n";
    client.ask("SELECT 7\r\nGET a\r\n", format!("{refused}$1\r\n1\r\n"));
    client.ask("UNWATCH\r\nSELECT 7\r\nGET a\r\n", "+OK\r\n+OK\r\n$-1\r\n");
}
