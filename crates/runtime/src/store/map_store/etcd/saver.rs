//! Writes the map, by a thread of its own: etcd may take its time, and the controller must not.

use super::super::SaveError;
use super::api::{Api, CallError, Number, PATIENCE};
use super::keeper::State;
use super::value::{CHUNK_BYTES_MAX, CHUNKS_MAX, Head, Known};
use controller::election::{Meaning, Refusal, WRITE_AGAIN};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

/// Hands maps to the thread that writes them, one at a time.
#[derive(Debug)]
pub(super) struct Saver {
    maps: Sender<Vec<u8>>,
    ended: Arc<Mutex<Option<Result<(), SaveError>>>>,
}

impl Saver {
    pub(super) fn start(api: Arc<Api>, leader: Number, known: Known, state: Arc<State>) -> Self {
        let (maps, receiver) = channel();
        let ended = Arc::new(Mutex::new(None));
        let writer = Writer { api, leader, known, number: 0, state: Arc::clone(&state) };
        let told = Arc::clone(&ended);
        let tell = move |how| {
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(how);
            state.wake();
        };
        let work = {
            let tell = tell.clone();
            move || run(writer, &receiver, &tell)
        };
        if let Err(error) = Builder::new().name("etcd-map".into()).spawn(work) {
            tell(Err(SaveError::Failed(format!("cannot start a thread: {error}"))));
        }
        Self { maps, ended }
    }

    pub(super) fn save(&self, map: Vec<u8>) {
        // If the thread has ended it has said why.
        drop(self.maps.send(map));
    }

    pub(super) fn poll(&self) -> Option<Result<(), SaveError>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Until the saver is dropped, or this process does not lead any more.
fn run(mut writer: Writer, maps: &Receiver<Vec<u8>>, tell: &impl Fn(Result<(), SaveError>)) {
    while let Ok(map) = maps.recv() {
        let Some(ended) = writer.write_until_clear(&map) else { return };
        tell(ended);
    }
}

struct Writer {
    api: Arc<Api>,
    leader: Number,
    known: Known,
    /// Maps that this leader has written, or tried to.
    number: u64,
    state: Arc<State>,
}

/// What was found instead of what was expected.
enum Step {
    Done(Result<(), SaveError>),
    /// An earlier attempt of this leader's came through after all.
    Again,
}

impl Writer {
    /// Writes a map, however long etcd does not say what became of it; `None` if this process leads
    /// no more before it does. What is tried again is the same under the same name, so that it does
    /// no harm if both come through.
    fn write_until_clear(&mut self, map: &[u8]) -> Option<Result<(), SaveError>> {
        self.number += 1;
        let head = Head::new(self.leader, self.number, map);
        if map.chunks(CHUNK_BYTES_MAX).len() > CHUNKS_MAX {
            let most = (CHUNK_BYTES_MAX * CHUNKS_MAX) >> 20;
            let why = format!("the map is of {} bytes, and etcd is given {most} MiB", map.len());
            return Some(Err(SaveError::NotNow(why)));
        }
        loop {
            match self.write(&head, map) {
                Ok(Step::Done(ended)) => {
                    self.state.note_saving(ended.as_ref().err().map(ToString::to_string));
                    return Some(ended);
                }
                Ok(Step::Again) => {}
                Err(CallError::Refused(why)) => {
                    self.state.note_saving(Some(why.clone()));
                    return Some(Err(SaveError::NotNow(why)));
                }
                Err(CallError::Unclear(why)) => {
                    self.state.note_saving(Some(format!("not known whether it was saved: {why}")));
                    std::thread::park_timeout(WRITE_AGAIN);
                }
            }
            if self.state.is_over() {
                return None;
            }
        }
    }

    /// Writes chunks that do not fit into one request with the head before it, then the head, and
    /// with it removes all other chunks.
    fn write(&mut self, head: &Head, map: &[u8]) -> Result<Step, CallError> {
        let api = &self.api;
        let leads = || api.unchanged("leader", self.leader);
        let count = map.chunks(CHUNK_BYTES_MAX).len();
        let mut chunks = (0..count).zip(map.chunks(CHUNK_BYTES_MAX));
        let put = |(number, chunk): (usize, &[u8])| api.put(&head.chunk(number), chunk, Number(0));
        let last = chunks.next_back().map(put);
        for chunk in chunks {
            if !api.txn(&[leads()], &[put(chunk)], &[], PATIENCE)?.succeeded {
                return Ok(self.deposed());
            }
        }
        let unchanged = [leads(), api.unchanged("map", self.known.changed)];
        let name = &head.name;
        // A slash comes after "map", and a "0" after a slash.
        let others = [
            api.delete("map/", &format!("map/{name}/")),
            api.delete(&format!("map/{name}0"), "map0"),
        ];
        let put = [api.put("map", &head.to_bytes(), Number(0))].into_iter().chain(last);
        let success: Vec<_> = put.chain(others).collect();
        let done = api.txn(&unchanged, &success, &["leader", "map"], PATIENCE)?;
        if done.succeeded {
            self.known.changed = done.header.revision;
            return Ok(Step::Done(Ok(())));
        }
        let found = done.read(1);
        let is = found.as_ref().and_then(Head::parse);
        let refusal = Refusal {
            seat: done.read(0).map(|seat| seat.mod_revision.0),
            map: is.as_ref().map(|it| (it.leader, it.name.as_str())),
        };
        let meaning = refusal.meaning(self.leader.0, &head.name);
        if let (Some(found), Meaning::Saved | Meaning::Again) = (&found, meaning) {
            self.known.changed = found.mod_revision;
        }
        Ok(match meaning {
            Meaning::Deposed => self.deposed(),
            Meaning::Saved => Step::Done(Ok(())),
            Meaning::Again => Step::Again,
            Meaning::Overwritten => Step::Done(Err(SaveError::Failed(
                "somebody who does not lead has changed the map in etcd".into(),
            ))),
        })
    }

    fn deposed(&self) -> Step {
        self.state.lose();
        Step::Done(Err(SaveError::Deposed))
    }
}
