//! What an embedded cluster's data directory was made with, so that it is not taken for another's.

use super::{UpError, UpOptions};
use crate::entropy;
use crate::server::StartError;
use crate::store::StoreError;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// The contents of `keyway.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    format: u32,
    /// Seed of all hashes over keys.
    pub(super) seed: u64,
    pub(super) nodes: u16,
    pub(super) shards: u16,
    replicas: u8,
    partitions: u32,
    /// First port of each node when it last ran; 0 for any.
    pub(super) ports: Vec<u16>,
}

/// Raised when the contents change.
const FORMAT: u32 = 1;
const NAME: &str = "keyway.json";
const NAME_UNFINISHED: &str = "keyway.json.unfinished";

impl Plan {
    /// What the data directory says, or a new plan for an empty one.
    pub(super) fn load_or_make(options: &UpOptions) -> Result<Self, UpError> {
        let Some(data) = &options.data else { return Ok(Self::make(options)?) };
        match Self::read(data) {
            Ok(plan) => plan.check(options, data).map(|()| plan),
            Err(StoreError::Io { why, .. }) if why.kind() == io::ErrorKind::NotFound => {
                Ok(Self::make(options)?)
            }
            Err(error) => Err(StartError::from(error).into()),
        }
    }

    /// What the data directory says.
    pub(super) fn read(data: &Path) -> Result<Self, StoreError> {
        let path = data.join(NAME);
        let bytes = fs::read(&path).map_err(|why| StoreError::Io { path: path.clone(), why })?;
        serde_json::from_slice(&bytes)
            .map_err(|error| StoreError::Damaged { path, detail: error.to_string() })
    }

    fn make(options: &UpOptions) -> Result<Self, StartError> {
        let UpOptions { nodes, shards, replicas, partitions, service, .. } = options;
        Ok(Self {
            format: FORMAT,
            seed: entropy::draw().map_err(StartError::Entropy)?,
            nodes: *nodes,
            shards: *shards,
            replicas: *replicas,
            partitions: *partitions,
            ports: (0..*nodes).map(|index| first_port(service.port(), index, *shards)).collect(),
        })
    }

    fn check(&self, options: &UpOptions, data: &Path) -> Result<(), UpError> {
        let mut differences = Vec::new();
        if self.format != FORMAT {
            differences.push(format!(
                "it has format {}, this version writes {FORMAT}: start the version that made it",
                self.format
            ));
        }
        let pairs = [
            ("nodes", u32::from(self.nodes), u32::from(options.nodes)),
            ("shards", u32::from(self.shards), u32::from(options.shards)),
            ("replicas", u32::from(self.replicas), u32::from(options.replicas)),
            ("partitions", self.partitions, options.partitions),
        ];
        for (what, made_with, wanted) in pairs {
            if made_with != wanted {
                differences.push(format!(
                    "it was made with {made_with} {what}, not {wanted}: start it with \
                     --{what} {made_with}, or choose another directory"
                ));
            }
        }
        if self.ports.len() != usize::from(self.nodes) {
            differences.push(format!("{NAME} does not name a port for each node"));
        }
        if differences.is_empty() {
            return Ok(());
        }
        Err(UpError::OtherData { path: data.into(), differences })
    }

    /// Writes it into the data directory, if there is one; whole or not at all.
    pub(super) fn save(&self, options: &UpOptions) -> Result<(), StartError> {
        let Some(data) = &options.data else { return Ok(()) };
        let unfinished = data.join(NAME_UNFINISHED);
        let text = serde_json::to_string_pretty(self).expect("numbers have a JSON form");
        let write = || {
            let mut file = File::create(&unfinished)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&unfinished, data.join(NAME))?;
            File::open(data)?.sync_all()
        };
        write().map_err(|why| StoreError::Io { path: unfinished.clone(), why }.into())
    }
}

/// Distance of the first node's port from the service port: far enough for the service port's
/// neighbours to be free for people to use.
const PORTS_AFTER_SERVICE: u16 = 100;

/// A port that people recognise, if the service has one; else any.
fn first_port(service: u16, index: u16, shards: u16) -> u16 {
    let offset = index.checked_mul(shards).and_then(|it| it.checked_add(PORTS_AFTER_SERVICE));
    match offset.and_then(|offset| service.checked_add(offset)) {
        Some(port) if service != 0 => port,
        _ => 0,
    }
}
