//! Many commands at once on few keys, through two gateways: each is one step of its key's history.

use crate::setup::{Gateway, integer, run};
use bytes::Bytes;
use gateway::Reply;
use gateway::store::Store;
use machine::Rng;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::task::JoinSet;

/// Tasks, half of them through each gateway.
const TASKS: usize = 8;

/// Runs `work` in all tasks at once; what they give back.
fn at_once<T, F>(gateway: &Gateway, work: impl Fn(usize, Client) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let stores = [gateway.store(), gateway.store()];
    gateway.runtime.block_on(async {
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let _guard = tasks.spawn(work(task, Client(stores[task % 2].clone())));
        }
        tasks.join_all().await
    })
}

/// A client of one gateway.
pub(crate) struct Client(Store);

impl Client {
    pub(crate) async fn say(&self, words: &str) -> Reply {
        let args: Vec<Bytes> = words.split(' ').map(|it| it.to_owned().into()).collect();
        run(&self.0, &args).await
    }
}

fn text(reply: &Reply) -> &str {
    let Reply::Bulk(bytes) = reply else { panic!("no value: {reply:?}") };
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn what_is_appended_stands_where_the_reply_says() {
    let gateway = Gateway::start();
    let appended = at_once(&gateway, |task, client| async move {
        let mut ends = Vec::new();
        for number in 0..25 {
            let record = format!("{task}{number:02};");
            ends.push((integer(&client.say(&format!("APPEND k {record}")).await), record));
            // The value is the same, and its expiry must not get lost.
            client.say(&format!("EXPIRE k {}", 1000 + number)).await;
        }
        ends
    });
    let store = gateway.store();
    let value = gateway.say(&store, "GET k");
    let value = text(&value);
    assert_eq!(value.len(), TASKS * 25 * 4);
    for (end, record) in appended.iter().flatten() {
        let end = usize::try_from(*end).unwrap();
        assert_eq!(&value[end - 4..end], record, "in {value}");
    }
    assert!(integer(&gateway.say(&store, "TTL k")) > 0, "the expiry is kept");
}

#[test]
fn every_sum_is_reached_once() {
    let gateway = Gateway::start();
    let sums = at_once(&gateway, |task, client| async move {
        let mut sums = Vec::new();
        for number in 0..25 {
            // Redis adds to either with the other.
            let whole = (task + number) % 2 == 0;
            let command = if whole { "INCRBY k 2" } else { "INCRBYFLOAT k 2.0" };
            let sum = match client.say(command).await {
                Reply::Integer(sum) => sum,
                other => text(&other).parse().unwrap(),
            };
            sums.push(sum);
        }
        sums
    });
    let sums: BTreeSet<i64> = sums.into_iter().flatten().collect();
    let expected: BTreeSet<i64> = (1..=i64::try_from(TASKS).unwrap() * 25).map(|n| 2 * n).collect();
    assert_eq!(sums, expected);
}

#[test]
fn parts_written_at_once_do_not_overwrite_each_other() {
    let gateway = Gateway::start();
    at_once(&gateway, |task, client| async move {
        let (first, last) = (task * 4, task * 4 + 3);
        for number in 0..25 {
            let part = format!("{task}-{number:02}");
            let len = integer(&client.say(&format!("SETRANGE k {first} {part}")).await);
            assert!(len > i64::try_from(last).unwrap());
            let seen = client.say(&format!("GETRANGE k {first} {last}")).await;
            assert_eq!(text(&seen), part);
        }
    });
    let store = gateway.store();
    let expected: String = (0..TASKS).map(|task| format!("{task}-24")).collect();
    assert_eq!(text(&gateway.say(&store, "GET k")), expected);
}

/// Half of the tasks put values where there is none, the others take them out. If values have
/// only `lasts_ms` milliseconds, each task waits between its commands, on average as long.
async fn hand_over(
    task: usize,
    client: Client,
    lasts_ms: Option<u64>,
) -> (Vec<String>, Vec<String>) {
    let (mut put, mut taken) = (Vec::new(), Vec::new());
    let mut rng = Rng::new(task as u64);
    let expiry = lasts_ms.map(|lasts_ms| format!(" PX {lasts_ms}")).unwrap_or_default();
    for number in 0..150 {
        if let Some(lasts_ms) = lasts_ms {
            tokio::time::sleep(Duration::from_micros(rng.below(2_000 * lasts_ms))).await;
        }
        let key = rng.below(2);
        if task < TASKS / 2 {
            let value = format!("{task}-{number}");
            let reply = client.say(&format!("SET k{key} {value} NX{expiry}")).await;
            match reply {
                Reply::Null => {}
                Reply::Status(_) => put.push(value),
                other => panic!("{other:?}"),
            }
        } else {
            match client.say(&format!("GETDEL k{key}")).await {
                Reply::Null => {}
                value => taken.push(text(&value).to_owned()),
            }
        }
    }
    (put, taken)
}

#[test]
fn a_value_is_taken_once() {
    let gateway = Gateway::start();
    let all = at_once(&gateway, |task, client| hand_over(task, client, None));
    let (put, mut taken): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    let put: BTreeSet<String> = put.into_iter().flatten().collect();
    let store = gateway.store();
    let rest = ["GETDEL k0", "GETDEL k1"].map(|command| gateway.say(&store, command));
    let rest = rest.iter().filter(|it| **it != Reply::Null).map(|it| text(it).to_owned());
    taken.push(rest.collect());
    let times = taken.iter().flatten().count();
    let taken: BTreeSet<String> = taken.into_iter().flatten().collect();
    assert_eq!(taken, put, "all of them");
    assert_eq!(times, put.len(), "each once");
    assert!(times > 20, "{times} values were handed over");
}

#[test]
fn a_value_is_taken_once_or_its_time_runs_out() {
    let gateway = Gateway::start();
    let all = at_once(&gateway, |task, client| hand_over(task, client, Some(10)));
    let (put, taken): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    let put: BTreeSet<String> = put.into_iter().flatten().collect();
    let times = taken.iter().flatten().count();
    let taken: BTreeSet<String> = taken.into_iter().flatten().collect();
    assert!(taken.is_subset(&put), "none that was not there");
    assert_eq!(times, taken.len(), "none twice");
    assert!(times > 20, "{times} values were handed over");
    assert!(times < put.len(), "some of {times} ran out");
}
