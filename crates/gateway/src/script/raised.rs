//! Errors that functions of ours raise in a script.

use mlua::{Error, Value};

/// What was raised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Raised {
    /// Nothing of the script goes on.
    #[error("the script is over")]
    Over,
    /// A text, as the libraries of Lua raise it.
    #[error("{0}")]
    Text(String),
    /// A table with the field `err`, as a command raises it.
    #[error("{0}")]
    Reply(String),
}

impl From<Raised> for Error {
    fn from(raised: Raised) -> Self {
        Self::external(raised)
    }
}

impl Raised {
    /// What an error of the interpreter is in truth. `None`: there was no memory left.
    pub(super) fn of(error: &Error) -> Option<Self> {
        match error {
            Error::CallbackError { cause, .. } | Error::WithContext { cause, .. } => {
                Self::of(cause)
            }
            Error::MemoryError(_) => None,
            Error::ExternalError(inner) => {
                let known = inner.downcast_ref::<Self>().cloned();
                Some(known.unwrap_or_else(|| Self::Text(inner.to_string())))
            }
            other => Some(Self::Text(other.to_string())),
        }
    }
}

/// Where a script is that has called the function which runs, as its errors begin.
pub(super) fn position(lua: &mlua::Lua) -> String {
    let place = lua.inspect_stack(1, |debug| {
        let source = debug.source();
        Some((source.short_src?.into_owned(), debug.current_line()?))
    });
    match place.flatten() {
        Some((source, line)) => format!("{source}:{line}: "),
        None => String::new(),
    }
}

/// An error with a text, which says where it was raised.
pub(super) fn text(lua: &mlua::Lua, what: impl AsRef<str>) -> Error {
    Raised::Text(format!("{}{}", position(lua), what.as_ref())).into()
}

/// The bytes of a string, or of a number as Lua prints it.
pub(super) fn bytes_of(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Integer(number) => Some(number.to_string().into_bytes()),
        Value::Number(number) => Some(super::number::general(*number, 14).into_bytes()),
        _ => None,
    }
}

/// What is wrong with the text of a script.
pub(super) fn syntax(error: &Error) -> String {
    match error {
        Error::SyntaxError { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

/// The number that a value is.
#[expect(clippy::cast_precision_loss, reason = "it was one of Lua's, which are doubles")]
pub(super) fn number_of(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Number(number) => Some(*number),
        _ => None,
    }
}
