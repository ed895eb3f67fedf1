//! What TurboKV's own evaluation says, to stand beside what is measured here.

use crate::paper::{Finder, Skew};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Scan,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Scan];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Scan => "scan",
        }
    }
}

/// Milliseconds of its tables 1 and 2: mean, median and 99th percentile.
pub(crate) fn milliseconds(skew: Skew, by: Finder, kind: Kind) -> [f64; 3] {
    let uniform = skew == Skew::Uniform;
    match (kind, by, uniform) {
        (Kind::Read, Finder::Switch, true) => [72.5, 71.2, 103.3],
        (Kind::Read, Finder::Clients, true) => [69.8, 68.8, 98.6],
        (Kind::Read, Finder::Nodes, true) => [86.6, 87.7, 127.8],
        (Kind::Write, Finder::Switch, true) => [123.5, 121.8, 165.8],
        (Kind::Write, Finder::Clients, true) => [117.5, 116.1, 153.5],
        (Kind::Write, Finder::Nodes, true) => [138.2, 138.0, 189.0],
        (Kind::Scan, Finder::Switch, true) => [84.3, 80.0, 160.2],
        (Kind::Scan, Finder::Clients, true) => [80.8, 76.5, 139.0],
        (Kind::Scan, Finder::Nodes, true) => [109.0, 104.0, 184.5],
        (Kind::Read, Finder::Switch, false) => [72.2, 71.8, 105.3],
        (Kind::Read, Finder::Clients, false) => [71.4, 70.9, 104.0],
        (Kind::Read, Finder::Nodes, false) => [102.8, 99.8, 206.8],
        (Kind::Write, Finder::Switch, false) => [126.8, 125.4, 172.4],
        (Kind::Write, Finder::Clients, false) => [119.7, 117.2, 167.3],
        (Kind::Write, Finder::Nodes, false) => [178.3, 170.9, 330.6],
        (Kind::Scan, Finder::Switch, false) => [87.3, 80.3, 204.0],
        (Kind::Scan, Finder::Clients, false) => [85.6, 80.0, 196.0],
        (Kind::Scan, Finder::Nodes, false) => [112.0, 104.5, 242.6],
    }
}

/// By how many percent its in-switch throughput is over the server-driven one at least: of reads at
/// all skews, of writes of uniform keys, and of those of skewed keys.
pub(super) const OVER_SERVER_READS: f64 = 26.0;
pub(super) const OVER_SERVER_UNIFORM_WRITES: f64 = 26.0;
pub(super) const OVER_SERVER_SKEWED_WRITES: f64 = 37.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_paper_says_of_its_tables_is_what_is_here() {
        let cut = |skew, kind, place: usize| {
            let of = |by| milliseconds(skew, by, kind)[place];
            100.0 * (1.0 - of(Finder::Switch) / of(Finder::Nodes))
        };
        let skewed = Skew::Zipf(1.2);
        for (skew, kind, place, percent) in [
            (Skew::Uniform, Kind::Read, 0, 16.3),
            (Skew::Uniform, Kind::Read, 2, 19.2),
            (Skew::Uniform, Kind::Write, 0, 11.0),
            (Skew::Uniform, Kind::Write, 2, 12.3),
            (Skew::Uniform, Kind::Scan, 0, 23.0),
            (Skew::Uniform, Kind::Scan, 2, 13.0),
            (skewed, Kind::Read, 0, 30.0),
            (skewed, Kind::Read, 2, 49.0),
            (skewed, Kind::Write, 0, 29.0),
            (skewed, Kind::Write, 2, 48.0),
            (skewed, Kind::Scan, 0, 22.0),
            (skewed, Kind::Scan, 2, 16.0),
        ] {
            let cut = cut(skew, kind, place);
            assert!((cut - percent).abs() < 0.7, "{skew} {kind:?} {place}: {cut}, not {percent}");
        }
    }
}
