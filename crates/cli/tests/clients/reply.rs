//! Whether a reply is as the script wants it.

use serde_json::Value;

/// Whether the server replied that: a value as it is, `{"from": a, "to": b}` for a number between
/// these, `{"begins": text}`, `{"error": text}` and `{"begins error": text}` without the code ERR,
/// which some libraries leave out, or `{"in any order": [..]}`; also within lists.
pub(crate) fn is(wanted: &Value, found: &Value) -> bool {
    match wanted {
        Value::Object(form) => {
            let mut form = form.iter();
            match (form.next(), form.next()) {
                (Some((name, wanted)), None) => has_form(name, wanted, found),
                _ => is_between(&wanted["from"], &wanted["to"], found),
            }
        }
        Value::Array(wanted) => found.as_array().is_some_and(|found| {
            let same = |(wanted, found)| is(wanted, found);
            wanted.len() == found.len() && wanted.iter().zip(found).all(same)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => wanted == found,
    }
}

/// Whether a method of a library returned that, in whatever types it has for it: `true` is 1 or
/// OK or PONG, and numbers with fractions may be texts.
pub(crate) fn means(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::Bool(_), _) => false,
        (Value::Number(number), Value::Bool(yes)) => number.as_u64() == Some(u64::from(*yes)),
        (Value::String(text), Value::Bool(true)) => ["OK", "PONG"].contains(&text.as_str()),
        (Value::Number(number), Value::String(text)) if number.is_f64() => {
            text.parse().ok() == number.as_f64()
        }
        _ => is(wanted, found),
    }
}

fn has_form(name: &str, wanted: &Value, found: &Value) -> bool {
    let text = || wanted.as_str().expect("a text");
    let error = || {
        let error = found.get("error").and_then(Value::as_str)?;
        Some(error.strip_prefix("ERR ").unwrap_or(error))
    };
    match name {
        "begins" => found.as_str().is_some_and(|found| found.starts_with(text())),
        "error" => error() == Some(text()),
        "begins error" => error().is_some_and(|found| found.starts_with(text())),
        "in any order" => sorted(wanted) == sorted(found),
        _ => panic!("the script has no form {name:?}"),
    }
}

/// Numbers may be in texts, as in the reply to TIME.
fn is_between(from: &Value, to: &Value, found: &Value) -> bool {
    let number = match found {
        Value::String(text) => text.parse().ok(),
        other => other.as_i64(),
    };
    let bound = |it: &Value| it.as_i64().expect("a number");
    number.is_some_and(|number: i64| (bound(from)..=bound(to)).contains(&number))
}

fn sorted(list: &Value) -> Option<Vec<String>> {
    let mut texts: Vec<String> = list.as_array()?.iter().map(Value::to_string).collect();
    texts.sort();
    Some(texts)
}

#[test]
fn replies_that_differ_are_told_apart() {
    use serde_json::json;
    let alike = [
        (json!([1, null, "a"]), json!([1, null, "a"])),
        (json!({"from": 1, "to": 3}), json!("3")),
        (json!({"error": "no"}), json!({"error": "ERR no"})),
        (json!({"in any order": ["a", "b"]}), json!(["b", "a"])),
    ];
    for (wanted, found) in alike {
        assert!(is(&wanted, &found), "{wanted} and {found}");
    }
    let different = [
        (json!([1, null]), json!([1, null, "a"])),
        (json!(1), json!("1")),
        (json!(null), json!("")),
        (json!("OK"), json!(true)),
        (json!({"from": 1, "to": 3}), json!(4)),
        (json!({"error": "no"}), json!("no")),
        (json!({"error": "no"}), json!({"error": "WRONGTYPE no"})),
        (json!({"in any order": ["a", "b"]}), json!(["b"])),
    ];
    for (wanted, found) in different {
        assert!(!is(&wanted, &found), "{wanted} and {found}");
    }
    assert!(means(&json!(1), &json!(true)) && means(&json!(31.5), &json!("31.5")));
    assert!(!means(&json!(1), &json!(false)) && !means(&json!("one"), &json!(true)));
    assert!(!means(&json!(5), &json!("5")));
}
