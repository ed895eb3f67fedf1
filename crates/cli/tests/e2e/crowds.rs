//! Crowds of connections: they take nothing from the cluster in whose process they end.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use testkit::program::Up;

/// Descriptors of the cluster: what a process has by default.
const FILES: u32 = 1024;
/// Longer than the admin server waits for the rest of a request.
const PATIENCE: Duration = Duration::from_secs(60);

fn connect(to: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(to).expect("somebody listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    stream
}

#[test]
fn crowds_of_connections_take_no_descriptors_from_engines_and_orders() {
    assert!(runtime::files::limit() > 2_000, "raise the limit of open files: ulimit -n 4096");
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().display().to_string();
    let durable = ["--engine", "fjall", "--sync", "interval", "--data", data.as_str()];
    for engine in [&durable[..], &[]] {
        let size = ["--nodes", "8", "--replicas", "3", "--partitions", "16"];
        let cluster = Up::start_with_files(FILES, &[&size, engine].concat());
        let at = cluster.redis.expect("a gateway by default");
        let mut half_sent = connect(cluster.admin);
        half_sent.write_all(b"GET /metr").expect("it is let in");
        let crowd: Vec<TcpStream> = (0..1_000).map(|_| connect(at)).collect();
        let idle: Vec<TcpStream> = (0..500).map(|_| connect(cluster.admin)).collect();
        let value = "x".repeat(1_000);
        for key in 0..40 {
            cluster.run(&["put", &format!("key-{key}"), &value]).expect(0);
        }
        let status = cluster.run(&["status", "--json"]).expect(0).json();
        assert_eq!(status["ready"], true, "{status}");
        assert_eq!(status["replicated"], true, "{status}");
        let mut refused = String::new();
        (&crowd[999]).read_to_string(&mut refused).expect("it is told why");
        assert_eq!(refused, "-ERR max number of clients reached\r\n");
        let mut end = Vec::new();
        half_sent.read_to_end(&mut end).expect("it is not waited for");
        drop((crowd, idle));
        assert_eq!(cluster.run(&["get", "key-39"]).expect(0).stdout.trim(), value);
        assert_eq!(cluster.interrupt(), Some(0));
    }
}
