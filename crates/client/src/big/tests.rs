//! The machines for long values, told what a cluster could say.

use super::*;
use crate::owned::{OwnedExpect, OwnedRequest, OwnedStep};
use crate::{Change, Condition, Expiry, NotDone, Outcome, Refusal, Reply, StartError, Step, Value};
use std::time::Duration;
use wire::big::EXPIRY_BIG;
use wire::{UploadBody, Version};

const ID: UploadBody = UploadBody { client: 1, number: 2 };

fn draw() -> UploadBody {
    ID
}

/// Longer than what is sent before the first answer.
fn long() -> Vec<u8> {
    (0..600_000u32).map(|n| (n % 251) as u8).collect()
}

fn refused<T>(why: Refusal) -> Outcome<T> {
    Outcome::Refused(why)
}

fn taken() -> Event {
    Event::Answer(Outcome::Done(Reply::Mset(vec![Outcome::Done(Version::new(1))])))
}

/// Goes on until something is to be done other than to begin requests; says how many were begun.
fn begun<T>(mut next: impl FnMut(Event) -> Next<T>, mut event: Event) -> (usize, Next<T>) {
    let mut begun = 0;
    loop {
        match next(std::mem::replace(&mut event, Event::Done)) {
            Next::Begin(_) => begun += 1,
            other => return (begun, other),
        }
    }
}

fn writing(value: &[u8]) -> Writing<'_> {
    let expect = Some(OwnedExpect::Version(Version::new(7)));
    Writing::new((b"k", value), expect, Expiry::Never, u64::MAX, draw).unwrap()
}

#[test]
fn no_more_is_sent_than_may_be_under_way_and_the_end_comes_last() {
    let value = long();
    let mut writing = writing(&value);
    let (first, next) = begun(|event| writing.step(event), Event::Done);
    assert!(matches!(next, Next::Take), "{next:?}");
    let mut answers = 0;
    let ended = loop {
        let (more, next) = begun(|event| writing.step(event), taken());
        answers += 1;
        assert!(more <= 1 && first <= 4, "each answer makes room for one request");
        match next {
            Next::Take if answers < 100 => {}
            next => break next,
        }
    };
    // What was answered last was the write of the manifest, or taken for it.
    assert!(matches!(ended, Next::End(Outcome::Done(Reply::Mset(_)))), "{ended:?}");
    let parts = value.len().div_ceil(wire::big::part_len_max(b"k").unwrap());
    assert_eq!(answers, parts.div_ceil(64) + 1);
}

#[test]
fn a_value_whose_keyspace_is_another_one_is_written_once_more() {
    let value = long();
    let mut writing = writing(&value);
    for again in [false, true] {
        begun(|event| writing.step(event), Event::Done);
        let next = writing.step(Event::Answer(refused(Refusal::UnknownKeyspace)));
        assert!(matches!(next, Next::Renew), "{next:?}");
        let next = writing.step(Event::Renewed(true));
        match next {
            Next::Forget if !again => {}
            Next::End(Outcome::Refused(Refusal::UnknownKeyspace)) if again => {}
            next => panic!("{next:?}"),
        }
    }
    let mut unlucky = self::writing(&value);
    begun(|event| unlucky.step(event), Event::Done);
    unlucky.step(Event::Answer(refused(Refusal::BadMatch)));
    let next = unlucky.step(Event::Renewed(false));
    assert!(matches!(next, Next::End(Outcome::Refused(Refusal::BadMatch))), "{next:?}");
}

#[test]
fn an_end_that_is_refused_can_be_written_with_another_expectation() {
    let mut sending = Sending::new(b"k", ID, u64::MAX).unwrap();
    assert!(matches!(sending.push(&mut &b"short"[..], Event::Done), Next::End(Ok(()))));
    for version in [1, 2] {
        let expect = OwnedExpect::Version(Version::new(version));
        let mut finish = |event| sending.finish(Some(&expect), Expiry::Never, event);
        let Next::Begin(OwnedRequest::Cas { expect: OwnedExpect::Version(asked), .. }) =
            finish(Event::Done)
        else {
            panic!("a short value is one compare-and-set")
        };
        assert_eq!(asked, Version::new(version));
        assert!(matches!(finish(Event::Done), Next::Take));
        let answer = Event::Answer(Outcome::Done(Reply::Put { version: Version::new(version) }));
        assert!(matches!(finish(answer), Next::End(Outcome::Done(_))));
    }
}

/// A step that writes whatever is there.
fn put<'a>(key: &'a [u8], value: &'a [u8]) -> Step<'a> {
    Step { key, condition: Condition::Any, change: Change::Put { value, expiry_ms: 7 } }
}

/// Goes on to the end as if all were done; the keys whose values went as parts, and the steps that
/// were asked for in the end.
fn made(mut batching: Batching<'_>) -> (Vec<Vec<u8>>, Vec<OwnedStep>) {
    let (mut sent, mut event) = (Vec::new(), Event::Done);
    loop {
        event = match batching.step(event) {
            Next::Begin(OwnedRequest::PutParts { key, .. }) => {
                sent.push(key);
                Event::Done
            }
            Next::Begin(OwnedRequest::Batch { steps }) => {
                assert!(matches!(batching.step(Event::Done), Next::Take));
                return (sent, steps);
            }
            Next::Take => taken(),
            next => panic!("{next:?}"),
        };
    }
}

#[test]
fn values_that_a_batch_has_no_room_for_go_before_it() {
    let batching = |steps: &[Step<'_>]| {
        let batching = Batching::new(steps, u64::MAX, draw).expect("it can be made");
        batching.map(made)
    };
    let (long, short) = (vec![1; 3_000], vec![2; 1_000]);
    let steps = [put(b"a", b"1"), put(b"b", &long), put(b"c", &short)];
    let (sent, steps) = batching(&steps).expect("one is long");
    assert_eq!(sent, [b"b"], "the others fit");
    let asked: Vec<Step<'_>> = steps.iter().map(OwnedStep::lent).collect();
    assert_eq!((asked[0], asked[2]), (put(b"a", b"1"), put(b"c", &short)));
    let Change::Put { value, expiry_ms } = asked[1].change else { panic!("{asked:?}") };
    let manifest = wire::ManifestBody::parse(b"b", value).expect("a manifest");
    assert_eq!((manifest.len, manifest.upload(), expiry_ms), (3_000, ID, 7 | EXPIRY_BIG));
    // The longest go first, until the rest fits.
    let values: Vec<Vec<u8>> = (1..=10).map(|n| vec![0; n * 30]).collect();
    let keys: Vec<[u8; 1]> = (0..10).map(|n| [n]).collect();
    let steps: Vec<Step<'_>> =
        keys.iter().zip(&values).map(|(key, value)| put(key, value)).collect();
    let (sent, steps) = batching(&steps).expect("some are long");
    assert_eq!(sent, [[7], [8], [9]]);
    let len: usize = steps.iter().map(|step| step.lent().encoded_len()).sum();
    assert!(len <= wire::BATCH_BYTES_MAX && len + 210 > wire::BATCH_BYTES_MAX, "{len} bytes");
    assert!(batching(&[put(b"a", &short)]).is_none());
}

#[test]
fn a_batch_that_can_never_be_made_sends_no_parts() {
    let long = vec![0; 3_000];
    let refused = |steps: &[Step<'_>]| Batching::new(steps, u64::MAX, draw).err();
    let keys: Vec<[u8; 1]> = (0..49).map(|n| [n]).collect();
    let wide: Vec<Step<'_>> = keys.iter().map(|key| put(key, &long)).collect();
    assert!(matches!(
        refused(&wide),
        Some(Refusal::NotSent(StartError::BatchTooLarge { steps: 49, .. }))
    ));
    let key = vec![0; wire::KEY_MAX];
    assert_eq!(refused(&[put(&key, &long)]), Some(Refusal::KeyTooLongForBig));
    let change = Change::Put { value: b"1", expiry_ms: EXPIRY_BIG };
    let forged = Step { change, ..put(b"a", b"1") };
    assert_eq!(refused(&[forged]), Some(Refusal::NotSent(StartError::BadBatch)));
}

#[test]
fn a_batch_whose_keyspace_is_another_one_is_made_once_more() {
    let long = vec![0; 3_000];
    let steps = [put(b"a", &long), put(b"b", &long)];
    let mut batching = Batching::new(&steps, u64::MAX, draw).unwrap().expect("they are long");
    for again in [false, true] {
        let (begun_first, next) = begun(|event| batching.step(event), Event::Done);
        assert!(matches!((begun_first, next), (1, Next::Take)), "the first is there before");
        let (begun_next, next) = begun(|event| batching.step(event), taken());
        assert!(matches!((begun_next, next), (1, Next::Take)));
        let (begun_last, next) = begun(|event| batching.step(event), taken());
        assert!(matches!((begun_last, next), (1, Next::Take)), "then the batch itself");
        let next = batching.step(Event::Answer(refused(Refusal::BadMatch)));
        assert!(matches!(next, Next::Renew), "{next:?}");
        match batching.step(Event::Renewed(true)) {
            Next::Forget if !again => {}
            Next::End(Outcome::Refused(Refusal::BadMatch)) if again => {}
            next => panic!("{next:?}"),
        }
    }
}

/// What a read finds of a value of this length.
fn found(len: u64) -> Value {
    let manifest = wire::ManifestBody { len, part_len: 1_000, checksum: 0, client: 1, number: 2 };
    Value {
        value: manifest.to_bytes().to_vec(),
        version: Version::new(3),
        big: true,
        ..Value::default()
    }
}

#[test]
fn a_value_that_is_replaced_is_read_anew_after_rests_that_double() {
    let mut reading = Reading::new(b"k", 0..u64::MAX, usize::MAX, found(100_000));
    let mut rests = Vec::new();
    let ended = loop {
        let (_, next) = begun(|event| reading.step(event), Event::Done);
        assert!(matches!(next, Next::Take), "{next:?}");
        let gone = Event::Answer(Outcome::Done(Reply::Mget(vec![Outcome::Done(None)])));
        assert!(matches!(reading.step(gone), Next::Forget), "what was begun is of no use");
        let Next::Rest(rest) = reading.step(Event::Done) else { panic!("it rests") };
        rests.push(rest);
        match reading.step(Event::Done) {
            Next::Begin(OwnedRequest::Get { .. }) => {}
            next => break next,
        }
        assert!(matches!(reading.step(Event::Done), Next::Take));
        let next = reading.step(Event::Answer(Outcome::Done(Reply::Get(Some(found(100_000))))));
        assert!(matches!(next, Next::Begin(OwnedRequest::GetParts { .. })), "{next:?}");
    };
    assert!(matches!(ended, Next::End(Err(NotDone::Refused(Refusal::Replaced)))), "{ended:?}");
    let doubled: Vec<Duration> = (0..8).map(|n| Duration::from_millis(1 << n)).collect();
    assert_eq!(rests, doubled);
}

#[test]
fn a_value_that_is_too_long_is_not_asked_for() {
    let mut reading = Reading::new(b"k", 0..u64::MAX, 99_999, found(100_000));
    let next = reading.step(Event::Done);
    let too_large = Refusal::ResultTooLarge { bytes_max: 99_999 };
    assert!(
        matches!(&next, Next::End(Err(NotDone::Refused(why))) if *why == too_large),
        "{next:?}"
    );
}
