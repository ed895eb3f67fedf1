//! Values that are written once, before anything goes wrong, and must all be there in the end. They
//! give copies something to do for a second, so that they are in the middle of it when the next
//! thing goes wrong.

use client::blocking::Space;
use client::{Outcome, PutOptions, Value};

/// A quarter lies in each partition and takes a second to copy at [`COPY_BYTES_PER_S`].
const KEYS: u32 = 2_000;
const VALUE_BYTES: usize = 1_000;
/// Much less than is usual, for there is much less to copy.
pub(crate) const COPY_BYTES_PER_S: u32 = 500_000;
/// Writers at once.
const WRITERS: u32 = 8;

fn key(n: u32) -> Vec<u8> {
    format!("ballast-{n}").into_bytes()
}

fn value(n: u32) -> Vec<u8> {
    format!("{n:0VALUE_BYTES$}").into_bytes()
}

/// Writes all of them.
pub(crate) fn load(space: &Space) {
    let write = |n: u32| {
        let outcome = space.put(&key(n), &value(n), PutOptions::default());
        outcome.into_result().expect("nothing is wrong yet");
    };
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || (0..KEYS).filter(|n| n % WRITERS == writer).for_each(write));
        }
    });
}

/// What is wrong with them, if anything is.
pub(crate) fn check(space: &Space) -> Result<(), String> {
    let keys: Vec<Vec<u8>> = (0..KEYS).map(key).collect();
    let outcomes = space.mget(&keys);
    let wrong = |(n, outcome): (u32, &Outcome<Option<Value>>)| match outcome {
        Outcome::Done(Some(found)) if found.value == value(n) => None,
        other => Some(format!("ballast-{n}: {other:?}")),
    };
    let wrong: Vec<String> = (0..).zip(&outcomes).filter_map(wrong).collect();
    match wrong.first() {
        None => Ok(()),
        Some(first) => Err(format!("{} of {KEYS} values are not there: {first}", wrong.len())),
    }
}
