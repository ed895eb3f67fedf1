//! `kill -9` in the middle of acknowledged writes, of all nodes at once or of one after the other:
//! every acknowledged write is there afterwards.

use crate::processes::{Processes, node};
use crate::recovery::durable;
use client::blocking::{Client, Space};
use client::{IncrReply, Options, Outcome, PutOptions};
use machine::Rng;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;
use tempfile::TempDir;
use testkit::program::{Up, free_addresses};

/// Times that the cluster is killed, or a node of it.
const KILLS: u32 = 20;
const WRITERS: usize = 4;
/// Keys of one writer, overwritten again and again.
const KEYS: u64 = 50;
/// The kill comes after so many acknowledgements at most, of the incarnation in hand.
const ACKNOWLEDGED_MAX: u64 = 400;
/// After the kill, writers learn in this time that nobody answers.
const DEADLINE: Duration = Duration::from_millis(700);
const SEED: u64 = 1;

/// What one writer knows about its keys.
#[derive(Clone, Debug, Default)]
struct Writer {
    index: usize,
    /// Rounds of each key: the last that was acknowledged or seen, and the last that was tried.
    acknowledged: Vec<u64>,
    tried: Vec<u64>,
    /// A counter to which 1 is added each time: the least and the most that it can be.
    counted: u64,
    counts_tried: u64,
    next: u64,
}

impl Writer {
    fn new(index: usize) -> Self {
        let none = vec![0; usize::try_from(KEYS).expect("few")];
        Self { index, acknowledged: none.clone(), tried: none, ..Self::default() }
    }

    fn key(&self, key: usize) -> Vec<u8> {
        format!("writer-{}/key-{key}", self.index).into_bytes()
    }

    fn counter(&self) -> Vec<u8> {
        format!("writer-{}/counter", self.index).into_bytes()
    }

    /// Writes until a write is not acknowledged, or it is told to end.
    fn write(&mut self, space: &Space, acknowledged: &Sender<()>, ends: &AtomicBool) {
        while !ends.load(Ordering::Relaxed) {
            self.next += 1;
            let outcome = if self.next.is_multiple_of(5) {
                self.counts_tried += 1;
                let outcome = space.incr(&self.counter(), 1);
                outcome.map(|reply| self.take_sum(reply))
            } else {
                let key = usize::try_from(self.next % KEYS).expect("few");
                self.tried[key] += 1;
                let value = self.tried[key].to_string();
                let outcome = space.put(&self.key(key), value.as_bytes(), PutOptions::default());
                if outcome.is_done() {
                    self.acknowledged[key] = self.tried[key];
                }
                outcome.map(|_| ())
            };
            match outcome {
                // Nobody counts any more once the cluster is about to be killed.
                Outcome::Done(()) => drop(acknowledged.send(())),
                Outcome::Unknown(_) => return,
                Outcome::Refused(why) => panic!("refused: {why}"),
            }
        }
    }

    /// The sum tells of every earlier addition whether it took place: none can come after this.
    fn take_sum(&mut self, reply: IncrReply) {
        let IncrReply::Sum { sum, .. } = reply else { panic!("{reply:?}") };
        let sum = u64::try_from(sum).expect("only 1 is added");
        let (least, most) = (self.counted + 1, self.counts_tried);
        assert!((least..=most).contains(&sum), "the sum is {sum}, not {least} to {most}");
        (self.counted, self.counts_tried) = (sum, sum);
    }

    /// Checks what is there now. What was found stays; a write whose outcome is unknown may still
    /// take place, until a later write of its key is acknowledged.
    fn check(&mut self, space: &Space, context: &str) {
        for key in 0..self.tried.len() {
            let found = number(space, &self.key(key));
            let (least, most) = (self.acknowledged[key], self.tried[key]);
            assert!(
                (least..=most).contains(&found),
                "{context}: key {key} of writer {} has round {found}; {least} was acknowledged, \
                 {most} tried",
                self.index
            );
            self.acknowledged[key] = found;
        }
        let found = number(space, &self.counter());
        let (least, most) = (self.counted, self.counts_tried);
        assert!(
            (least..=most).contains(&found),
            "{context}: the counter of writer {} is {found}; {least} were acknowledged, {most} \
             tried",
            self.index
        );
        self.counted = found;
    }
}

/// The number under a key; 0 if there is none.
fn number(space: &Space, key: &[u8]) -> u64 {
    let found = space.get(key).into_result().expect("the cluster is up");
    let Some(value) = found else { return 0 };
    let text = std::str::from_utf8(&value.value).expect("digits");
    text.parse().expect("digits")
}

fn connect(service: SocketAddr, deadline: Duration) -> Space {
    let options = Options { deadline, ..Options::default() };
    let client = Client::connect(service, options).expect("a socket");
    client.keyspace("default").expect("the cluster is up")
}

#[test]
fn every_acknowledged_write_survives_kill_9() {
    let data = TempDir::new().expect("a temporary directory");
    let data = data.path().join("data");
    let data = data.to_str().expect("a path of plain text");
    let size = ["--nodes", "3", "--replicas", "3", "--partitions", "8"];
    let mut arguments = vec!["--engine", "fjall", "--data", data];
    arguments.extend(size);
    println!("seed {SEED}, {KILLS} kills");
    let mut rng = Rng::new(SEED);
    let mut writers: Vec<Writer> = (0..WRITERS).map(Writer::new).collect();
    let service = free_addresses(1)[0].to_string();
    for kill in 1..=KILLS {
        let up = Up::start_at(&service, &arguments);
        let space = connect(up.service, Duration::from_secs(30));
        for writer in &mut writers {
            writer.check(&space, &format!("seed {SEED}, before kill {kill}"));
        }
        let acknowledgements = 1 + rng.below(ACKNOWLEDGED_MAX);
        let space = connect(up.service, DEADLINE);
        std::thread::scope(|scope| {
            let (sender, acknowledged) = channel();
            for writer in &mut writers {
                let (space, sender) = (space.clone(), sender.clone());
                scope.spawn(move || writer.write(&space, &sender, &AtomicBool::new(false)));
            }
            drop(sender);
            let seen = acknowledged.iter().take(usize::try_from(acknowledgements).expect("few"));
            let seen = seen.count();
            drop(acknowledged);
            up.kill();
            println!("kill {kill} after {seen} acknowledged writes");
        });
    }
    let up = Up::start_at(&service, &arguments);
    let space = connect(up.service, Duration::from_secs(30));
    for writer in &mut writers {
        writer.check(&space, &format!("seed {SEED}, at the end"));
        assert!(writer.counted > 0, "writer {} has written", writer.index);
    }
}

#[test]
fn every_acknowledged_write_survives_kill_9_of_one_node_after_the_other() {
    let (cluster, _data) = durable(3);
    let mut processes = Processes::start(cluster, &[1, 2, 3]);
    println!("seed {SEED}, {KILLS} kills");
    let mut rng = Rng::new(SEED);
    let mut writers: Vec<Writer> = (0..WRITERS).map(Writer::new).collect();
    for kill in 1..=KILLS {
        let space = processes.space();
        let acknowledgements = 1 + rng.below(ACKNOWLEDGED_MAX);
        let victim = node(1 + u16::try_from(rng.below(3)).expect("few"));
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (sender, acknowledged) = channel();
            for writer in &mut writers {
                let (space, sender, ends) = (space.clone(), sender.clone(), &ends);
                scope.spawn(move || writer.write(&space, &sender, ends));
            }
            drop(sender);
            let acknowledgements = usize::try_from(acknowledgements).expect("few");
            assert_eq!(acknowledged.iter().take(acknowledgements).count(), acknowledgements);
            processes.kill(&victim);
            println!("kill {kill}, of {victim}, after {acknowledgements} acknowledged writes");
            // The others go on without it, and with it when it is back.
            assert_eq!(acknowledged.iter().take(acknowledgements).count(), acknowledgements);
            processes.run(&victim);
            processes.wait_replicated();
            ends.store(true, Ordering::Relaxed);
        });
        for writer in &mut writers {
            writer.check(&space, &format!("seed {SEED}, after kill {kill}"));
        }
    }
}
