//! The picture for a terminal.

use super::{Layout, Violation, label};
use std::fmt::Write as _;

/// Operations of a picture; more are said to be left out.
const OPS_MAX: usize = 60;

/// A lane for each operation, in the order of calls, under the sentence that says what is wrong:
///
/// ```text
/// key r1: version 2 was acknowledged, and later client 1 was answered at version 1
///   client 0  [---]             put 5 v1
///   client 0        [---]       put 6 v2
/// ! client 1              [---] read 5 v1
/// ```
#[must_use]
pub fn draw_text(violation: &Violation) -> String {
    let Violation { key, what, ops, culprits } = violation;
    let layout = Layout::of(ops);
    let mut text = format!("key {key}: {what}\n");
    let width = (layout.columns.len() + 1) * STEP;
    let lane = layout.lanes.iter().max().map_or(1, |most| most.to_string().len());
    for (index, op) in ops.iter().enumerate().take(OPS_MAX) {
        let (from, to) = layout.span(op);
        let mark = if culprits.contains(&index) { '!' } else { ' ' };
        let end = if op.is_unknown() { '?' } else { ']' };
        let bar: String = std::iter::repeat_n(' ', from * STEP)
            .chain(['['])
            .chain(std::iter::repeat_n('-', ((to - from) * STEP).saturating_sub(1)))
            .chain([end])
            .collect();
        let label = label(op);
        // Strings take everything.
        let _ = writeln!(text, "{mark} client {:<lane$}  {bar:<width$} {label}", op.client);
    }
    if let Some(more) = ops.len().checked_sub(OPS_MAX).filter(|more| *more > 0) {
        let _ = writeln!(text, "  and {more} more");
    }
    text
}

/// Characters between two instants.
const STEP: usize = 2;

#[cfg(test)]
mod tests {
    use crate::check::op::{Op, OpKind};
    use machine::Instant;
    use wire::Version;

    use super::*;

    #[test]
    fn a_picture_shows_order_and_culprits() {
        let op = |client, called, returned, kind, version| Op {
            client,
            called: Instant(called),
            returned,
            kind,
            version,
        };
        let violation = Violation {
            key: "r1".into(),
            what: "stale".into(),
            ops: vec![
                op(0, 1, Some(Instant(5)), OpKind::Put { value: 5, expiry_ms: 0 }, Version::new(1)),
                op(10, 7, None, OpKind::Put { value: 6, expiry_ms: 0 }, Version::NONE),
                op(1, 900, Some(Instant(901)), OpKind::Read(None), Version::NONE),
            ],
            culprits: vec![2],
        };
        let expected = "key r1: stale\n  client 0   [-]           put 5 v1\n  \
                        client 10      [-----?   put 6\n! client 1         [-]     read nothing\n";
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(squeezed(&draw_text(&violation)), squeezed(expected));
    }
}
