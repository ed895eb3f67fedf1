//! Reads and writes of one hot key, each checked.

use crate::process::pause;
use client::blocking::{Client, Space};
use client::{Options, PutOptions};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Which key that is.
pub const KEY: &str = "front-page";

/// Looks at the list, a quarter of a second apart, after which reads must be spread: far more than
/// that takes.
const LOOKS_MAX: u32 = 120;

/// What the command says once it is as wanted; `None` if it never is.
pub fn wait<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    (0..LOOKS_MAX).find_map(|_| {
        pause(Duration::from_millis(250));
        look()
    })
}

fn space(service: SocketAddr) -> Space {
    let client = Client::connect(service, Options::default()).expect("a socket");
    client.keyspace("default").expect("the cluster is up")
}

fn put(space: &Space, number: u64) {
    space
        .put(KEY.as_bytes(), number.to_string().as_bytes(), PutOptions::default())
        .into_result()
        .expect("every write is answered");
}

fn get(space: &Space) -> u64 {
    let found = space.get(KEY.as_bytes()).into_result().expect("every read is answered");
    let found = found.expect("it was put before");
    let text = std::str::from_utf8(&found.value).expect("a number");
    text.parse().expect("a number")
}

/// Whether a read never shows less than was written before it began, and never goes back: one
/// thread writes higher and higher numbers, so often, the others read all the time.
pub fn hammer(service: SocketAddr, ends: &AtomicBool, every: Duration) {
    let written = AtomicU64::new(0);
    let space = space(service);
    put(&space, 0);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let space = self::space(service);
                let mut last = 0;
                while !ends.load(Ordering::Relaxed) {
                    let before = written.load(Ordering::SeqCst);
                    let found = get(&space);
                    assert!(found >= before, "{found} read, though {before} had been written");
                    assert!(found >= last, "{found} read after {last}");
                    last = found;
                }
            });
        }
        let mut next = 1;
        while !ends.load(Ordering::Relaxed) {
            put(&space, next);
            written.store(next, Ordering::SeqCst);
            next += 1;
            pause(every);
        }
    });
}
