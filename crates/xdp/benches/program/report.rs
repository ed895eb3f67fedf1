//! What was measured, for people or for programs.

use serde_json::Value;

/// How rows are printed.
#[derive(Clone, Copy)]
pub(crate) enum Report {
    /// As tables with heads.
    Text,
    /// As an object a line.
    Json,
}

impl Report {
    /// As the command line says.
    pub(crate) fn asked_for() -> Self {
        let json = std::env::args().any(|argument| argument == "--json");
        if json { Self::Json } else { Self::Text }
    }

    /// A figure.
    pub(crate) fn row(self, text: &str, json: &Value) {
        match self {
            Self::Text => println!("{text}"),
            Self::Json => println!("{json}"),
        }
    }

    /// What people read around figures.
    pub(crate) fn text(self, text: &str) {
        if matches!(self, Self::Text) {
            println!("{text}");
        }
    }
}
