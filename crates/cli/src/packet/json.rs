//! A packet as a JSON object.

use super::said::{Said, drop_reason, is_delivered, op, said, time};
use crate::capture::Captured;
use console::bytes::{Style, to_hex};
use serde_json::{Map, Value, json};
use wire::dissect::{ENVELOPE, Item, dissect, split_envelope};

/// An object on one line.
pub(crate) fn json(captured: &Captured<'_>, datagram: &[u8]) -> String {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("outcome", json!("packet"));
    put("number", json!(captured.number));
    if let Some(at) = captured.at.and_then(time) {
        put("at", json!(at));
    }
    if let Some((from, to)) = captured.ends {
        put("from", json!(from.to_string()));
        put("to", json!(to.to_string()));
    }
    put("bytes", json!(datagram.len()));
    if captured.cut {
        put("cut", json!(true));
    }
    let (_, packet) = split_envelope(datagram);
    if let Some(reason) = drop_reason(captured, packet) {
        put("drop", json!(reason));
    }
    let mut builder = Builder { op: op(packet), ..Builder::default() };
    dissect(datagram, is_delivered(captured, packet), &mut |item| builder.take(item));
    builder.end(&mut object);
    Value::Object(object).to_string()
}

#[derive(Default)]
struct Builder {
    op: u8,
    envelope: Option<Map<String, Value>>,
    header: Map<String, Value>,
    payload: Vec<Value>,
    /// Fields that the same bytes may be, none of which is known to be there.
    unclear: Map<String, Value>,
    /// The body that has begun.
    body: Option<(&'static str, Map<String, Value>)>,
    missing: Option<&'static str>,
    left: Vec<u8>,
}

impl Builder {
    fn take(&mut self, item: Item<'_>) {
        match item {
            Item::Field { field, bytes, sure } => {
                let value = value(said(field, bytes, self.op));
                let into = match &mut self.body {
                    Some((_, body)) => body,
                    None if sure => &mut self.header,
                    None => &mut self.unclear,
                };
                into.insert(field.name.to_owned(), value);
            }
            Item::Bytes { name, bytes } => {
                let style = Style { hex: false };
                if let Some((_, body)) = &mut self.body {
                    style.put(body, name, bytes);
                } else {
                    let mut alone = Map::new();
                    style.put(&mut alone, name, bytes);
                    self.payload.push(Value::Object(alone));
                }
            }
            Item::Begin(name) => self.body = Some((name, Map::new())),
            Item::End => match self.body.take() {
                Some((ENVELOPE, body)) => self.envelope = Some(body),
                Some((name, body)) => self.payload.push(json!({ name: body })),
                None => {}
            },
            Item::Missing(name) => self.missing = Some(name),
            Item::Left(bytes) => self.left.extend_from_slice(bytes),
        }
    }

    fn end(self, object: &mut Map<String, Value>) {
        if let Some(envelope) = self.envelope {
            object.insert(ENVELOPE.to_owned(), Value::Object(envelope));
        }
        object.insert("header".to_owned(), Value::Object(self.header));
        if !self.unclear.is_empty() {
            object.insert("unclear".to_owned(), Value::Object(self.unclear));
        }
        object.insert("payload".to_owned(), Value::Array(self.payload));
        if let Some(name) = self.missing {
            object.insert("missing".to_owned(), json!(name));
        }
        if !self.left.is_empty() {
            object.insert("left_hex".to_owned(), json!(to_hex(&self.left)));
        }
    }
}

fn value(said: Said) -> Value {
    match said {
        Said::Number(number) => json!(number),
        Said::Signed(number) => json!(number),
        Said::Hex(text) | Said::Word(text) => json!(text),
        Said::Words(words) => json!(words),
        Said::Ids(ids) => json!(ids),
    }
}
