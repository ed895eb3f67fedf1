//! What load looks like: which operation comes next, on which key, with which value, when; and
//! how its latencies are recorded.
//!
//! Pure: time is handed in, randomness comes from a seeded [`machine::Rng`], nothing is sent.
//! The same seed gives the same operations, so that a run can be repeated and its values verified.

mod arrivals;
mod chooser;
mod generator;
mod keys;
mod mget;
mod mix;
mod population;
mod ranking;
mod recorder;
mod summary;
mod text;
mod values;
mod zeta;
mod zipf;

pub use arrivals::Arrivals;
pub use chooser::{Chooser, Distribution};
pub use generator::{Generator, Op, Spec};
pub use keys::KeyNames;
pub use mget::MgetSizes;
pub use mix::{Mix, OpKind};
pub use population::Population;
pub use ranking::{Ranking, Shift, ShiftKind};
pub use recorder::{Ending, Interval, Latencies, Recorder};
pub use summary::{EndingCounts, IntervalSummary, KindSummary, Latency, Summary};
pub use text::SettingError;
pub use values::{Sizes, Values};
pub use zeta::zeta;
pub use zipf::Zipf;
