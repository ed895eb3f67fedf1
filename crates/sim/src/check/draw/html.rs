//! The picture for a browser: one file, without anything from elsewhere.

use super::{Layout, Violation, label};
use crate::check::op::Op;
use std::fmt::Write as _;

/// A page with a drawing of each violation: a row for each client, a bar for each operation from
/// its call to its return (dashed and open if it never returned), what it did on the bar, and all
/// that is known of it where the pointer rests. Those that show what is wrong are red.
#[must_use]
pub fn draw_html(title: &str, violations: &[Violation]) -> String {
    let mut page = String::new();
    let title = escape(title);
    // Strings take everything.
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\n\
         <style>{STYLE}</style>\n<h1>{title}</h1>\n"
    );
    for violation in violations {
        draw(&mut page, violation);
    }
    page.push_str("</html>\n");
    page
}

fn draw(page: &mut String, violation: &Violation) {
    let Violation { key, what, ops, culprits } = violation;
    let layout = Layout::of(ops);
    let rows = rows(&layout, ops);
    let height = rows.iter().map(|row| row.bars.len()).sum::<usize>() * BAR_HEIGHT + GAP;
    let width = LABEL_WIDTH + (layout.columns.len() + 1) * COLUMN_WIDTH;
    let _ = write!(
        page,
        "<h2>key <code>{}</code></h2>\n<p>{}</p>\n<svg width=\"{width}\" height=\"{height}\">\n",
        escape(key),
        escape(what)
    );
    let mut y = 0;
    for row in &rows {
        let middle = y + BAR_HEIGHT / 2 + GAP / 2;
        let _ = writeln!(page, "<text x=\"0\" y=\"{middle}\">client {}</text>", row.client);
        for bar in &row.bars {
            for index in bar {
                let culprit = culprits.contains(index);
                if let Some(op) = ops.get(*index) {
                    draw_bar(page, &layout, op, y, culprit);
                }
            }
            y += BAR_HEIGHT;
        }
        let _ = writeln!(page, "<line x1=\"0\" x2=\"{width}\" y1=\"{y}\" y2=\"{y}\"/>");
    }
    page.push_str("</svg>\n");
}

fn draw_bar(page: &mut String, layout: &Layout, op: &Op, y: usize, culprit: bool) {
    let (from, to) = layout.span(op);
    let (x, width) = (LABEL_WIDTH + from * COLUMN_WIDTH, (to - from).max(1) * COLUMN_WIDTH - 2);
    let mut class = String::from(if culprit { "culprit" } else { "op" });
    if op.is_unknown() {
        class.push_str(" unknown");
    }
    let (top, height, baseline) = (y + 2, BAR_HEIGHT - 4, y + BAR_HEIGHT / 2 + GAP / 2);
    let (label, about) = (escape(&label(op)), escape(&op.to_string()));
    let _ = writeln!(
        page,
        "<g><title>{about}</title><rect class=\"{class}\" x=\"{x}\" y=\"{top}\" \
         width=\"{width}\" height=\"{height}\" rx=\"3\"/><text x=\"{}\" y=\"{baseline}\">{label}\
         </text></g>",
        x + 3
    );
}

/// A client's operations, in as many lines as it had in flight at once.
struct Row {
    client: usize,
    bars: Vec<Vec<usize>>,
}

fn rows(layout: &Layout, ops: &[Op]) -> Vec<Row> {
    let row = |client: &usize| {
        let mut bars: Vec<Vec<usize>> = Vec::new();
        for (index, op) in ops.iter().enumerate().filter(|(_, op)| op.client == *client) {
            let (from, _) = layout.span(op);
            let free = |bar: &&mut Vec<usize>| {
                let last = bar.last().and_then(|last| ops.get(*last));
                last.is_none_or(|last| layout.span(last).1 < from)
            };
            match bars.iter_mut().find(free) {
                Some(bar) => bar.push(index),
                None => bars.push(vec![index]),
            }
        }
        Row { client: *client, bars }
    };
    layout.lanes.iter().map(row).collect()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Pixels.
const BAR_HEIGHT: usize = 24;
/// Pixels between two instants: room for `put 1000001 v12`.
const COLUMN_WIDTH: usize = 56;
/// Pixels for the names of clients.
const LABEL_WIDTH: usize = 70;
/// Pixels by which text stands below the middle of its bar.
const GAP: usize = 8;

const STYLE: &str = "body{font:13px sans-serif;margin:2em}svg{display:block;overflow:visible}\
    text{font:11px sans-serif}line{stroke:#ddd}.op{fill:#cfe3f7;stroke:#5b8fc2}\
    .culprit{fill:#f9c9c4;stroke:#c0392b}.unknown{stroke-dasharray:4 3;fill-opacity:.5}\
    p{max-width:60em}";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::op::OpKind;
    use machine::Instant;
    use wire::Version;

    #[test]
    fn a_page_has_a_bar_for_each_operation_and_escapes_what_it_shows() {
        let op = |client, called| Op {
            client,
            called: Instant(called),
            returned: (called < 9).then_some(Instant(called + 1)),
            kind: OpKind::Read(None),
            version: Version::NONE,
        };
        let violation = Violation {
            key: "<k>".into(),
            what: "a < b".into(),
            ops: vec![op(0, 1), op(0, 4), op(1, 9)],
            culprits: vec![1],
        };
        let page = draw_html("seed 7", &[violation]);
        assert_eq!(page.matches("<rect").count(), 3);
        assert_eq!(page.matches("class=\"culprit\"").count(), 1);
        assert_eq!(page.matches("unknown\"").count(), 1);
        assert!(page.contains("&lt;k&gt;") && page.contains("a &lt; b") && !page.contains("<k>"));
        assert!(!page.contains("http"), "nothing is fetched");
    }
}
