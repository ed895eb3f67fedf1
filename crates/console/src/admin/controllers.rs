//! Who of several controllers leads. All are asked at once, so that one that is there and says
//! nothing keeps no command waiting.

use super::asker::Asker;
use runtime::clock::Clock;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;
use ureq::http::StatusCode;

/// What was found out of several controllers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// The one that leads.
    pub(super) leader: Option<SocketAddr>,
    /// Those that said nothing although they were waited for.
    pub(super) silent: Vec<SocketAddr>,
}

/// Controllers beside the one that leads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Others {
    /// How many stand by.
    pub standing_by: usize,
    /// Where none answers.
    pub silent: Vec<SocketAddr>,
}

/// What a controller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Leads,
    StandsBy,
    /// Nobody is there, or somebody else.
    Away,
}

/// Waits until one of these leads, or all have said that they do not.
pub(super) fn find(asker: &Asker, all: &[SocketAddr], wait: Duration) -> Found {
    let heard = hear(asker, all, wait, |position| position == Position::Leads);
    let leads = heard.iter().find(|(_, position)| **position == Position::Leads);
    let leader = leads.map(|(at, _)| *at);
    // Who had not answered when the leader did may do so yet.
    let silent = |at: &SocketAddr| leader.is_none() && !heard.contains_key(at);
    Found { leader, silent: all.iter().copied().filter(silent).collect() }
}

/// Waits until all of these have answered.
pub(super) fn others(asker: &Asker, all: &[SocketAddr], wait: Duration) -> Others {
    let heard = hear(asker, all, wait, |_| false);
    let is = |at: &SocketAddr| heard.get(at).copied().unwrap_or(Position::Away);
    Others {
        standing_by: all.iter().filter(|at| is(at) == Position::StandsBy).count(),
        silent: all.iter().copied().filter(|at| is(at) == Position::Away).collect(),
    }
}

/// What these say they are, until all have answered, one has answered what is enough, or time is
/// over.
fn hear(
    asker: &Asker,
    all: &[SocketAddr],
    wait: Duration,
    is_enough: impl Fn(Position) -> bool,
) -> BTreeMap<SocketAddr, Position> {
    let answers = ask(asker, all);
    let mut heard = BTreeMap::new();
    let mut clock = Clock::new();
    let give_up = clock.now() + wait;
    while heard.len() < all.len() {
        let Ok((at, position)) = answers.recv_timeout(give_up.since(clock.now())) else { break };
        heard.insert(at, position);
        if is_enough(position) {
            break;
        }
    }
    heard
}

/// Asks all of them what they are, again and again until nobody listens: while one is silent,
/// another one may come to lead.
fn ask(asker: &Asker, all: &[SocketAddr]) -> Receiver<(SocketAddr, Position)> {
    let (sender, answers) = channel();
    for at in all {
        let (asker, at, sender) = (asker.clone(), *at, sender.clone());
        thread::spawn(move || ask_one(&asker, at, &sender));
    }
    answers
}

fn ask_one(asker: &Asker, at: SocketAddr, answers: &Sender<(SocketAddr, Position)>) {
    loop {
        let position = match asker.agent.head(asker.url(at, "/v1/status")).call() {
            Ok(answer) if answer.status().is_success() => Position::Leads,
            Ok(answer) if answer.status() == StatusCode::SERVICE_UNAVAILABLE => Position::StandsBy,
            Ok(_) | Err(_) => Position::Away,
        };
        if answers.send((at, position)).is_err() || position == Position::Leads {
            return;
        }
        thread::park_timeout(ASK_AGAIN);
    }
}

/// Between two questions to the same controller.
const ASK_AGAIN: Duration = Duration::from_millis(200);
