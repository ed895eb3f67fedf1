//! A loaded program that is as good as new for each test: the verifier takes a second for one.

use libbpf_rs::{MapCore as _, MapFlags, MapHandle, MapType};
use std::sync::Arc;
use xdp::Program;

/// Keys that are asked for at once.
const BATCH: u32 = 4_096;

/// A program, and what its maps held when it was loaded.
pub(crate) struct Fresh {
    program: Arc<Program>,
    /// The values of arrays, by index.
    arrays: Vec<(MapHandle, Vec<Vec<u8>>)>,
    /// Arrays with a value for each processor.
    per_processor: Vec<(MapHandle, Vec<Vec<Vec<u8>>>)>,
    /// Maps that were empty.
    empty: Vec<MapHandle>,
}

impl Fresh {
    /// Of a program that was just loaded.
    pub(crate) fn new(program: Program) -> Self {
        let program = Arc::new(program);
        let mut fresh = Self {
            program: Arc::clone(&program),
            arrays: Vec::new(),
            per_processor: Vec::new(),
            empty: Vec::new(),
        };
        // Constants stay what they are.
        let is_constant = |map: &MapHandle| map.name().to_string_lossy().contains("rodata");
        for map in program.maps().into_iter().filter(|map| !is_constant(map)) {
            let indices = 0..map.max_entries();
            match map.map_type() {
                MapType::Array => {
                    let value = |index: u32| map.lookup(&index.to_ne_bytes(), MapFlags::ANY);
                    let values = indices.map(|index| value(index).unwrap().unwrap()).collect();
                    fresh.arrays.push((map, values));
                }
                MapType::PercpuArray => {
                    let value = |index: u32| map.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY);
                    let values = indices.map(|index| value(index).unwrap().unwrap()).collect();
                    fresh.per_processor.push((map, values));
                }
                _ => {
                    assert_eq!(keys(&map).len(), 0, "{:?}", map.name());
                    fresh.empty.push(map);
                }
            }
        }
        assert!(!fresh.arrays.is_empty() && !fresh.empty.is_empty());
        fresh
    }

    /// The program, with all maps as they were. Nobody else uses it.
    pub(crate) fn program(&self) -> Arc<Program> {
        assert_eq!(Arc::strong_count(&self.program), 1, "the last one is done with");
        for (map, values) in &self.arrays {
            for (index, value) in (0_u32..).zip(values) {
                map.update(&index.to_ne_bytes(), value, MapFlags::ANY).unwrap();
            }
        }
        for (map, values) in &self.per_processor {
            for (index, value) in (0_u32..).zip(values) {
                map.update_percpu(&index.to_ne_bytes(), value, MapFlags::ANY).unwrap();
            }
        }
        for map in &self.empty {
            keys(map).iter().for_each(|key| map.delete(key).unwrap());
        }
        Arc::clone(&self.program)
    }
}

/// The keys of a map that have a value.
fn keys(map: &MapHandle) -> Vec<Vec<u8>> {
    if matches!(map.map_type(), MapType::ArrayOfMaps) {
        let found = map.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY).unwrap();
        return found.map(|(key, _)| key).collect();
    }
    map.keys().collect()
}
