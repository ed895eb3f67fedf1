//! Standard output and standard error. What a command has to say either arrives, or the command
//! says that it did not: every write is flushed, and every error is a [`Failure`].

use crate::exit::Failure;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};

/// Prints text as it is.
///
/// # Errors
///
/// If it cannot be written. [`Failure::Unread`] if nobody reads on, as in `keyway status | head`:
/// whoever prints again and again ends with that.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    raw(text.as_bytes())
}

/// Prints a line.
///
/// # Errors
///
/// As [`print`].
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    print(&format!("{text}\n"))
}

/// Writes bytes as they are.
///
/// # Errors
///
/// As [`print`].
pub(crate) fn raw(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(failed)
}

/// Standard output for much at once. Whoever has it calls [`Out::end`], or does not know whether
/// all of it arrived.
#[derive(Debug)]
pub(crate) struct Out(BufWriter<io::StdoutLock<'static>>);

impl Out {
    /// Nobody else prints meanwhile.
    pub(crate) fn lock() -> Self {
        Self(BufWriter::with_capacity(BUFFER_LEN, stdout().lock()))
    }

    /// Prints a line.
    ///
    /// # Errors
    ///
    /// As [`print`].
    pub(crate) fn line(&mut self, text: &str) -> Result<(), Failure> {
        writeln!(self.0, "{text}").map_err(failed)
    }

    /// Flushes all of it.
    ///
    /// # Errors
    ///
    /// As [`print`].
    pub(crate) fn end(mut self) -> Result<(), Failure> {
        self.0.flush().map_err(failed)
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A few datagrams' worth of values: fewer system calls, and no more than that to lose.
const BUFFER_LEN: usize = 64 << 10;

/// What an error of standard output, or of what stands for it, means.
pub(crate) fn failed(error: io::Error) -> Failure {
    if error.kind() == ErrorKind::BrokenPipe {
        return Failure::Unread;
    }
    Failure::Unwritten(error)
}

/// Whether a person reads standard output.
pub(crate) fn is_terminal() -> bool {
    stdout().is_terminal()
}

#[expect(clippy::disallowed_methods, reason = "the one place where errors of it are looked at")]
fn stdout() -> io::Stdout {
    io::stdout()
}

/// Says something on standard error. If nobody reads that, there is nobody to tell so.
pub(crate) fn tell(text: std::fmt::Arguments<'_>) {
    io::stderr().lock().write_all(text.to_string().as_bytes()).ok();
}

/// Says a line on standard error; unlike `eprintln!` it does not panic if nobody reads it.
macro_rules! note {
    ($($text:tt)*) => {
        $crate::out::tell(format_args!("{}\n", format_args!($($text)*)))
    };
}
