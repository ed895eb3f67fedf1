//! Goal: `docs/reference/json.md` says what programs really read.
//! Method: a real status is held against its tables, both ways.

use crate::setup::{get, in_memory, post};
use runtime::up::{Embedded, HASH_KEYSPACE};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const PAGE: &str = include_str!("../../../../docs/reference/json.md");

/// The fields of an object with their types.
type Table<'a> = BTreeMap<&'a str, &'a str>;

fn tables() -> BTreeMap<&'static str, Table<'static>> {
    let sections = PAGE.split("\n### `").skip(1).filter_map(|section| section.split_once('`'));
    let rows = |text: &'static str| {
        text.lines().filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split(" | ");
            Some((cells.next()?.trim_end_matches('`'), cells.next()?))
        })
    };
    sections.map(|(name, text)| (name, rows(text).collect())).collect()
}

struct Check<'a> {
    tables: BTreeMap<&'a str, Table<'a>>,
    seen: BTreeSet<String>,
    wrong: Vec<String>,
}

impl Check<'_> {
    fn value(&mut self, place: &str, value: &Value, kind: &str) {
        let kind = kind.trim_end_matches(", may be missing");
        let kind = kind.strip_prefix('(').and_then(|it| it.strip_suffix(')')).unwrap_or(kind);
        if let Some(kind) = kind.strip_suffix(" or null") {
            if !value.is_null() {
                self.value(place, value, kind);
            }
            return;
        }
        if let Some(kind) = kind.strip_prefix("list of ") {
            match value.as_array() {
                Some(items) => items.iter().for_each(|item| self.value(place, item, kind)),
                None => self.wrong.push(format!("{place} is no list: {value}")),
            }
            return;
        }
        let fits = match kind {
            "text" => value.is_string(),
            // More than that many are not kept by those who read JSON's numbers as doubles.
            "number" => value.as_f64().is_some_and(|it| it.abs() < 9_007_199_254_740_992.0),
            "boolean" => value.is_boolean(),
            object => return self.object(place, value, object.trim_matches('`')),
        };
        if !fits {
            self.wrong.push(format!("{place} is no {kind}: {value}"));
        }
    }

    fn object(&mut self, place: &str, value: &Value, name: &str) {
        let (Some(table), Some(object)) = (self.tables.get(name).cloned(), value.as_object())
        else {
            self.wrong.push(format!("{place} is no {name}: {value}"));
            return;
        };
        self.seen.insert(name.to_owned());
        for (field, kind) in &table {
            match object.get(*field) {
                Some(value) => self.value(&format!("{name}.{field}"), value, kind),
                None if kind.ends_with("may be missing") => {}
                None => self.wrong.push(format!("{name}.{field} is not there")),
            }
        }
        let unknown = object.keys().filter(|field| !table.contains_key(field.as_str()));
        self.wrong.extend(unknown.map(|field| format!("{name}.{field} is not on the page")));
    }
}

#[test]
fn the_page_says_what_a_status_is() {
    let cluster = Embedded::start(&in_memory()).unwrap();
    let pin = json!({ "keyspace": HASH_KEYSPACE, "key": [107] }).to_string();
    assert_eq!(post(cluster.admin(), "/v1/hot/pin", &pin).status, 200);
    assert_eq!(post(cluster.admin(), "/v1/verify", "{}").status, 200);
    let mut status = Value::Null;
    for _ in 0..200 {
        status = serde_json::from_str(&get(cluster.admin(), "/v1/status").body).unwrap();
        let verify = &status["verify"];
        if !verify.is_null() && verify["done"] == verify["partitions"] {
            break;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(50));
    }
    let mut check = Check { tables: tables(), seen: BTreeSet::new(), wrong: Vec::new() };
    check.value("status", &status, "`status`");
    assert_eq!(check.wrong, Vec::<String>::new(), "{status}");
    assert_eq!(status["schema"], controller::STATUS_SCHEMA);
    for name in
        ["member", "member_id", "keyspace", "partition", "load", "hot", "decision", "verified"]
    {
        assert!(check.seen.contains(name), "no {name} in {status}");
    }
}
