//! Keys that are only appended to: what was answered tells where every record stands, so whether
//! it is linearizable needs no search.

use machine::Instant;
use std::collections::{BTreeMap, BTreeSet};

/// What happened to one such key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Appended {
    /// Records whose author was not told how it ended.
    pub(crate) unknown: BTreeSet<String>,
    pub(crate) known: Vec<Seen>,
    /// The longest value that anybody saw.
    pub(crate) longest: String,
    /// Values that are not a beginning of the longest, or the other way round.
    pub(crate) others: Vec<String>,
}

/// One command that was answered.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) called: Instant,
    pub(crate) returned: Instant,
    /// The length that it saw, or made.
    pub(crate) end: usize,
    /// What it appended; `None` if it only looked.
    pub(crate) record: Option<String>,
}

impl Appended {
    /// Somebody saw this value.
    pub(crate) fn saw(&mut self, value: &str) {
        if value.starts_with(&self.longest) {
            self.longest = value.to_owned();
        } else if !self.longest.starts_with(value) {
            self.others.push(value.to_owned());
        }
    }

    /// Takes in what somebody else wrote down.
    pub(crate) fn merge(&mut self, other: Self) {
        self.unknown.extend(other.unknown);
        self.known.extend(other.known);
        self.saw(&other.longest);
        self.others.extend(other.others);
    }

    /// What no key can have done, in words.
    pub(crate) fn violations(&self) -> Vec<String> {
        let longest = &self.longest;
        let mut found: Vec<String> = self
            .others
            .iter()
            .map(|other| format!("neither {other:?} nor {longest:?} is the other's beginning"))
            .collect();
        let mut times: BTreeMap<&str, usize> = BTreeMap::new();
        for record in longest.split_inclusive(';') {
            *times.entry(record).or_default() += 1;
        }
        let mut known: BTreeSet<&str> = self.unknown.iter().map(String::as_str).collect();
        for seen in &self.known {
            let Some(record) = &seen.record else { continue };
            known.insert(record);
            let begin = seen.end.checked_sub(record.len());
            if begin.and_then(|begin| longest.get(begin..seen.end)) != Some(record) {
                found.push(format!("{record:?} does not end at {} in {longest:?}", seen.end));
            }
        }
        for (record, times) in times {
            if times > 1 {
                found.push(format!("{record:?} was appended {times} times"));
            }
            if !known.contains(record) {
                found.push(format!("nobody appended {record:?}"));
            }
        }
        found.extend(self.backwards());
        found
    }

    /// Whoever asks after somebody else was answered sees at least as much; an append makes it
    /// more.
    fn backwards(&self) -> Option<String> {
        let mut by_end = self.known.iter().collect::<Vec<_>>();
        by_end.sort_by_key(|seen| seen.returned);
        self.known.iter().find_map(|later| {
            let least = later.end.checked_sub(later.record.as_ref().map_or(0, String::len))?;
            let before = by_end.iter().take_while(|it| it.returned < later.called);
            let most = before.map(|it| it.end).max().filter(|most| *most > least)?;
            Some(format!("{later:?} began after somebody had seen a length of {most}"))
        })
    }
}

fn at(called: u64, end: usize, record: Option<&str>) -> Seen {
    let record = record.map(str::to_owned);
    Seen { called: Instant(called), returned: Instant(called + 2), end, record }
}

#[test]
fn records_that_stand_where_they_should_are_well() {
    let known = vec![at(1, 2, Some("a;")), at(2, 4, Some("b;")), at(5, 6, None)];
    let mut key = Appended { known, ..Appended::default() };
    key.unknown.insert("c;".into());
    key.saw("a;b;");
    key.saw("a;b;c;");
    key.saw("a;");
    assert_eq!(key.violations(), [""; 0]);
}

#[test]
fn records_that_are_lost_doubled_or_late_are_found() {
    let key = |known: &[Seen], value: &str| {
        let mut key = Appended { known: known.to_vec(), ..Appended::default() };
        key.saw(value);
        key.violations()
    };
    let lost = key(&[at(1, 2, Some("a;")), at(4, 4, Some("b;"))], "a;");
    assert!(lost.iter().any(|it| it.contains("does not end at 4")), "{lost:?}");
    let doubled = key(&[at(1, 2, Some("a;"))], "a;a;");
    assert!(doubled.iter().any(|it| it.contains("2 times")), "{doubled:?}");
    let strange = key(&[], "x;");
    assert!(strange.iter().any(|it| it.contains("nobody appended")), "{strange:?}");
    let stale = key(&[at(1, 2, Some("a;")), at(9, 0, None)], "a;");
    assert!(stale.iter().any(|it| it.contains("began after")), "{stale:?}");
    let mut forked = Appended::default();
    forked.saw("a;");
    forked.saw("b;");
    assert!(forked.violations().iter().any(|it| it.contains("beginning")));
}
