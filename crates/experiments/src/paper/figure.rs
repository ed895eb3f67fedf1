//! What an experiment results in: a table and a plot.

use crate::paper::plot::{Panel, draw};

/// The result of one experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What is shown.
    pub title: String,
    /// What it was made with, and how its columns are to be read; a line each.
    pub notes: Vec<String>,
    /// In figures.
    pub table: Table,
    /// As diagrams beside each other; at least one.
    pub panels: Vec<Panel>,
}

impl Figure {
    /// The plot, as an SVG document.
    #[must_use]
    pub fn svg(&self) -> String {
        draw(&self.title, &self.panels)
    }
}

/// Rows of cells, as many in each as there are columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What the columns are called.
    pub columns: Vec<Column>,
    /// The rows.
    pub rows: Vec<Vec<Cell>>,
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// For people.
    pub head: &'static str,
    /// For programs.
    pub key: &'static str,
}

/// One field of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// A name.
    Text(String),
    /// A number, and how many digits after the point are worth reading.
    Number(f64, usize),
    /// Nothing was found.
    None,
}

impl Cell {
    /// A text.
    #[must_use]
    pub fn text(text: impl ToString) -> Self {
        Self::Text(text.to_string())
    }

    /// A number that may be missing, and how many of its digits after the point are worth reading.
    #[must_use]
    pub fn number(number: impl Into<Option<f64>>, digits: usize) -> Self {
        number.into().map_or(Self::None, |number| Self::Number(number, digits))
    }
}
