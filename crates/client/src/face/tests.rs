//! PUTs of one key that come together.

use super::*;
use crate::Expiry;
use crate::unsent::tests::keyspace;
use proptest::prelude::*;
use std::task::{Context, Poll, Waker};
use wire::{Body, Code, Endpoint, Header, KeyReply, Packet};

struct Asker {
    driver: Driver,
    keyspace: Arc<Keyspace>,
    mailbox: Arc<Mailbox>,
}

impl Asker {
    fn new() -> Self {
        let services = Services::from("127.0.0.1:7700".parse::<std::net::SocketAddr>().unwrap());
        let driver = Driver::new(services, &Options::default(), None);
        Self { driver, keyspace: keyspace(1), mailbox: Arc::default() }
    }

    fn put(&mut self, number: u64, key: &str, expiry: Expiry) {
        let (key, value) = (key.as_bytes(), number.to_string());
        let request = Request::Put { key, value: value.as_bytes(), expiry };
        let now = self.driver.now();
        self.driver.begin(now, &self.keyspace, request, (&self.mailbox, number)).unwrap();
    }

    /// The PUTs that leave, with what they write.
    fn sent(&mut self) -> Vec<(Header, String)> {
        let mut sent = Vec::new();
        while let Some(datagram) = self.driver.machine.poll_transmit() {
            let packet = Packet::parse(datagram.payload).unwrap();
            let Ok(Body::Put { value, .. }) = packet.body() else { panic!("{packet:?}") };
            sent.push((Header::read(packet.header()), String::from_utf8(value.to_vec()).unwrap()));
        }
        sent
    }

    fn answer(&mut self, asked: &Header, code: Code, version: u64) {
        let (op, code) = (wire::Op::PutReply as u8, code as u8);
        let mut header = Header { op, code, key_len: 0, flags: 0, ..*asked };
        KeyReply { version: Version::new(version) }.put(&mut header);
        let mut bytes = Vec::new();
        wire::emit(&mut bytes, &header, &[]);
        let now = self.driver.now();
        self.driver.machine.handle_packet(now, Endpoint::default(), &bytes);
        self.driver.advance(now);
    }

    /// The requests that have ended, with the versions that they were told.
    fn ended(&mut self) -> Vec<(u64, Option<u64>)> {
        let mut came = Vec::new();
        let mut context = Context::from_waker(Waker::noop());
        if self.mailbox.poll_take(&mut context, &mut came) == Poll::Pending {
            return Vec::new();
        }
        let version = |outcome: Outcome<Reply>| match outcome.done()? {
            Reply::Put { version } => Some(version.get()),
            other => panic!("{other:?}"),
        };
        came.into_iter().map(|(number, outcome)| (number, version(outcome))).collect()
    }
}

#[test]
fn of_puts_that_come_while_one_of_their_key_is_under_way_the_last_answers_for_all() {
    let mut asker = Asker::new();
    asker.put(1, "k", Expiry::Never);
    let first = asker.sent();
    assert_eq!(first[0].1, "1");
    for number in [2, 3, 4] {
        asker.put(number, "k", Expiry::Never);
    }
    asker.put(5, "o", Expiry::Never);
    let others = asker.sent();
    assert_eq!(others.len(), 1, "that of another key");
    asker.answer(&first[0].0, Code::Ok, 7);
    assert_eq!(asker.ended(), [(1, Some(7))]);
    let second = asker.sent();
    assert_eq!(second.iter().map(|it| &it.1).collect::<Vec<_>>(), ["4"]);
    asker.put(6, "k", Expiry::Never);
    assert!(asker.sent().is_empty());
    asker.answer(&second[0].0, Code::Ok, 9);
    assert_eq!(asker.ended(), [(2, Some(9)), (3, Some(9)), (4, Some(9))]);
    let third = asker.sent();
    asker.answer(&third[0].0, Code::Full, 0);
    assert_eq!(asker.ended(), [(6, None)]);
    asker.put(7, "k", Expiry::Never);
    assert_eq!(asker.sent().len(), 1, "nothing is under way");
}

#[test]
fn a_put_that_keeps_the_expiry_answers_for_nobody() {
    let mut asker = Asker::new();
    asker.put(1, "k", Expiry::Never);
    asker.put(2, "k", Expiry::Keep);
    let sent = asker.sent();
    assert_eq!(sent.iter().map(|it| &it.1).collect::<Vec<_>>(), ["1", "2"]);
    asker.put(3, "k", Expiry::Never);
    asker.answer(&sent[1].0, Code::Ok, 5);
    assert!(asker.sent().is_empty(), "it waits for the first");
    asker.answer(&sent[0].0, Code::Ok, 4);
    assert_eq!(asker.sent().len(), 1);
    assert_eq!(asker.ended(), [(2, Some(5)), (1, Some(4))]);
}

#[test]
fn whoever_is_held_hears_of_the_end() {
    let mut asker = Asker::new();
    (1..=3).for_each(|number| asker.put(number, "k", Expiry::Never));
    let mailbox = Arc::clone(&asker.mailbox);
    asker.driver.close();
    let mut came = Vec::new();
    assert!(mailbox.poll_take(&mut Context::from_waker(Waker::noop()), &mut came).is_ready());
    assert_eq!(came.len(), 3);
}

/// What happens next to PUTs of one key.
#[derive(Clone, Copy, Debug)]
enum Step {
    Comes,
    /// The request that was sent as this one of those without an answer takes effect.
    TakesEffect(usize),
    /// The answer to one that has arrives.
    Arrives(usize),
}

/// A request that was sent, and when it took effect.
struct Sent {
    header: Header,
    effect: Option<u64>,
}

/// Whoever is answered was so by a write that took effect after it came, and before its answer.
fn play(steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut asker, mut under_way) = (Asker::new(), Vec::<Sent>::new());
    let (mut came, mut ended) = (Vec::new(), 0);
    for (now, step) in (1..).zip(steps) {
        match *step {
            Step::Comes => {
                asker.put(came.len() as u64, "k", Expiry::Never);
                came.push(now);
            }
            Step::TakesEffect(which) => {
                let mut waiting = under_way.iter_mut().filter(|it| it.effect.is_none());
                waiting.nth(which).into_iter().for_each(|it| it.effect = Some(now));
            }
            Step::Arrives(which) => {
                let at = under_way.iter().enumerate().filter(|(_, it)| it.effect.is_some());
                if let Some(at) = at.map(|(at, _)| at).nth(which) {
                    let Sent { header, effect } = under_way.remove(at);
                    asker.answer(&header, Code::Ok, effect.unwrap_or_default());
                }
            }
        }
        let sent = asker.sent().into_iter();
        under_way.extend(sent.map(|(header, _)| Sent { header, effect: None }));
        prop_assert!(under_way.len() <= 1, "one of a key at a time");
        for (number, version) in asker.ended() {
            let (came, effect) = (came[usize::try_from(number).unwrap()], version.unwrap());
            prop_assert!(came < effect && effect < now, "{came} < {effect} < {now}");
            ended += 1;
        }
    }
    let waits = came.len() - ended;
    prop_assert!(waits == 0 || !under_way.is_empty(), "{waits} are forgotten");
    Ok(())
}

proptest! {
    #[test]
    fn each_put_takes_effect_between_its_beginning_and_its_answer(
        steps in proptest::collection::vec(prop_oneof![
            3 => Just(Step::Comes),
            1 => (0..2_usize).prop_map(Step::TakesEffect),
            1 => (0..2_usize).prop_map(Step::Arrives),
        ], 0..80),
    ) {
        play(&steps)?;
    }
}
