//! How the crate's settings are read from text.

use std::fmt;

/// Why a setting was not understood, and what would have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError(String);

impl SettingError {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingError {}

/// Reads a number, naming what it was for if it is none.
pub(crate) fn number<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, SettingError> {
    let bad = || SettingError::new(format!("{what}: {text:?} is not a number of that kind"));
    text.trim().parse().map_err(|_| bad())
}

/// Reads a count from 1 to `most`.
pub(crate) fn bounded(text: &str, what: &str, most: u64) -> Result<u64, SettingError> {
    let value = number(text, what)?;
    if !(1..=most).contains(&value) {
        return Err(SettingError::new(format!("{text} {what}: not between 1 and {most}")));
    }
    Ok(value)
}

/// Reads a share between 0 and 1.
pub(crate) fn share(text: &str, what: &str) -> Result<f64, SettingError> {
    let value: f64 = number(text, what)?;
    if !(0.0..=1.0).contains(&value) {
        return Err(SettingError::new(format!("{what}: {text} is not between 0 and 1")));
    }
    Ok(value)
}
