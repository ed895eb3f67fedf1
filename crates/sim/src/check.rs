//! Checks what clients saw against what they were promised.
//!
//! A [`History`] takes [`Op`]s key by key, from a simulated world or from real processes. Its
//! [`check`](History::check) looks for one order of each key's operations ([`linear`]) and for the
//! promises that versions and sums tell of ([`properties`]), and at the batches for parts
//! of them ([`atomic`]); what fails is shrunk ([`shrink`]) and
//! can be drawn ([`draw_text`], [`draw_html`]).

pub mod atomic;
mod draw;
mod history;
pub mod linear;
mod op;
pub mod properties;
mod reply;
pub mod shrink;

pub use atomic::{Batch, Part};
pub use draw::{Violation, draw_html, draw_text};
pub use history::{History, Judgement, Key};
pub use linear::{Finding, Verdict};
pub use op::{Op, OpKind};
pub use reply::{Scan, complete, crowded, read};
