//! The view on a terminal, again and again, until somebody has seen enough.

use super::plain::{KEYS_HEAD, NODES_HEAD, key_rows, node_rows, summary};
use super::view::View;
use crate::exit::Failure;
use anyhow::Context as _;
use controller::Status;
use ratatui::Frame;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, poll, read};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Style, Stylize as _};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Row, Table};
use std::time::Duration;

/// Shows what `look` sees, about once in every `interval`, until somebody presses `q`.
///
/// # Errors
///
/// If the terminal fails. A look that fails is shown, and another one is taken: the controller may
/// be back then.
pub(crate) fn run(
    mut look: impl FnMut() -> Result<Status, Failure>,
    interval: Duration,
) -> Result<(), Failure> {
    let mut terminal = ratatui::try_init().context("cannot use the terminal")?;
    let mut shown: Option<View> = None;
    let mut before: Option<Status> = None;
    let outcome = loop {
        let mut trouble = None;
        match look() {
            Ok(now) => {
                shown = before.as_ref().map(|before| View::between(before, &now)).or(shown);
                before = Some(now);
            }
            Err(failure) => trouble = Some(failure.message()),
        }
        let drawn = terminal.draw(|frame| draw(frame, shown.as_ref(), trouble.as_deref()));
        match drawn.map(|_| ()).and_then(|()| wait(interval)) {
            Ok(false) => {}
            Ok(true) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    ratatui::restore();
    Ok(outcome.context("the terminal failed")?)
}

/// Waits for the next look; whether somebody wants to end.
fn wait(interval: Duration) -> std::io::Result<bool> {
    while poll(interval)? {
        match read()? {
            Event::Key(key) if ends(key) => return Ok(true),
            // Drawn anew at once.
            Event::Resize(..) => return Ok(false),
            _ => {}
        }
    }
    Ok(false)
}

fn ends(key: KeyEvent) -> bool {
    let interrupt = key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
    interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}

/// Columns of a node's row; the last is the bar.
const NODE_WIDTHS: [u16; 8] = [10, 11, 6, 8, 12, 8, 8, 20];
/// Columns of a key's row; the first takes what is left.
const KEY_WIDTHS: [u16; 9] = [0, 12, 11, 11, 7, 11, 9, 10, 7];

pub(super) fn draw(frame: &mut Frame<'_>, view: Option<&View>, trouble: Option<&str>) {
    let node_lines = view.map_or(0, |view| view.nodes.len()) + 2;
    let node_lines = u16::try_from(node_lines).unwrap_or(u16::MAX);
    let parts = [
        Constraint::Length(2),
        Constraint::Length(node_lines.min(frame.area().height / 2)),
        Constraint::Fill(1),
        Constraint::Length(1),
    ];
    let [top, nodes, keys, bottom] = Layout::vertical(parts).areas(frame.area());
    let title = match (trouble, view) {
        (Some(trouble), _) => Text::from(trouble.to_owned()).red(),
        (None, Some(view)) if view.covered => Text::from(summary(view)),
        (None, Some(view)) => Text::from(summary(view)).red(),
        (None, None) => Text::from("looking ..."),
    };
    frame.render_widget(title, top);
    if let Some(view) = view {
        let widths = NODE_WIDTHS.map(Constraint::Length);
        frame.render_widget(rows(&NODES_HEAD, node_rows(view), widths), nodes);
        let [_, rest @ ..] = KEY_WIDTHS.map(Constraint::Length);
        let [a, b, c, d, e, f, g, h] = rest;
        let widths = [Constraint::Fill(1), a, b, c, d, e, f, g, h];
        frame.render_widget(rows(&KEYS_HEAD, key_rows(view), widths), keys);
    }
    frame.render_widget(Text::from("q ends").dim(), bottom);
}

/// A table whose first column is aligned left, as is the last, and the others right.
fn rows<const N: usize>(
    head: &[&'static str; N],
    rows: impl Iterator<Item = Vec<String>>,
    widths: [Constraint; N],
) -> Table<'static> {
    let line = |column: usize, cell: String| {
        let line = Line::from(cell);
        if column == 0 || column + 1 == N { line } else { line.right_aligned() }
    };
    let row = |cells: Vec<String>| {
        Row::new(cells.into_iter().enumerate().map(move |(column, cell)| line(column, cell)))
    };
    let head = row(head.iter().map(|it| (*it).to_owned()).collect()).style(Style::new().bold());
    Table::new(rows.map(row), widths).header(head)
}
