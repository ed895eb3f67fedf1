//! Steps in words, so that a counterexample can be read.

use crate::protocol::Action;
use crate::state::{Chain, Effect, Message, Piece, Value, Way};
use std::fmt;

/// The steps that lead to a state.
#[derive(Clone, Debug)]
pub struct Story<A>(pub Vec<A>);

impl<A: fmt::Display> fmt::Display for Story<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, action) in (1..).zip(&self.0) {
            writeln!(f, "{number:>5}. {action}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request { node, request } => write!(f, "w{request} reaches node {node}"),
            Self::AskAgain { request } => write!(f, "w{request} is told to ask again"),
            Self::Deliver(message) => message.fmt(f),
            Self::Copy { node } => write!(f, "node {node} sends the next piece of its copy"),
            Self::Collect { node } => write!(f, "node {node} collects its tombstone"),
            Self::Order { node, epoch } => write!(f, "node {node} gets the order of epoch {epoch}"),
            Self::Cut { node } => write!(f, "node {node} is cut off and its lease ends"),
            Self::Restart { node } => write!(f, "node {node} restarts with its disk"),
            Self::Lose { node } => write!(f, "node {node} restarts without its memory"),
            Self::Decide(chain) => write!(f, "the controller decides {chain:?}"),
            Self::TakeOver => f.write_str("the controller restarts"),
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Way { epoch, from, to } = self.way();
        write!(f, "{from} to {to} in epoch {epoch}: ")?;
        match self {
            Self::Write(_, write, _) => {
                write!(f, "WRITE {} of w{}", write.version, write.request)?;
                match write.effect {
                    Effect::None => f.write_str(", no effect"),
                    Effect::Put(value) => write!(f, " = {value:?}"),
                    Effect::Delete => f.write_str(", delete"),
                }
            }
            Self::Commit(_, version) => write!(f, "COMMIT {version}"),
            Self::Stable(_, version) => write!(f, "STABLE {version}"),
            Self::Copy(_, _, Piece::Record(record)) if record.value == Value::default() => {
                write!(f, "COPY of no value, version {}", record.version)
            }
            Self::Copy(_, _, Piece::Record(record)) => {
                write!(f, "COPY of {:?}, version {}", record.value, record.version)
            }
            Self::Copy(_, _, Piece::Sessions(..)) => f.write_str("COPY of the sessions"),
            Self::Copy(_, _, Piece::End(newest, ..)) => write!(f, "COPY ends at {newest}"),
        }
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.nodes().map(|node| {
            if self.learner() == Some(node) { format!("({node})") } else { node.to_string() }
        });
        let names: Vec<String> = names.collect();
        let door = if self.open { "open" } else { "closed" };
        write!(f, "epoch {} {door} [{}]", self.epoch, names.join(" "))
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = (0..4).rev().map(|place| self.0 >> (2 * place) & 3).filter(|digit| *digit > 0);
        let names: Vec<String> = digits.map(|digit| format!("w{}", digit - 1)).collect();
        if names.is_empty() { f.write_str("nothing") } else { f.write_str(&names.join("+")) }
    }
}
