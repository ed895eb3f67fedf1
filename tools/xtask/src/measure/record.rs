//! What benchmarks printed, kept under target/measured: a page can be made of it again.

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::machine::Machine;

/// All runs of a section.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Recorded {
    pub(super) on: Machine,
    /// What the longest run took.
    pub(super) seconds: f64,
    /// The rows of each run.
    pub(super) runs: Vec<Vec<Value>>,
}

/// Where a section is kept.
pub(super) fn path(folder: &Path, section: &str) -> PathBuf {
    folder.join(format!("{section}.json"))
}

impl Recorded {
    pub(super) fn read(folder: &Path, section: &str) -> Result<Self> {
        let path = path(folder, section);
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!("{} cannot be read; cargo xtask measure --only {section}", path.display())
        })?;
        serde_json::from_str(&text).with_context(|| {
            format!("{} is not of this version: measure {section} again", path.display())
        })
    }

    pub(super) fn write(&self, folder: &Path, section: &str) -> Result<()> {
        let path = path(folder, section);
        let text = serde_json::to_string_pretty(self)?;
        std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
    }

    /// One set of rows: each figure is the median of its runs.
    pub(super) fn medians(&self) -> Result<Vec<Value>> {
        let Some(first) = self.runs.first() else { bail!("nothing was recorded") };
        for run in &self.runs {
            ensure!(
                run.len() == first.len(),
                "runs have {} and {} rows: something began or ended while it was measured; measure \
                 again",
                first.len(),
                run.len()
            );
        }
        let at = |at: usize| self.runs.iter().filter_map(|run| run.get(at)).collect::<Vec<_>>();
        Ok((0..first.len()).map(|row| median(&at(row))).collect())
    }
}

/// Numbers are medians; of anything else the most frequent is taken, and of equals the first.
fn median(values: &[&Value]) -> Value {
    if let [first, rest @ ..] = values
        && rest.iter().all(|it| it == first)
    {
        return (*first).clone();
    }
    let mut numbers: Vec<f64> = values.iter().filter_map(|it| it.as_f64()).collect();
    if numbers.len() * 2 > values.len() {
        numbers.sort_by(f64::total_cmp);
        let at = |at: usize| numbers.get(at).copied().unwrap_or_default();
        return f64::midpoint(at((numbers.len() - 1) / 2), at(numbers.len() / 2)).into();
    }
    let objects: Vec<&Map<String, Value>> = values.iter().filter_map(|it| it.as_object()).collect();
    if let (Some(first), true) = (objects.first(), objects.len() == values.len()) {
        let of =
            |key: &String| median(&objects.iter().filter_map(|it| it.get(key)).collect::<Vec<_>>());
        return first.keys().map(|key| (key.clone(), of(key))).collect::<Map<_, _>>().into();
    }
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    values.iter().for_each(|it| *times.entry(it.to_string()).or_default() += 1);
    let most = times.values().max().copied().unwrap_or_default();
    let is_most = |it: &&&Value| times.get(&it.to_string()) == Some(&most);
    values.iter().find(is_most).map_or(Value::Null, |it| (*it).clone())
}

/// The rows that a command has printed: one object a line. One that has `rows` is those, and every
/// row says by which command it was printed.
pub(super) fn rows(command: &str, printed: &str) -> Result<Vec<Value>> {
    let mut rows = Vec::new();
    for line in printed.lines().filter(|line| !line.trim().is_empty()) {
        let value: Value = serde_json::from_str(line)
            .with_context(|| format!("{command} printed what is no JSON: {line:?}"))?;
        match value {
            Value::Object(mut object) => match object.remove("rows") {
                Some(Value::Array(inner)) => rows.extend(inner),
                _ => rows.push(Value::Object(object)),
            },
            other => bail!("{command} printed what is no object: {other}"),
        }
    }
    for row in &mut rows {
        if let Value::Object(row) = row {
            row.insert("command".to_owned(), command.into());
        }
    }
    ensure!(!rows.is_empty(), "{command} printed no row");
    Ok(rows)
}

/// Why a benchmark did nothing, if it says so.
pub(super) fn skipped(rows: &[Value]) -> Option<String> {
    rows.iter().find_map(|row| Some(row.get("skipped")?.as_str()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn recorded(runs: &[Value]) -> Recorded {
        let runs = runs.iter().map(|run| vec![run.clone()]).collect();
        Recorded { on: Machine::default(), seconds: 1.0, runs }
    }

    #[test]
    fn figures_are_medians_and_words_are_what_most_say() {
        let run = |median: f64, full: &str, ratio: Value| {
            let rate = json!({ "median": median });
            json!({ "nodes": 4, "rate": rate, "full": full, "ratio": ratio })
        };
        let runs = recorded(&[
            run(3.0, "both", json!(0.5)),
            run(1.0, "server", Value::Null),
            run(2.0, "server", json!(0.7)),
        ]);
        let [row] = <[Value; 1]>::try_from(runs.medians().unwrap()).unwrap();
        let wanted =
            json!({ "nodes": 4, "rate": { "median": 2.0 }, "full": "server", "ratio": 0.6 });
        assert_eq!(row, wanted);
    }

    #[test]
    fn runs_of_different_rows_are_no_runs_of_one_thing() {
        let mut runs = recorded(&[json!({}), json!({})]);
        runs.runs[1].push(json!({}));
        let error = runs.medians().unwrap_err().to_string();
        assert!(error.starts_with("runs have 1 and 2 rows"), "{error}");
    }

    #[test]
    fn rows_are_taken_out_and_say_where_they_are_from() {
        let printed = "{\"a\":1}\n\n{\"outcome\":\"done\",\"rows\":[{\"b\":2},{\"b\":3}]}\n";
        let wanted = [
            json!({ "a": 1, "command": "x" }),
            json!({ "b": 2, "command": "x" }),
            json!({ "b": 3, "command": "x" }),
        ];
        assert_eq!(rows("x", printed).unwrap(), wanted);
        assert_eq!(rows("x", "").unwrap_err().to_string(), "x printed no row");
        let error = rows("x", "GET 3 ns").unwrap_err().to_string();
        assert_eq!(error, "x printed what is no JSON: \"GET 3 ns\"");
    }

    #[test]
    fn a_benchmark_that_did_nothing_says_why() {
        let why = rows("x", "{\"skipped\":\"needs root\"}").unwrap();
        assert_eq!(skipped(&why).as_deref(), Some("needs root"));
        // An arm that is not installed is no whole benchmark.
        assert_eq!(skipped(&[json!({ "skipped": true }), json!({ "a": 1 })]), None);
    }
}
