//! Publications: which versions the switch is known to have let no reader answer below.

use cluster::PartitionId;
use machine::Instant;
use std::collections::BTreeMap;
use std::time::Duration;
use wire::{Generation, Header, HotAnswer, Version, hop_flag};

/// Which key of a shard: its partition, keyhash and match value. The directory knows keys by no
/// more, and keeps those apart that have only the keyhash in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DirectoryKey {
    partition: PartitionId,
    keyhash: u64,
    match_value: u128,
}

impl DirectoryKey {
    pub(crate) fn new(partition: PartitionId, at: &Header) -> Self {
        Self { partition, keyhash: at.keyhash, match_value: at.match_value }
    }

    pub(crate) fn partition(&self) -> PartitionId {
        self.partition
    }
}

/// What has come back.
#[derive(Debug, Default)]
pub(crate) struct Publications {
    table: BTreeMap<DirectoryKey, Publication>,
}

#[derive(Debug, Default)]
struct Publication {
    version: Version,
    /// The newest that somebody waits for.
    wanted: Version,
    /// The generation in which this tail vouches for `wanted`; 0 for none.
    generation: Generation,
    /// Whether the switch has heard that.
    proven: bool,
    asked: Option<Asked>,
}

/// A HOT_PUBLISH under way.
#[derive(Debug)]
struct Asked {
    version: Version,
    since: Instant,
    /// Whether an earlier one may still come back as well.
    again: bool,
}

/// What is known when a HOT_PUBLISH has come back.
#[derive(Debug)]
pub(crate) struct Published {
    /// The newest version that is published.
    pub(crate) version: Version,
    /// How long it took, if that is certain.
    pub(crate) took: Option<Duration>,
    /// Whether another is to be sent.
    pub(crate) more: bool,
}

impl Publication {
    fn is_wanted(&self) -> bool {
        self.wanted > self.version || !self.generation.is_none() && !self.proven
    }
}

impl Publications {
    pub(crate) fn retain(&mut self, keep: impl Fn(PartitionId) -> bool) {
        self.table.retain(|place, _| keep(place.partition));
    }

    pub(crate) fn forget(&mut self, place: DirectoryKey) {
        self.table.remove(&place);
    }

    /// Whether a version is published. If it is not, somebody waits for it from now on.
    pub(crate) fn await_version(&mut self, place: DirectoryKey, version: Version) -> bool {
        let publication = self.table.entry(place).or_default();
        let published = publication.version >= version;
        if !published {
            publication.wanted = publication.wanted.max(version);
        }
        published
    }

    /// The same of a version that this tail vouches for in a generation, if it does. The other
    /// answer says whether HOT_PUBLISH has to be sent for it.
    pub(crate) fn vouch(
        &mut self,
        place: DirectoryKey,
        version: Version,
        generation: Option<Generation>,
    ) -> (bool, bool) {
        let publication = self.table.entry(place).or_default();
        if let Some(generation) = generation.filter(|it| *it != publication.generation) {
            (publication.generation, publication.proven) = (generation, false);
        }
        publication.wanted = publication.wanted.max(version);
        (publication.version >= version, publication.is_wanted())
    }

    /// The version to send HOT_PUBLISH for, and the generation in which it is vouched for, if any;
    /// not while an earlier one may still come back.
    pub(crate) fn ask(
        &mut self,
        now: Instant,
        place: DirectoryKey,
        patience: Duration,
    ) -> Option<(Version, Option<Generation>)> {
        let publication = self.table.get_mut(&place)?;
        if publication.asked.as_ref().is_some_and(|it| now < it.since + patience) {
            return None;
        }
        let (version, again) = (publication.wanted, publication.asked.is_some());
        publication.asked = Some(Asked { version, since: now, again });
        let generation = publication.generation;
        Some((version, (!generation.is_none()).then_some(generation)))
    }

    /// HOT_PUBLISH has come back.
    pub(crate) fn come_back(
        &mut self,
        now: Instant,
        place: DirectoryKey,
        header: &Header,
    ) -> Option<Published> {
        let publication = self.table.get_mut(&place)?;
        let HotAnswer { version, generation } = HotAnswer::of(header);
        publication.version = publication.version.max(version);
        let vouched = header.hop_flags & hop_flag::NEWEST != 0;
        publication.proven |= vouched && generation == publication.generation;
        let back = publication.asked.take_if(|asked| asked.version <= publication.version);
        let took = back.filter(|asked| !asked.again).map(|asked| now.since(asked.since));
        Some(Published { version: publication.version, took, more: publication.is_wanted() })
    }

    pub(crate) fn is_published(&self, place: DirectoryKey, version: Version) -> bool {
        self.table.get(&place).map_or(Version::NONE, |publish| publish.version) >= version
    }
}
