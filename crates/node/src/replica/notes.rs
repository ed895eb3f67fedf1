//! What a replica keeps on record besides the values: its counters, its pending writes, the
//! outcomes of its clients, the registrations and delegations of hot keys. Names begin with a
//! letter each: `c`, `e` and a client that has said goodbye, `f` for how far outcomes were
//! forgotten, `g` and the upload of a value that was replaced, `n` for how many writes are
//! committed, `p` and a pending version, `q` and one that is set aside, `s` and a request id, `m`
//! and a key, `t` and a key, `v` and a committed version.

use wire::Version;

/// The name of the note that keeps the newest version of an outcome that was forgotten. It comes
/// before those of sessions, which are what is left.
pub(crate) const FORGOTTEN_NAME: &[u8] = b"f";

/// The name of the note that keeps a pending write.
pub(crate) fn pending_name(version: Version) -> [u8; 9] {
    numbered(b'p', version.get())
}

/// The name of the note that keeps a write that is set aside.
pub(crate) fn aside_name(version: Version) -> [u8; 9] {
    numbered(b'q', version.get())
}

/// The name of the note that keeps that a version is committed.
pub(crate) fn committed_name(version: Version) -> [u8; 9] {
    numbered(b'v', version.get())
}

fn numbered(letter: u8, number: u64) -> [u8; 9] {
    let mut name = [letter; 9];
    if let Some((_, rest)) = name.split_first_mut() {
        rest.copy_from_slice(&number.to_be_bytes());
    }
    name
}

/// The name of the note that keeps a registration.
pub(crate) fn registration_name(key: &[u8]) -> Vec<u8> {
    [b"m", key].concat()
}

/// The name of the note that keeps the delegations of a key.
pub(crate) fn delegations_name(key: &[u8]) -> Vec<u8> {
    [b"t", key].concat()
}

/// The name of the note that keeps that a client has said goodbye.
pub(crate) fn ended_name(client: u64) -> [u8; 9] {
    numbered(b'e', client)
}

/// The name of the note that keeps that the parts of an upload go, because its value was replaced.
/// Without it, a member that is started anew would take them for those of an upload under way.
pub(crate) fn replaced_name(upload: &[u8]) -> Vec<u8> {
    [b"g", upload].concat()
}

/// Whether a note is about what a member holds of values, which it keeps when it forgets all else.
pub(crate) fn is_of_values(name: &[u8]) -> bool {
    matches!(name.first(), Some(b'c' | b'g'))
}

/// The name of the note that keeps one outcome.
pub(crate) fn session_name(client: u64, seq: u64) -> [u8; 17] {
    let mut name = [b's'; 17];
    if let Some((_, id)) = name.split_first_mut() {
        let (first, second) = id.split_at_mut(8);
        first.copy_from_slice(&client.to_be_bytes());
        second.copy_from_slice(&seq.to_be_bytes());
    }
    name
}
