//! What commands of a session have in common: whose they are, what becomes of them, and the words
//! in which they are read and answered.

use crate::Reply;
use crate::acl::User;
use crate::clients::Entry;
use crate::resp::Version;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// The client of a connection.
pub(crate) struct Peer {
    pub(crate) entry: Arc<Entry>,
    pub(crate) protocol: Version,
    /// Who it is; `None` before it has said so, if it must.
    pub(crate) user: Option<Arc<User>>,
    pub(crate) replies: Replies,
    /// The database that is selected.
    pub(crate) database: u8,
}

/// Which replies a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replies {
    On,
    Off,
    /// Neither that of the command that said so nor the next.
    SkipThis,
    SkipNext,
}

/// What becomes of a command.
pub(crate) enum Response {
    Now(Reply),
    /// And then the connection is closed.
    Last(Reply),
    Later(BoxFuture<'static, Reply>),
}

impl From<Reply> for Response {
    fn from(reply: Reply) -> Self {
        Self::Now(reply)
    }
}

/// What Redis says about words that it does not expect.
pub(crate) const SYNTAX: Reply = Reply::error("ERR syntax error");

/// What Redis says about something that is no number.
pub(super) const NOT_AN_INTEGER: Reply =
    Reply::error("ERR value is not an integer or out of range");

/// What Redis says of a number that is no database's.
pub(super) const NO_DATABASE: Reply = Reply::error("ERR DB index is out of range");

/// An argument; none is empty.
pub(super) fn arg(args: &[Bytes], at: usize) -> Bytes {
    args.get(at).cloned().unwrap_or_default()
}

/// A number in an argument.
pub(crate) fn integer(args: &[Bytes], at: usize) -> Option<i64> {
    std::str::from_utf8(args.get(at)?).ok()?.parse().ok()
}

/// Text in a client's own words, for an error.
pub(super) fn quoted(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

pub(super) fn error(text: String) -> Reply {
    Reply::Error(text.into())
}
