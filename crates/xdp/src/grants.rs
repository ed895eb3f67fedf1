//! The table of grants in the kernel: what has ended is taken out, and clients that are silent are
//! forgotten. Programs put in what is there ([`bpf/lib/grants.h`] says how both get along).
//!
//! [`bpf/lib/grants.h`]: ../../../../bpf/lib/grants.h

use crate::layout::{Grant, Grantee, Request, Silent};
use crate::maps;
use crate::program::{Error, Program};
use libbpf_rs::MapHandle;
use machine::Instant;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// What looks after the table.
#[derive(Debug)]
pub(crate) struct Grants {
    writes: MapHandle,
    grantees: MapHandle,
    grants: MapHandle,
    ended: MapHandle,
    pauses: MapHandle,
    /// How often it was looked through: the clock of the programs for silent clients.
    pass: u64,
    /// When that was the last time.
    at: Option<Instant>,
    /// Clients that programs are told not to know any more; whether they have ended.
    leaving: BTreeMap<u64, bool>,
    /// Clients that have ended, by the pass in which they were taken out.
    retired: VecDeque<(u64, u64)>,
}

/// Time from one pass to the next, at least: so many passes last no shorter than as many seconds.
const PASS: Duration = Duration::from_secs(1);

/// Passes that a client is remembered for: as long as nodes keep its sessions.
const IDLE_PASSES: u64 = wire::SESSION_IDLE_SECS as u64 + 1;

/// Grants that are let go in one pass.
const ENDED_MAX: usize = 1 << 16;

/// Clients that are forgotten in one pass, or found to have ended.
const SILENT_MAX: usize = 1 << 10;

/// Clients that have ended and are remembered as such: as many as `KW_ENDED_MAX`.
const RETIRED_MAX: usize = 1 << 18;

impl Grants {
    pub(crate) fn new(program: &Program) -> Self {
        let map = |name| program.map(name);
        let (writes, grantees) = (map(".data.delegated"), map("grantees"));
        let (grants, ended, pauses) = (map("grants"), map("ended"), map("pauses"));
        let (leaving, retired) = (BTreeMap::new(), VecDeque::new());
        Self { writes, grantees, grants, ended, pauses, pass: 1, at: None, leaving, retired }
    }

    /// The number of the present pass.
    pub(crate) fn pass(&self) -> u64 {
        self.pass
    }

    /// Whether nothing is remembered of any client.
    pub(crate) fn is_empty(&self) -> Result<bool, Error> {
        // After the number of clients it says when one found no room.
        Ok(maps::one(&self.writes)?.iter().take(8).all(|byte| *byte == 0))
    }

    /// Whether a pass is due at `now`, which then begins: programs are to be told.
    pub(crate) fn begins_pass(&mut self, now: Instant) -> Result<bool, Error> {
        if self.at.is_some_and(|at| now.since(at) < PASS) || self.is_empty()? {
            return Ok(false);
        }
        (self.at, self.pass) = (Some(now), self.pass + 1);
        Ok(true)
    }

    /// Takes out grants of requests that have ended, and forgets clients that were silent: so many
    /// of them at most.
    ///
    /// # Errors
    ///
    /// If the kernel does not do as it is told; what is left is done in a later pass.
    pub(crate) fn sweep(&mut self, program: &Program) -> Result<(), Error> {
        // First: marks only rise, so a grant that is below one now has ended.
        let mut low = BTreeMap::new();
        let mut silent = Vec::new();
        for (_, grantee) in maps::all::<8, { Grantee::LEN }>(&self.grantees)? {
            let Some(Grantee { client, low: mark, heard, .. }) = Grantee::from_bytes(&grantee)
            else {
                continue;
            };
            low.insert(client, mark);
            let room = self.retired.len() + silent.len() < RETIRED_MAX;
            if heard != 0 && mark == u64::MAX && room && silent.len() < SILENT_MAX {
                maps::put(&self.ended, &client.to_be_bytes(), &self.pass.to_ne_bytes())?;
                silent.push((Silent { client, heard }, true));
            } else if heard != 0 && heard + IDLE_PASSES < self.pass && silent.len() < SILENT_MAX {
                silent.push((Silent { client, heard }, false));
            }
        }
        for (of, has_ended) in silent {
            if program.silence(&of)? {
                self.leaving.insert(of.client, has_ended);
            }
        }
        if !self.leaving.is_empty() {
            // Whoever knew them before may just put in a grant of theirs.
            maps::pause(&self.pauses)?;
        }
        let mut ended = Vec::new();
        for (key, _) in maps::all::<{ Request::LEN }, { Grant::LEN }>(&self.grants)? {
            let Some(Request { client, seq }) = Request::from_bytes(&key) else { continue };
            let leaves = self.leaving.contains_key(&client);
            let has_ended = || low.get(&client).is_some_and(|low| seq < *low);
            if leaves || (ended.len() < ENDED_MAX && has_ended()) {
                ended.push(key);
            }
        }
        for key in ended {
            maps::remove(&self.grants, &key)?;
        }
        while let Some((client, has_ended)) =
            self.leaving.first_key_value().map(|it| (*it.0, *it.1))
        {
            if has_ended {
                maps::remove(&self.grantees, &client.to_be_bytes())?;
                self.retired.push_back((self.pass, client));
            } else {
                program.part(&Silent { client, heard: 0 })?;
            }
            self.leaving.remove(&client);
        }
        self.forget_retired(program)
    }

    /// Forgets clients that had ended so long ago that no copy of a request of theirs is left.
    fn forget_retired(&mut self, program: &Program) -> Result<(), Error> {
        while let Some((pass, client)) = self.retired.front().copied()
            && pass + IDLE_PASSES < self.pass
        {
            program.forget(&Silent { client, heard: 0 })?;
            self.retired.pop_front();
        }
        Ok(())
    }
}
