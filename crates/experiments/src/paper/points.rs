//! Independent points of an experiment, measured on all cores.

use sim::in_parallel;
use std::ops::ControlFlow;

/// Measures every point, on all cores, and hands it on with what was measured, in their order.
pub(crate) fn measure_all<P: Sync, M: Send>(
    points: &[P],
    measure: impl Fn(&P) -> M + Sync,
    mut each: impl FnMut(&P, M),
) {
    let ended: ControlFlow<()> = in_parallel(points, measure, |point, measured| {
        each(point, measured);
        ControlFlow::Continue(())
    });
    assert!(ended.is_continue(), "nothing breaks off");
}
