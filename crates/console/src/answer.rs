//! Results as JSON: one object on one line, which says under `outcome` how it ended.

use crate::bytes::Style;
use crate::exit::Failure;
use crate::out;
use client::Value;
use serde::Serialize;
use serde_json::{Map, json};

/// An object in the making.
#[derive(Debug)]
pub struct Answer(Map<String, serde_json::Value>);

impl Answer {
    /// Begins with the outcome: `done`, `not_found`, ...
    pub fn new(outcome: &str) -> Self {
        let mut object = Map::new();
        object.insert("outcome".to_owned(), json!(outcome));
        Self(object)
    }

    /// Adds a field.
    pub fn with(mut self, name: &str, value: impl Serialize) -> Self {
        self.0.insert(name.to_owned(), json!(value));
        self
    }

    /// Adds bytes, as text or under `NAME_hex`.
    pub fn bytes(mut self, style: Style, name: &str, bytes: &[u8]) -> Self {
        style.put(&mut self.0, name, bytes);
        self
    }

    /// Adds the value of a key and what is known of it; of a long one its length.
    pub fn value(self, style: Style, key: &[u8], value: &Value) -> Self {
        let answer = if value.big {
            self.with("bytes", value.whole_len(key))
        } else {
            self.bytes(style, "value", &value.value)
        };
        let answer = answer.with("version", value.version);
        let answer = match value.expiry_ms {
            0 => answer,
            expiry_ms => answer.with("expiry_ms", expiry_ms),
        };
        match value.ttl_ms() {
            Some(ttl_ms) => answer.with("ttl_ms", ttl_ms),
            None => answer,
        }
    }

    /// The line, without its end.
    pub fn line(self) -> String {
        serde_json::Value::Object(self.0).to_string()
    }

    /// Prints it.
    pub fn print(self) -> Result<(), Failure> {
        out::line(&self.line())
    }
}
