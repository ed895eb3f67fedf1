//! Which database a connection has selected, for which user, and when it may not select another.

use super::Connection;
use crate::Reply;
use crate::command::{Found, Run, Session};
use crate::session::integer;
use bytes::Bytes;
use std::sync::Arc;

impl Connection {
    /// Goes on with the keys of the database that is selected, as the user that the client is.
    /// Nothing is under way.
    pub(super) fn use_store(&mut self) {
        let (database, user) = (self.peer.database, &self.peer.user);
        if self.store.database() != database || !self.store.is_of(user.as_ref()) {
            let store = self.shared.store(database, self.peer.entry.id, user.as_deref()).clone();
            self.inbox = store.inbox();
            self.store = Arc::new(store.with_user(user.clone()));
        }
    }

    /// Why a command may not be carried out now, if it would select another database: what a
    /// transaction does, and what it rests on, are keys of one.
    pub(super) fn why_stay(&self, found: Found, args: &[Bytes]) -> Option<Reply> {
        let (now, is_select) =
            (self.peer.database, found.spec.run == Run::Session(Session::Select));
        let other = integer(args, 1).filter(|number| is_select && *number != i64::from(now))?;
        self.shared.find_database(other)?;
        let text = if self.bracket.is_open() {
            format!("ERR a transaction is about one database here, and this is one of {now}")
        } else if self.bracket.watched.is_empty() {
            return None;
        } else {
            format!("ERR keys of database {now} are watched; UNWATCH them to select another")
        };
        Some(Reply::Error(text.into()))
    }
}
