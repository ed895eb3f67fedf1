//! A connection's bytes, plain or under TLS.

use bytes::BytesMut;
use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// Where bytes come from and go to.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Bytes that are read at once.
const READ_LEN: usize = 16 << 10;

thread_local! {
    /// Where bytes are read to. A connection owns none of it, so that ten thousand that wait for
    /// their clients own next to nothing.
    static READ: RefCell<Box<[u8; READ_LEN]>> = RefCell::new(Box::new([0; READ_LEN]));
}

impl Stream {
    /// Appends what has come in, if something has; 0 bytes are the end.
    pub(crate) fn poll_read_to(
        &mut self,
        context: &mut Context<'_>,
        to: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        READ.with_borrow_mut(|buffer| {
            let mut filled = ReadBuf::new(buffer.as_mut_slice());
            ready!(match self {
                Self::Plain(stream) => Pin::new(stream).poll_read(context, &mut filled),
                Self::Tls(stream) => Pin::new(stream.as_mut()).poll_read(context, &mut filled),
            })?;
            to.extend_from_slice(filled.filled());
            Poll::Ready(Ok(filled.filled().len()))
        })
    }

    pub(crate) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.writer().poll_write(context, from)
    }

    /// Sends what was written and is held back, of which only TLS has some.
    pub(crate) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writer().poll_flush(context)
    }

    /// Tells the client that no more will come.
    pub(crate) async fn end(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.shutdown().await,
            Self::Tls(stream) => stream.shutdown().await,
        }
    }

    fn writer(&mut self) -> Pin<&mut (dyn AsyncWrite + Send + Unpin)> {
        match self {
            Self::Plain(stream) => Pin::new(stream),
            Self::Tls(stream) => Pin::new(stream.as_mut()),
        }
    }
}
