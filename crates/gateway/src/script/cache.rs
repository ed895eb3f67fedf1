//! Scripts that clients may run by their names.

use super::source::Source;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Scripts that are remembered: more than a program has.
const SCRIPTS_MAX: usize = 1024;
/// Bytes of all of them.
const BYTES_MAX: usize = 16 << 20;

/// The scripts that were run or loaded last.
#[derive(Debug, Default)]
pub(super) struct Cache {
    scripts: BTreeMap<String, (u64, Arc<Source>)>,
    /// Their names, in the order in which they were last asked for.
    order: BTreeMap<u64, String>,
    uses: u64,
    bytes: usize,
}

impl Cache {
    /// The script of that name, in letters of any case.
    pub(super) fn get(&mut self, name: &[u8]) -> Option<Arc<Source>> {
        let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
        let (used, source) = self.scripts.get_mut(&name)?;
        self.uses += 1;
        self.order.remove(used);
        *used = self.uses;
        self.order.insert(self.uses, name);
        Some(Arc::clone(source))
    }

    /// Whether there is one of that name.
    pub(super) fn has(&self, name: &[u8]) -> bool {
        let name = std::str::from_utf8(name).map(str::to_ascii_lowercase);
        name.is_ok_and(|name| self.scripts.contains_key(&name))
    }

    /// Remembers a script, and forgets those for which there is no room then.
    pub(super) fn put(&mut self, source: &Arc<Source>) {
        if self.get(source.sha.as_bytes()).is_some() {
            return;
        }
        self.uses += 1;
        self.bytes += source.text.len();
        self.order.insert(self.uses, source.sha.clone());
        self.scripts.insert(source.sha.clone(), (self.uses, Arc::clone(source)));
        while (self.scripts.len() > SCRIPTS_MAX || self.bytes > BYTES_MAX)
            && let Some((_, oldest)) = self.order.pop_first()
        {
            if let Some((_, gone)) = self.scripts.remove(&oldest) {
                self.bytes -= gone.text.len();
            }
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(number: usize, len: usize) -> Arc<Source> {
        Arc::new(Source::new(format!("return {number} --{}", "x".repeat(len)).as_bytes()).unwrap())
    }

    #[test]
    fn those_that_were_asked_for_last_stay() {
        let mut cache = Cache::default();
        let first = source(0, 1);
        cache.put(&first);
        for number in 1..SCRIPTS_MAX {
            cache.put(&source(number, 1));
        }
        assert_eq!(cache.get(first.sha.to_uppercase().as_bytes()), Some(Arc::clone(&first)));
        cache.put(&source(SCRIPTS_MAX, 1));
        assert!(cache.has(first.sha.as_bytes()) && !cache.has(source(1, 1).sha.as_bytes()));
        for number in 0..20 {
            cache.put(&source(number, 1 << 20));
        }
        assert_eq!(cache.scripts.len(), 15, "as many as there is room for");
        assert!(cache.bytes <= BYTES_MAX && cache.order.len() == cache.scripts.len());
        cache.clear();
        assert!(!cache.has(first.sha.as_bytes()) && cache.get(b"\xff").is_none());
    }
}
