//! Reading and writing maps, with errors that say which.

use crate::Error;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, libbpf_sys};
use std::os::fd::{AsFd, AsRawFd};

/// Writes one value.
pub(crate) fn put(map: &impl MapCore, key: &[u8], value: &[u8]) -> Result<(), Error> {
    map.update(key, value, MapFlags::ANY).map_err(|why| failed("writing", map, why))
}

/// Writes the one value of a map of words.
pub(crate) fn put_words(map: &impl MapCore, words: &[u64]) -> Result<(), Error> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    put(map, &0_u32.to_ne_bytes(), &bytes)
}

/// Puts in keys that are not there yet, all at once.
pub(crate) fn put_new<const K: usize, const V: usize>(
    map: &impl MapCore,
    elements: &[([u8; K], [u8; V])],
) -> Result<(), Error> {
    if elements.is_empty() {
        return Ok(());
    }
    let keys: Vec<u8> = elements.iter().flat_map(|(key, _)| *key).collect();
    let values: Vec<u8> = elements.iter().flat_map(|(_, value)| *value).collect();
    let count = u32::try_from(elements.len()).expect("maps are bounded");
    let put = map.update_batch(&keys, &values, count, MapFlags::ANY, MapFlags::NO_EXIST);
    put.map_err(|why| failed("writing", map, why))
}

/// Removes one key, if it is there.
pub(crate) fn remove(map: &impl MapCore, key: &[u8]) -> Result<(), Error> {
    match map.delete(key) {
        Err(why) if why.kind() != libbpf_rs::ErrorKind::NotFound => {
            Err(failed("removing from", map, why))
        }
        _ => Ok(()),
    }
}

/// The value of each processor.
pub(crate) fn per_processor(map: &impl MapCore, index: u32) -> Result<Vec<Vec<u8>>, Error> {
    let values = map.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY);
    Ok(values.map_err(|why| failed("reading", map, why))?.unwrap_or_default())
}

/// Sets the value of each processor to zero.
pub(crate) fn zero(map: &impl MapCore, index: u32) -> Result<(), Error> {
    let zeros: Vec<Vec<u8>> =
        per_processor(map, index)?.into_iter().map(|value| vec![0; value.len()]).collect();
    let written = map.update_percpu(&index.to_ne_bytes(), &zeros, MapFlags::ANY);
    written.map_err(|why| failed("writing", map, why))
}

/// The value of a key, if it is there.
pub(crate) fn get(map: &impl MapCore, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    map.lookup(key, MapFlags::ANY).map_err(|why| failed("reading", map, why))
}

/// The value of an array of one.
pub(crate) fn one(map: &impl MapCore) -> Result<Vec<u8>, Error> {
    let value = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
    Ok(value.map_err(|why| failed("reading", map, why))?.unwrap_or_default())
}

/// A map that will lie in an array of maps: of one value, which has `len` bytes and begins with
/// these.
pub(crate) fn inner(bytes: &[u8], len: usize) -> Result<MapHandle, Error> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as u64,
        ..Default::default()
    };
    assert!(bytes.len() <= len, "a table has no more than PARTITIONS_MAX rows");
    let size = u32::try_from(len).expect("tables are bounded");
    let map = MapHandle::create(MapType::Array, Some("space"), 4, size, 1, &options);
    let what = || format!("making a table of {len} bytes");
    let map = map.map_err(|why| Error::Kernel { what: what(), why })?;
    let mut value = bytes.to_vec();
    value.resize(len, 0);
    put(&map, &0_u32.to_ne_bytes(), &value)?;
    Ok(map)
}

/// Puts arrays into an array of maps. When this returns no packet is any more matched against what
/// was there before: the kernel has waited, once for all of them, until nobody looks at it.
pub(crate) fn swap(outer: &impl MapCore, inner: &[(u32, MapHandle)]) -> Result<(), Error> {
    if inner.is_empty() {
        return Ok(());
    }
    let keys: Vec<u8> = inner.iter().flat_map(|(index, _)| index.to_ne_bytes()).collect();
    let fd = |map: &MapHandle| map.as_fd().as_raw_fd().to_ne_bytes();
    let values: Vec<u8> = inner.iter().flat_map(|(_, map)| fd(map)).collect();
    let count = u32::try_from(inner.len()).expect("KEYSPACES_MAX at most");
    let put = outer.update_batch(&keys, &values, count, MapFlags::ANY, MapFlags::ANY);
    put.map_err(|why| failed("writing", outer, why))
}

/// Waits until no XDP program runs any more that began before, with the map that is made for it.
pub(crate) fn pause(pauses: &impl MapCore) -> Result<(), Error> {
    swap(pauses, &[(0, inner(&[], size_of::<u32>())?)])
}

/// All keys and values that are there while this looks, in any order; others may come and go.
///
/// They are read with one call. The kernel gives whole buckets only, so of several calls each may
/// bring a little less than it has room for, and the library takes the first that does for the
/// last: of 65,536 clients it showed 12,287.
pub(crate) fn all<const K: usize, const V: usize>(
    map: &impl MapCore,
) -> Result<impl Iterator<Item = ([u8; K], [u8; V])>, Error> {
    let found = map.lookup_batch(map.max_entries(), MapFlags::ANY, MapFlags::ANY);
    let found = found.map_err(|why| failed("reading", map, why))?;
    Ok(found.filter_map(|(key, value)| Some((*key.first_chunk()?, *value.first_chunk()?))))
}

fn failed(doing: &str, map: &impl MapCore, why: libbpf_rs::Error) -> Error {
    Error::Kernel { what: format!("{doing} the map {}", map.name().to_string_lossy()), why }
}
