//! What experiments result in, shown: a table as text or as JSON, and a plot in a file.

use crate::chart::table;
use crate::exit::Failure;
use crate::out;
use paper::{Cell, Figure};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Makes the folder that a plot is to go to, before hours are spent on what cannot be kept.
pub(crate) fn make_folder(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))
}

/// Prints the table, and writes the plot to a file of this name in the folder.
pub(crate) fn show(figure: &Figure, folder: &Path, name: &str, json: bool) -> Result<(), Failure> {
    let path = folder.join(format!("{name}.svg"));
    std::fs::write(&path, figure.svg()).map_err(|error| unwritable(&path, &error))?;
    if json {
        rows_as_json(figure).for_each(|row| out::line(&row.to_string()));
    } else {
        out::print(&as_text(figure));
        out::line(&format!("\nplot: {}", path.display()));
    }
    Ok(())
}

fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot write {}: {error}; say --out DIR", path.display()))
}

fn as_text(figure: &Figure) -> String {
    let heads = figure.table.columns.iter().map(|column| column.head.to_owned()).collect();
    let mut rows: Vec<Vec<String>> = vec![heads];
    let text = |cell: &Cell| match cell {
        Cell::Text(text) => text.clone(),
        Cell::Number(number, digits) => format!("{number:.digits$}"),
        Cell::None => "-".to_owned(),
    };
    rows.extend(figure.table.rows.iter().map(|row| row.iter().map(text).collect()));
    format!("{}\n{}\n\n{}", figure.title, figure.notes.join("\n"), table(&rows))
}

/// What the table was made with, and an object for each of its rows.
fn rows_as_json(figure: &Figure) -> impl Iterator<Item = Value> {
    let value = |cell: &Cell| match cell {
        Cell::Text(text) => json!(text),
        // No more digits than are worth reading.
        Cell::Number(number, digits) => {
            let scale = 10_f64.powf(*digits as f64);
            json!((number * scale).round() / scale)
        }
        Cell::None => Value::Null,
    };
    let columns = figure.table.columns.iter().map(|column| column.key.to_owned());
    let object = move |row: &Vec<Cell>| {
        let fields: Map<String, Value> = columns.clone().zip(row.iter().map(value)).collect();
        Value::Object(fields)
    };
    let head = json!({ "title": figure.title, "notes": figure.notes });
    std::iter::once(head).chain(figure.table.rows.iter().map(object))
}
