//! What a command is answered with, before it is known which version of RESP the client speaks.

use bytes::Bytes;
use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc::Receiver;

/// The version of Redis whose replies these are.
pub(crate) const REDIS_VERSION: &str = "7.2.0";

/// One reply. RESP3 has types that RESP2 lacks; what those become there is said with each.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// A short text without line breaks, like `OK`.
    Status(Cow<'static, str>),
    /// An error: its code word and the text, without the leading `-`.
    Error(Cow<'static, str>),
    /// A signed number.
    Integer(i64),
    /// Bytes, a value most of the time.
    Bulk(Bytes),
    /// The same, which come piece by piece. Only as a reply of its own, not inside another.
    Long(Long),
    /// Nothing there. In RESP2 a null bulk string.
    Null,
    /// No array there, as of an aborted transaction. In RESP3 like [`Null`](Self::Null).
    NullArray,
    /// A list.
    Array(Vec<Self>),
    /// Pairs, in an order that means nothing. In RESP2 a list of keys and values in turn.
    Map(Vec<(Self, Self)>),
    /// Members without order. In RESP2 a list.
    Set(Vec<Self>),
    /// A floating-point number. In RESP2 its decimal form as a bulk string.
    Double(f64),
    /// True or false. In RESP2 1 or 0.
    Boolean(bool),
    /// Text for people, as of INFO. In RESP2 a bulk string.
    Verbatim(Bytes),
}

impl Reply {
    /// The usual reply of what has nothing to say.
    pub const OK: Self = Self::Status(Cow::Borrowed("OK"));

    /// An error with a text that is known when the program is built.
    #[must_use]
    pub const fn error(text: &'static str) -> Self {
        Self::Error(Cow::Borrowed(text))
    }

    /// The text of an error.
    pub(crate) fn error_text(&self) -> Option<&str> {
        match self {
            Self::Error(text) => Some(text),
            _ => None,
        }
    }

    /// Bytes that somebody else owns.
    #[must_use]
    pub fn bulk(bytes: impl AsRef<[u8]>) -> Self {
        Self::Bulk(Bytes::copy_from_slice(bytes.as_ref()))
    }
}

/// Bytes that come piece by piece, as fast as they are taken.
#[derive(Clone, Debug)]
pub struct Long {
    len: u64,
    /// Taken by the one that writes them.
    pieces: Arc<Mutex<Option<Receiver<Bytes>>>>,
}

impl Long {
    /// So many bytes, out of there. If there are fewer, the connection they are for is ended.
    #[must_use]
    pub fn new(len: u64, pieces: Receiver<Bytes>) -> Self {
        Self { len, pieces: Arc::new(Mutex::new(Some(pieces))) }
    }

    /// How many bytes there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where they come from; nobody can take them twice.
    #[must_use]
    pub fn take(&self) -> Option<Receiver<Bytes>> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl PartialEq for Long {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.pieces, &other.pieces)
    }
}
