//! The loop with a machine that tells what is done to it.

use super::*;
use crate::mailbox::{ANSWER_WAIT_MAX, answer};
use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use wire::Endpoint;

const PATIENCE: Duration = Duration::from_secs(10);

/// What was done to the machine.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    Datagram(Vec<u8>),
    /// After so many rounds of the loop.
    Timeout {
        late: bool,
        rounds: u32,
    },
    Flush,
    Sent,
}

/// Sends every datagram back, once it was flushed.
struct Echo {
    events: Sender<Event>,
    due: Option<Instant>,
    rounds: u32,
    held: Vec<(Endpoint, Vec<u8>)>,
    ready: Vec<(Endpoint, Vec<u8>)>,
    sending: Vec<u8>,
    flush: fn() -> Result<(), String>,
}

impl Echo {
    fn note(&self, event: Event) {
        // A test that has seen enough no longer listens.
        let _ = self.events.send(event);
    }
}

impl Driven for Echo {
    type Command = SyncSender<&'static str>;

    fn handle_command(&mut self, _now: Instant, command: Self::Command) {
        command.send("here").unwrap();
    }

    fn announce<'a>(&mut self, _payloads: impl Iterator<Item = &'a [u8]>) {
        self.rounds += 1;
    }

    fn handle_datagram(&mut self, _now: Instant, received: Received<'_>) {
        self.note(Event::Datagram(received.payload.to_vec()));
        self.held.push((received.from, received.payload.to_vec()));
    }

    fn handle_timeout(&mut self, now: Instant) {
        let late = self.due.take().is_some_and(|due| due <= now);
        self.note(Event::Timeout { late, rounds: self.rounds });
    }

    fn flush(&mut self, _now: Instant) -> Result<(), String> {
        self.note(Event::Flush);
        (self.flush)()?;
        self.ready.append(&mut self.held);
        Ok(())
    }

    fn poll_transmit(&mut self) -> Option<Datagram<'_>> {
        let (to, payload) = self.ready.pop()?;
        self.note(Event::Sent);
        self.sending = payload;
        Some(Datagram { from: None, to, payload: &self.sending })
    }

    fn count_unsent(&mut self, datagrams: u64) {
        panic!("{datagrams} unsent");
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.due
    }
}

type Started = (Worker<SyncSender<&'static str>>, SocketAddr, Receiver<Event>);

fn start(due_in: Option<Duration>, flush: fn() -> Result<(), String>) -> Started {
    let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let at = socket.local();
    let (events, told) = channel();
    let worker = spawn("echo", Clock::new(), socket, Gate::Open, move |now, _| Echo {
        events,
        due: due_in.map(|wait| now + wait),
        rounds: 0,
        held: Vec::new(),
        ready: Vec::new(),
        sending: Vec::new(),
        flush,
    });
    (worker.unwrap(), at, told)
}

/// Sends a datagram and waits for what comes back.
fn ask(at: SocketAddr, payload: &[u8]) -> io::Result<Vec<u8>> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.send_to(payload, at)?;
    let mut buffer = [0; 64];
    let len = socket.recv(&mut buffer)?;
    Ok(buffer[..len].to_vec())
}

#[test]
fn an_answer_leaves_after_its_batch_was_flushed() {
    let (_worker, at, told) = start(None, || Ok(()));
    assert_eq!(ask(at, b"ping").unwrap(), b"ping");
    let events: Vec<Event> = told.try_iter().collect();
    assert_eq!(events, [Event::Datagram(b"ping".to_vec()), Event::Flush, Event::Sent]);
}

#[test]
fn datagrams_that_come_alone_or_close_together_are_all_answered() {
    let (_worker, at, _told) = start(None, || Ok(()));
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let mut buffer = [0; 64];
    for round in 0..2_000u32 {
        let together = round % 3 == 0;
        let asking = if together { &sockets[..] } else { &sockets[..1] };
        for socket in asking {
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.send_to(&round.to_be_bytes(), at).unwrap();
        }
        for socket in asking {
            let len = socket.recv(&mut buffer).expect("an answer");
            assert_eq!(buffer[..len], round.to_be_bytes());
        }
    }
}

#[test]
fn a_command_is_carried_out_although_no_datagram_comes() {
    let (worker, _, _told) = start(None, || Ok(()));
    let (sender, answer) = answer();
    worker.mailbox().post(sender).unwrap();
    assert_eq!(answer.wait_for(ANSWER_WAIT_MAX), Ok("here"));
}

#[test]
fn a_timer_fires_when_it_is_due() {
    let (_worker, _, told) = start(Some(Duration::from_millis(20)), || Ok(()));
    assert!(matches!(told.recv_timeout(PATIENCE), Ok(Event::Timeout { late: true, .. })));
    assert_eq!(told.recv_timeout(PATIENCE), Ok(Event::Flush));
}

/// How long a timer took to fire that is due so soon, and after how many rounds of the loop, each
/// time of many: others may have the machine at times.
fn alarms(due_in: Duration) -> Vec<(Duration, u32)> {
    let mut clock = Clock::new();
    let took = |_| {
        let began = clock.now();
        let (_worker, _, told) = start(Some(due_in), || Ok(()));
        let Ok(Event::Timeout { late: true, rounds }) = told.recv_timeout(PATIENCE) else {
            panic!("no timer fired");
        };
        (clock.now().since(began), rounds)
    };
    (0..100).map(took).collect()
}

#[test]
fn a_timer_of_less_than_a_millisecond_is_not_rounded_up_to_one() {
    let all = alarms(Duration::from_micros(50));
    assert!(all.iter().any(|(took, _)| *took < Duration::from_millis(1)), "{all:?}");
}

#[test]
fn a_timer_of_some_milliseconds_wakes_the_thread_once_and_to_the_nanosecond() {
    let all = alarms(Duration::from_micros(2_400));
    // A thread that had to wait for a processor came late, or found its timer due at once.
    let once = |(took, rounds): &&(Duration, u32)| *took < Duration::from_millis(3) && *rounds == 2;
    let in_time = all.iter().filter(once).count();
    let often = all.iter().filter(|(_, rounds)| *rounds > 2).count();
    assert!(in_time > often, "one round before the wait, one after it: {all:?}");
}

#[test]
fn a_command_given_before_the_stop_is_carried_out_and_flushed() {
    let (worker, _, told) = start(None, || Ok(()));
    let (sender, answer) = answer();
    worker.mailbox().post(sender).unwrap();
    drop(worker);
    assert_eq!(answer.wait_for(ANSWER_WAIT_MAX), Ok("here"));
    assert_eq!(told.iter().last(), Some(Event::Flush));
}

#[test]
fn a_thread_that_has_ended_takes_no_commands() {
    let (worker, _, _told) = start(None, || Ok(()));
    let mailbox = worker.mailbox();
    drop(worker);
    assert_eq!(mailbox.post(answer().0), Err(crate::MailError::Ended));
}

/// Runs this test again as a process of its own, in which `role` plays.
fn play(test: &str, role: fn()) -> (Option<i32>, String) {
    const PLAYS: &str = "KEYWAY_TEST_PLAYS";
    if std::env::var_os(PLAYS).is_some() {
        role();
        return (None, String::new());
    }
    let test = format!("event_loop::tests::{test}");
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.args([&test, "--exact", "--nocapture"]).env(PLAYS, "1").output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Asks a machine with this flush, which must end the process before it answers.
fn ask_in_vain(flush: fn() -> Result<(), String>) {
    let (_worker, at, _told) = start(None, flush);
    let answer = ask(at, b"ping");
    unreachable!("the process goes on after {answer:?}");
}

#[test]
fn a_machine_that_cannot_flush_ends_the_process_and_says_nothing() {
    let name = "a_machine_that_cannot_flush_ends_the_process_and_says_nothing";
    let (code, said) = play(name, || ask_in_vain(|| Err("the disk is gone".into())));
    assert_eq!(code, Some(70), "{said}");
    assert!(said.contains("keyway: echo: the disk is gone"), "{said}");
}

#[test]
fn a_machine_that_panics_ends_the_process() {
    let name = "a_machine_that_panics_ends_the_process";
    let (code, said) = play(name, || ask_in_vain(|| panic!("impossible")));
    assert_eq!(code, Some(70), "{said}");
    assert!(said.contains("impossible") && said.contains("echo: it panicked"), "{said}");
}
