//! Many worlds at once: one thread for each core, and the outcomes in the order of the worlds.

use crate::{Options, Outcome, run};
use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

/// Runs these worlds and hands each with its outcome to `each`, in their order, until that breaks.
/// What it is handed depends on nothing but the worlds.
pub fn run_many<B>(
    worlds: &[Options],
    each: impl FnMut(&Options, Outcome) -> ControlFlow<B>,
) -> ControlFlow<B> {
    in_parallel(worlds, run, each)
}

/// Does `work` on all cores and hands the results to `each`, in the order of the items.
pub fn in_parallel<T: Sync, R: Send, B>(
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
    mut each: impl FnMut(&T, R) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(items.len());
    let (next, over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, results) = channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (sender, next, over, work) = (sender.clone(), &next, &over, &work);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { return };
                    // Nobody takes it any more once `each` has broken off.
                    if sender.send((index, work(item))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut due = items.iter().enumerate();
        let mut wanted = due.next();
        for (index, result) in results {
            early.insert(index, result);
            while let Some((at, item)) = wanted
                && let Some(result) = early.remove(&at)
            {
                if let ControlFlow::Break(value) = each(item, result) {
                    over.store(true, Ordering::Relaxed);
                    return ControlFlow::Break(value);
                }
                wanted = due.next();
            }
        }
        ControlFlow::Continue(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_no_further_than_wanted() {
        let items: Vec<u64> = (0..1_000).collect();
        let mut seen = Vec::new();
        let broken = in_parallel(
            &items,
            |item| item * 2,
            |item, doubled| {
                assert_eq!(doubled, item * 2);
                seen.push(*item);
                if *item == 500 { ControlFlow::Break("enough") } else { ControlFlow::Continue(()) }
            },
        );
        assert_eq!(broken, ControlFlow::Break("enough"));
        assert_eq!(seen, (0..=500).collect::<Vec<_>>());
        let none: ControlFlow<()> = in_parallel(&[] as &[u64], |_| (), |_, ()| panic!("nothing"));
        assert_eq!(none, ControlFlow::Continue(()));
    }
}
