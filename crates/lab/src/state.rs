//! What there is of a lab, in a directory of its own, so that every command finds it and nothing is
//! left behind: the state is written before what it names is made.
//!
//! Whoever changes a lab holds a lock on its directory. The kernel frees it when that process
//! ends, however it ends.

use crate::certs;
use crate::cluster::Cluster;
use crate::network;
use crate::plane::Plane;
use crate::process::{self, Identity, Process};
use crate::rack::Rack;
use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Of all labs of this machine. Only root writes there, and the next start of the machine, which
/// leaves nothing of a lab, empties it.
const FOLDER: &str = "/run/keyway-lab";
const NAME: &str = "state.json";
const NAME_UNFINISHED: &str = "state.json.unfinished";

/// What there is of a lab.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct State {
    /// The process that takes the lab down when it ends; `None` for a lab that stays.
    pub keeper: Option<Identity>,
    /// The process that does it in place of a keeper that was killed.
    pub guard: Option<Identity>,
    /// All namespaces: ours, because none was there before.
    pub namespaces: Vec<String>,
    /// Storage nodes.
    pub nodes: u16,
    /// Caches.
    pub caches: u16,
    /// Hosts for clients.
    pub clients: u16,
    /// The data plane.
    pub plane: Plane,
    /// Whether everybody has a certificate, and packets are in envelopes.
    pub secured: bool,
    /// What runs, as far as it has been started.
    pub processes: Vec<Process>,
}

impl State {
    /// Of a rack of which nothing is there yet.
    pub fn new(cluster: &Cluster) -> Self {
        let Cluster { rack, plane, secured, .. } = cluster;
        Self {
            keeper: Identity::of(nix::unistd::Pid::this()),
            guard: None,
            namespaces: rack.places().map(|place| rack.namespace(place)).collect(),
            nodes: rack.nodes,
            caches: rack.caches,
            clients: rack.clients,
            plane: *plane,
            secured: *secured,
            processes: Vec::new(),
        }
    }

    /// The rack of the lab of this name, whose state it is.
    pub fn rack(&self, lab: String) -> Rack {
        Rack { lab, nodes: self.nodes, caches: self.caches, clients: self.clients }
    }

    /// Where clients of the lab of this name, whose state it is, find certificates, if there are
    /// some.
    pub fn certs(&self, lab: &str) -> Option<PathBuf> {
        self.secured.then(|| certs::directory_in(&directory(lab)))
    }

    /// Whether somebody is to have it: its keeper, or, of a lab that stays, any process.
    pub fn is_wanted(&self) -> bool {
        match self.keeper {
            Some(keeper) => keeper.runs(),
            None => self.processes.iter().any(|process| process.identity.runs()),
        }
    }
}

/// Where everything of a lab lies.
pub fn directory(lab: &str) -> PathBuf {
    Path::new(FOLDER).join(lab)
}

/// What the state of a lab says; `None` if there is no such lab.
pub fn read(lab: &str) -> Result<Option<State>> {
    let path = directory(lab).join(NAME);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let state = serde_json::from_slice(&bytes);
    let state = state.with_context(|| format!("{} is not of this version", path.display()))?;
    Ok(Some(state))
}

/// The directory of a lab, and the right to change the lab.
#[derive(Debug)]
pub struct HeldLab {
    lab: String,
    path: PathBuf,
    _lock: File,
}

impl HeldLab {
    /// Takes it; `None` if another process has it.
    pub fn take(lab: &str) -> Result<Option<Self>> {
        let path = directory(lab);
        let context = || format!("cannot use {}; keyway lab takes root", path.display());
        loop {
            let make = fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
            make.with_context(context)?;
            let lock = match File::open(&path) {
                Ok(lock) => lock,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error).with_context(context),
            };
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error).with_context(context),
            }
            // Whoever had it may have removed it in between.
            let locked = lock.metadata().with_context(context)?.ino();
            if fs::metadata(&path).is_ok_and(|it| it.ino() == locked) {
                return Ok(Some(Self { lab: lab.to_owned(), path, _lock: lock }));
            }
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes down what there is; whole or not at all.
    pub fn write(&self, state: &State) -> Result<()> {
        let text = serde_json::to_string_pretty(state).expect("it has a JSON form");
        let unfinished = self.path.join(NAME_UNFINISHED);
        let write = || {
            fs::write(&unfinished, text)?;
            fs::rename(&unfinished, self.path.join(NAME))
        };
        write().with_context(|| format!("cannot write into {}", self.path.display()))
    }

    /// Takes down all that the state names, and forgets the lab. Says whether there was one.
    pub fn take_down(self) -> Result<bool> {
        let state = read(&self.lab)?;
        if let Some(State { namespaces, .. }) = &state {
            process::end_all(namespaces)?;
            network::remove(namespaces)?;
        }
        let removed = fs::remove_dir_all(&self.path);
        removed.with_context(|| format!("cannot remove {}", self.path.display()))?;
        // Not while there are other labs.
        fs::remove_dir(FOLDER).ok();
        Ok(state.is_some())
    }
}

/// Takes a lab down, wherever its keeper is. Says whether there was one.
pub fn take_down(lab: &str) -> Result<bool> {
    if !directory(lab).exists() {
        return Ok(false);
    }
    let mut asked = None;
    for _ in 0..KEEPER_WAIT.as_millis() / LOOK_INTERVAL.as_millis() {
        if let Some(held) = HeldLab::take(lab)? {
            return Ok(held.take_down()? || asked.is_some());
        }
        // Once: asked a second time it would end at once and leave everything.
        let keeper = read(lab)?.and_then(|state| state.keeper);
        if let Some(keeper) = keeper.filter(|keeper| asked != Some(*keeper)) {
            keeper.signal(Signal::SIGTERM);
            asked = Some(keeper);
        }
        process::pause(LOOK_INTERVAL);
    }
    bail!("the process that has lab {lab} does not end; kill it, and try again")
}

/// More than a keeper takes to end everything.
const KEEPER_WAIT: Duration = Duration::from_secs(60);
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
