//! What experiments result in, shown: a table as text or as JSON, and a plot in a file.

use crate::paper::{Cell, Figure, Table};
use console::chart;
use console::exit::Failure;
use console::out;
use console::save::save;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Makes the folder that a plot is to go to, before hours are spent on what cannot be kept.
pub(crate) fn make_folder(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))
}

/// A table beside that of a figure.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) title: String,
    /// What its rows are called for programs.
    pub(crate) key: &'static str,
    pub(crate) table: Table,
}

/// Prints the table, and writes the plot to a file of this name in the folder.
pub(crate) fn show(figure: &Figure, folder: &Path, name: &str, json: bool) -> Result<(), Failure> {
    show_with(figure, &[], folder, name, json)
}

/// The same, with tables below it; as JSON their rows have a field `table`, those of the figure do
/// not.
pub(crate) fn show_with(
    figure: &Figure,
    sections: &[Section],
    folder: &Path,
    name: &str,
    json: bool,
) -> Result<(), Failure> {
    let path = folder.join(format!("{name}.svg"));
    save(&path, figure.svg().as_bytes())?;
    if json {
        let head = json!({ "title": figure.title, "notes": figure.notes });
        out::line(&head.to_string())?;
        rows_as_json(&figure.table, None).try_for_each(|row| out::line(&row.to_string()))?;
        for Section { key, table, .. } in sections {
            rows_as_json(table, Some(key)).try_for_each(|row| out::line(&row.to_string()))?;
        }
    } else {
        let Figure { title, notes, .. } = figure;
        out::print(&format!("{title}\n{}\n\n{}", notes.join("\n"), as_text(&figure.table)))?;
        for Section { title, table, .. } in sections {
            out::print(&format!("\n{title}\n\n{}", as_text(table)))?;
        }
        out::line(&format!("\nplot: {}", path.display()))?;
    }
    Ok(())
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot write {}: {error}; say --out DIR", path.display()))
}

fn as_text(table: &Table) -> String {
    let heads = table.columns.iter().map(|column| column.head.to_owned()).collect();
    let mut rows: Vec<Vec<String>> = vec![heads];
    let text = |cell: &Cell| match cell {
        Cell::Text(text) => text.clone(),
        Cell::Number(number, digits) => format!("{number:.digits$}"),
        Cell::None => "-".to_owned(),
    };
    rows.extend(table.rows.iter().map(|row| row.iter().map(text).collect()));
    chart::table(&rows)
}

/// An object for each row, which says of which table it is if that has a name.
fn rows_as_json(table: &Table, name: Option<&str>) -> impl Iterator<Item = Value> {
    let value = |cell: &Cell| match cell {
        Cell::Text(text) => json!(text),
        // No more digits than are worth reading.
        Cell::Number(number, digits) => {
            let scale = 10_f64.powf(*digits as f64);
            json!((number * scale).round() / scale)
        }
        Cell::None => Value::Null,
    };
    let columns = table.columns.iter().map(|column| column.key.to_owned());
    let object = move |row: &Vec<Cell>| {
        let name = name.map(|name| ("table".to_owned(), json!(name)));
        let fields = columns.clone().zip(row.iter().map(value));
        Value::Object(name.into_iter().chain(fields).collect::<Map<String, Value>>())
    };
    table.rows.iter().map(object)
}
