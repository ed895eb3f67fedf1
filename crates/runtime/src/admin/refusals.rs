//! Whom an admin server has refused, by reasons.

use crate::metrics::{Sample, Samples};
use std::sync::atomic::{AtomicU64, Ordering};
use wire::layout::metric;

/// Why somebody was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// No TLS connection came about: it spoke something else, or took too long.
    Handshake,
    /// Its certificate is of another authority, not valid now, or names no role.
    Certificate,
    /// It has shown no certificate where one is needed.
    Anonymous,
    /// Its role may not ask that.
    Role,
    /// It was sent by the page of another site.
    Origin,
}

impl Refused {
    const ALL: [Self; 5] =
        [Self::Handshake, Self::Certificate, Self::Anonymous, Self::Role, Self::Origin];

    fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Certificate => "certificate",
            Self::Anonymous => "anonymous",
            Self::Role => "role",
            Self::Origin => "origin",
        }
    }
}

/// How many were refused.
#[derive(Debug, Default)]
pub(super) struct Refusals([AtomicU64; Refused::ALL.len()]);

impl Refusals {
    pub(super) fn note(&self, why: Refused) {
        let counts = Refused::ALL.iter().zip(&self.0);
        for (_, count) in counts.filter(|(it, _)| **it == why) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn fill(&self, samples: &mut Samples) {
        let rows = Refused::ALL.iter().zip(&self.0);
        let rows =
            rows.map(|(why, count)| Sample::labelled([why.name()], count.load(Ordering::Relaxed)));
        samples.add(&metric::ADMIN_REFUSED, rows);
    }
}
