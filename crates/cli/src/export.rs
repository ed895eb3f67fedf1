//! Keys and values in a file, so that they can be read back as they were: what `keyway export`
//! writes and `keyway import` reads. The format is documented in `docs/reference/export.md`.

mod read;
mod record;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use read::{Damage, Event, Reader};
#[cfg(test)]
use record::Totals;
pub(crate) use write::Writer;
