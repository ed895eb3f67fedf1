//! The view on a terminal, again and again, until somebody has seen enough.

use super::plain::{KEYS_HEAD, NODES_HEAD, key_rows, node_rows, partition_rows, summary};
use super::view::View;
use crate::partitions::PartitionView;
use anyhow::Context as _;
use console::exit::Failure;
use controller::Status;
use ratatui::Frame;
use ratatui::crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, poll, read};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize as _};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Paragraph, Row, Table, Wrap};
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

/// How a table is made to fit a narrow terminal.
struct Columns<'a> {
    /// The column that takes what is left, and what it needs of it before others have any.
    grows: (usize, u16),
    /// Columns that give way, the first one first.
    give_way: &'a [usize],
}

/// Of a node's row; what grows is the bar, which may say that the node is not ready.
const NODE_COLUMNS: Columns<'_> = Columns { grows: (8, 9), give_way: &[5, 7, 6, 3] };
/// Of a partition's row; what grows is the chain.
const PARTITION_COLUMNS: Columns<'_> = Columns { grows: (9, 9), give_way: &[5, 6, 8, 7, 3, 1] };
/// Of a key's row; what grows is the key.
const KEY_COLUMNS: Columns<'_> = Columns { grows: (0, 24), give_way: &[7, 6, 5, 8, 1, 4] };

pub(super) fn draw(frame: &mut Frame<'_>, view: Option<&View>, trouble: Option<&str>) {
    let node_lines = view.map_or(0, |view| view.nodes.len()) + 2;
    let node_lines = u16::try_from(node_lines).unwrap_or(u16::MAX);
    let parts = [
        Constraint::Length(2),
        Constraint::Length(node_lines.min(frame.area().height / 2)),
        Constraint::Length(view.map_or(0, |view| partition_lines(view, frame.area().height))),
        Constraint::Fill(1),
        Constraint::Length(1),
    ];
    let [top, nodes, partitions, keys, bottom] = Layout::vertical(parts).areas(frame.area());
    let title = match (trouble, view) {
        (Some(trouble), _) => Text::from(trouble.to_owned()).red(),
        (None, Some(view)) if view.covered => Text::from(summary(view)),
        (None, Some(view)) => Text::from(summary(view)).red(),
        (None, None) => Text::from("looking ..."),
    };
    frame.render_widget(Paragraph::new(title).wrap(Wrap { trim: true }), top);
    if let Some(view) = view {
        let rows: Vec<_> = node_rows(view).collect();
        frame.render_widget(table(&NODES_HEAD, &rows, nodes, &NODE_COLUMNS), nodes);
        let rows: Vec<_> = partition_rows(view).take(partitions.height.into()).collect();
        let shown = table(&PartitionView::HEAD, &rows, partitions, &PARTITION_COLUMNS);
        frame.render_widget(shown, partitions);
        let rows: Vec<_> = key_rows(view).take(keys.height.into()).collect();
        frame.render_widget(table(&KEYS_HEAD, &rows, keys, &KEY_COLUMNS), keys);
    }
    frame.render_widget(Text::from("q ends").dim(), bottom);
}

/// Lines for partitions: none where there is hardly room for nodes and keys.
fn partition_lines(view: &View, height: u16) -> u16 {
    let most = u16::try_from(view.partitions.len()).unwrap_or(u16::MAX).min(height / 5);
    if height < PARTITIONS_FROM || most == 0 { 0 } else { most + 2 }
}

/// How high a terminal is that shows partitions.
const PARTITIONS_FROM: u16 = 24;

/// A table whose first column is aligned left, as is the last, and the others right. Columns are as
/// wide as what is in them; some are left out where there is no room.
fn table(
    head: &[&'static str],
    rows: &[Vec<String>],
    area: Rect,
    columns: &Columns<'_>,
) -> Table<'static> {
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let width = |column: usize| {
        let head = head.get(column).map_or(0, |name| Line::from(*name).width());
        let widest = cells(column).map(|cell| Line::from(cell.as_str()).width()).max();
        u16::try_from(head.max(widest.unwrap_or(0))).unwrap_or(u16::MAX)
    };
    let (grows, least) = columns.grows;
    let mut shown: Vec<(usize, u16)> = (0..head.len()).map(|it| (it, width(it))).collect();
    let needed = |shown: &[(usize, u16)]| {
        let one = |(column, width): &(usize, u16)| {
            // And a blank between it and the next.
            u32::from(if *column == grows { least.min(*width) } else { *width }) + 1
        };
        shown.iter().map(one).sum::<u32>().saturating_sub(1)
    };
    for column in columns.give_way {
        if needed(&shown) <= u32::from(area.width) {
            break;
        }
        shown.retain(|(it, _)| it != column);
    }
    let last = head.len().saturating_sub(1);
    let line = |column: usize, cell: &str| {
        let line = Line::from(cell.to_owned());
        if column == 0 || column == last { line } else { line.right_aligned() }
    };
    let row = |cell: &dyn Fn(usize) -> String| {
        Row::new(shown.iter().map(|(column, _)| line(*column, &cell(*column))).collect::<Vec<_>>())
    };
    let names = row(&|column| head.get(column).map_or_else(String::new, |it| (*it).to_owned()));
    let rows: Vec<Row<'static>> =
        rows.iter().map(|it| row(&|column| it.get(column).cloned().unwrap_or_default())).collect();
    let widths = shown.iter().map(|(column, width)| {
        if *column == grows { Constraint::Fill(1) } else { Constraint::Length(*width) }
    });
    Table::new(rows, widths.collect::<Vec<_>>()).header(names.style(Style::new().bold()))
}
