//! One cluster for all tests of this program, a gateway for each, and clients that speak bytes.

use client::Options as ClientOptions;
use gateway::{Acl, Database, Gateway, Multi, Options};
use runtime::up::{Embedded, HASH_KEYSPACE, UpOptions};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::LazyLock;
use std::time::Duration;

/// Far longer than anything here takes, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) static CLUSTER: LazyLock<Embedded> =
    LazyLock::new(|| Embedded::start(&UpOptions::in_memory(3, 3, 16)).unwrap());

pub(crate) fn options() -> Options {
    Options {
        services: vec![CLUSTER.service()],
        databases: vec![database(0, HASH_KEYSPACE)],
        cluster: None,
        passes: None,
        user_passes: BTreeMap::new(),
        multi: Multi::Atomic,
        sync: "always".into(),
        deadline: ClientOptions::default().deadline,
        listen: "127.0.0.1:0".parse().unwrap(),
        workers: 2,
        maxclients: 100,
        idle_timeout: Duration::ZERO,
        tls: None,
        acl: Acl::open(),
    }
}

/// A keyspace, under its number.
pub(crate) fn database(number: u8, keyspace: &str) -> Database {
    Database { number, keyspace: keyspace.to_owned(), replicas: Some(3), hot: None }
}

pub(crate) fn start() -> Gateway {
    Gateway::start(options()).unwrap()
}

/// A key that is there, with its value.
pub(crate) fn put(key: &str, value: &str) {
    let client = client::blocking::Client::connect(CLUSTER.service(), ClientOptions::default());
    let space = client.unwrap().keyspace(HASH_KEYSPACE).unwrap();
    let put = space.put(key.as_bytes(), value.as_bytes(), client::PutOptions::default());
    assert!(put.is_done(), "{put:?}");
}

/// A client that speaks bytes.
#[derive(Debug)]
pub(crate) struct Raw(pub(crate) TcpStream);

impl Raw {
    pub(crate) fn connect(to: SocketAddr) -> Self {
        let stream = TcpStream::connect(to).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends and expects exactly that.
    #[track_caller]
    pub(crate) fn ask(&mut self, bytes: impl AsRef<[u8]>, expected: impl AsRef<[u8]>) {
        self.send(bytes);
        self.expect(expected);
    }

    #[track_caller]
    pub(crate) fn expect(&mut self, expected: impl AsRef<[u8]>) {
        let expected = expected.as_ref();
        let mut found = Vec::new();
        let mut part = [0; 4096];
        while found.len() < expected.len() {
            let room = part.len().min(expected.len() - found.len());
            match self.0.read(&mut part[..room]) {
                Ok(len @ 1..) => found.extend_from_slice(&part[..len]),
                end => panic!("{end:?} after {:?}", String::from_utf8_lossy(&found)),
            }
            let so_far = &expected[..found.len()];
            let (text, wanted) = (String::from_utf8_lossy(&found), String::from_utf8_lossy(so_far));
            assert_eq!(text, wanted);
        }
    }

    /// The next line, without its end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while !line.ends_with(b"\r\n") {
            self.0.read_exact(&mut byte).unwrap();
            line.extend(byte);
        }
        String::from_utf8_lossy(&line[..line.len() - 2]).into_owned()
    }

    /// Sends, and reads one bulk string or verbatim text.
    pub(crate) fn text(&mut self, bytes: impl AsRef<[u8]>) -> String {
        self.send(bytes);
        let head = self.line();
        assert!(head.starts_with(['$', '=']), "{head}");
        let mut text = self.bytes(head[1..].parse::<usize>().unwrap() + 2);
        text.truncate(text.len() - 2);
        String::from_utf8(text).unwrap()
    }

    /// So many bytes.
    pub(crate) fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.0.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Everything up to the end of the connection.
    pub(crate) fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        // A reset is an end as well.
        if let Err(error) = self.0.read_to_end(&mut rest) {
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
        }
        String::from_utf8_lossy(&rest).into_owned()
    }
}

/// A command as clients send it.
pub(crate) fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len());
    for word in words {
        bytes.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    bytes.into_bytes()
}

/// Waits until that holds.
#[track_caller]
pub(crate) fn eventually(mut holds: impl FnMut() -> bool) {
    let (sender, tick) = std::sync::mpsc::channel::<()>();
    for _ in 0..PATIENCE.as_millis() / 20 {
        if holds() {
            return;
        }
        tick.recv_timeout(Duration::from_millis(20)).unwrap_err();
    }
    drop(sender);
    panic!("not within {PATIENCE:?}");
}
