//! Standard output and standard error. What a command has to say either arrives, or the command
//! says that it did not: every write is flushed, and every error is a [`Failure`].

use crate::exit::Failure;
use anstyle::AnsiColor;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

/// Prints text as it is.
///
/// # Errors
///
/// If it cannot be written. [`Failure::Unread`] if nobody reads on, as in `keyway status | head`:
/// whoever prints again and again ends with that.
pub fn print(text: &str) -> Result<(), Failure> {
    raw(text.as_bytes())
}

/// Prints a line.
///
/// # Errors
///
/// As [`print()`].
pub fn line(text: &str) -> Result<(), Failure> {
    print(&format!("{text}\n"))
}

/// Writes bytes as they are.
///
/// # Errors
///
/// As [`print()`].
pub fn raw(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(failed)
}

/// Standard output for much at once. Whoever has it calls [`Out::end`], or does not know whether
/// all of it arrived.
#[derive(Debug)]
pub struct Out(BufWriter<io::StdoutLock<'static>>);

impl Out {
    /// Nobody else prints meanwhile.
    pub fn lock() -> Self {
        Self(BufWriter::with_capacity(BUFFER_LEN, stdout().lock()))
    }

    /// Prints a line.
    ///
    /// # Errors
    ///
    /// As [`print()`].
    pub fn line(&mut self, text: &str) -> Result<(), Failure> {
        writeln!(self.0, "{text}").map_err(failed)
    }

    /// Flushes all of it.
    ///
    /// # Errors
    ///
    /// As [`print()`].
    pub fn end(mut self) -> Result<(), Failure> {
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
pub fn failed(error: io::Error) -> Failure {
    if error.kind() == ErrorKind::BrokenPipe {
        return Failure::Unread;
    }
    Failure::Unwritten(error)
}

/// Whether a person reads standard output.
pub fn is_terminal() -> bool {
    stdout().is_terminal()
}

#[expect(clippy::disallowed_methods, reason = "the one place where errors of it are looked at")]
fn stdout() -> io::Stdout {
    io::stdout()
}

/// When to use colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// In pipes and files, too.
    Always,
    /// Nowhere.
    Never,
}

/// What somebody has said about colours; it is said once, before anything is printed.
static COLOR: OnceLock<Color> = OnceLock::new();

/// Says when to use colours.
pub fn set_color(color: Color) {
    COLOR.get_or_init(|| color);
}

/// How good what is said is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    Good,
    Doubtful,
    Bad,
}

/// Text for standard output in the colour of its tone, where there are colours.
pub fn paint(tone: Tone, text: &str) -> String {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
    // Where nobody has said anything, a test compares what is said.
    let colored = match COLOR.get().copied().unwrap_or(Color::Never) {
        Color::Auto => !plain && is_terminal(),
        Color::Always => true,
        Color::Never => false,
    };
    if !colored {
        return text.to_owned();
    }
    let color = match tone {
        Tone::Good => AnsiColor::Green,
        Tone::Doubtful => AnsiColor::Yellow,
        Tone::Bad => AnsiColor::Red,
    };
    let style = color.on_default();
    format!("{style}{text}{style:#}")
}

/// Says something on standard error. If nobody reads that, there is nobody to tell so.
pub fn tell(text: std::fmt::Arguments<'_>) {
    io::stderr().lock().write_all(text.to_string().as_bytes()).ok();
}

/// Says a line on standard error; unlike `eprintln!` it does not panic if nobody reads it.
#[macro_export]
macro_rules! note {
    ($($text:tt)*) => {
        $crate::out::tell(format_args!("{}\n", format_args!($($text)*)))
    };
}
