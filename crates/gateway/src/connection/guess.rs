//! AUTH and HELLO wait for their turn if many wrong passwords have come from the same address.

use super::Connection;
use crate::Reply;
use crate::command::{Found, Run, Session};
use bytes::Bytes;
use tokio::time::sleep;

/// What those are told who are not even looked at.
const TOO_MANY: Reply = Reply::error(
    "ERR too many wrong passwords have come from this address; try again in a few seconds",
);

impl Connection {
    /// Gives the arguments back if the command may be carried out now. Nothing is under way.
    pub(super) fn wait_to_guess(&mut self, found: Found, args: Vec<Bytes>) -> Option<Vec<Bytes>> {
        if !is_guess(found, &args) {
            return Some(args);
        }
        let (now, from) = (self.since_start(), self.peer.entry.peer.ip());
        let turn = match self.guess_at {
            Some(turn) => Ok(turn),
            None => self.shared.guesses.take_turn(now, from),
        };
        match turn {
            Err(_) => {
                let call = self.call(found.number, args);
                self.finish_now(&call, &TOO_MANY);
                None
            }
            Ok(turn) if turn > now => {
                self.guess_at = Some(turn);
                self.paused = Some(Box::pin(sleep(turn - now)));
                // It is started again when the pause is over.
                self.next = Some(args);
                None
            }
            Ok(_) => {
                self.guess_at = None;
                Some(args)
            }
        }
    }
}

/// Whether a command says a password.
fn is_guess(found: Found, args: &[Bytes]) -> bool {
    match found.spec.run {
        Run::Session(Session::Auth) => true,
        Run::Session(Session::Hello) => args.len() > 2,
        Run::Session(_) | Run::Keyed(_) => false,
    }
}
