//! A fast path that is attached to nothing: what its lease waits for, and what not.

use super::*;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::Revision;

use testkit::skip;

const SERVICE: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 255, 255, 1), 7400);
const INCARNATION: Incarnation = Incarnation(1);

/// Between two renewals: a lease would be renewed a hundred times as seldom.
const PACE: Duration = Duration::from_millis(1);

/// Of the renewals while a program is loaded, those that may come before and after it: where each
/// waits for the load, there are no others.
const AROUND: u64 = 2;

#[test]
fn leases_are_renewed_while_the_kernel_verifies_a_program() {
    let path = match FastPath::start(SERVICE, INCARNATION, &[], false) {
        Ok(path) => path,
        Err(why) => {
            return skip::report("renewing leases while a program is loaded", &why.to_string());
        }
    };
    let renewed = AtomicU64::new(0);
    let (ends, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let (path, renewed) = (&path, &renewed);
        scope.spawn(move || {
            while ended.recv_timeout(PACE) == Err(RecvTimeoutError::Timeout) {
                let from = Clock::new().now();
                let lease = Lease {
                    cluster: cluster::ClusterId(0),
                    incarnation: INCARNATION,
                    revision: Revision::NONE,
                    from,
                    duration_ms: 500,
                };
                path.command(None, Some(&lease)).unwrap();
                renewed.fetch_add(1, Ordering::SeqCst);
            }
        });
        let meanwhile = |what: &dyn Fn()| {
            let before = renewed.load(Ordering::SeqCst);
            what();
            renewed.load(Ordering::SeqCst) - before
        };
        let reload = meanwhile(&|| path.reload().unwrap());
        let explain = meanwhile(&|| {
            let told = path.explain(KeyspaceId(1), Match(0)).unwrap();
            assert_eq!(told.revision, Revision::NONE, "no tables were installed");
        });
        drop(ends);
        println!("{reload} renewals during a reload, {explain} during an explanation");
        assert!(reload > AROUND && explain > AROUND, "{reload} and {explain}");
    });
}
