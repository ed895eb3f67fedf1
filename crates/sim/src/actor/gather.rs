//! Batches with big values: the parts of one key after the other, and then a batch of manifests.

use super::batch::Planned;
use super::big::BigStep;
use super::{Actor, Ask, Asked, What};
use client::{Request, Step};
use machine::Instant;
use wire::ManifestBody;
use wire::big::{EXPIRY_BIG, checksum};

/// A batch with big values on its way in.
#[derive(Clone, Debug)]
pub(super) struct Gathering {
    planned: Vec<Planned>,
    /// Of each key that is given a value.
    manifests: Vec<Option<ManifestBody>>,
    /// The next key to send parts of.
    next: usize,
    /// Keys from this one on get no parts, though the batch makes values of them.
    end: usize,
}

impl Actor {
    /// Makes a batch whose values are big.
    pub(super) fn batch_big(&mut self, ask: &Ask<'_>, planned: Vec<Planned>) {
        let part_len = u16::try_from(1 + self.rng.below(3)).expect("small");
        let manifests = planned.iter().map(|it| {
            let text = it.leaves().1.flatten()?.to_string();
            self.uploads += 1;
            Some(ManifestBody {
                len: text.len() as u64,
                part_len,
                checksum: checksum(0, text.as_bytes()),
                client: self.config.client_id,
                number: self.uploads,
            })
        });
        let manifests = manifests.collect();
        let hasty = self.rng.chance(1, 6);
        let some = usize::try_from(self.rng.below(planned.len() as u64)).expect("few");
        let end = if hasty { some } else { planned.len() };
        let (at, sure) = (ask.now, self.is_sure());
        self.gather(ask, (at, sure), Gathering { planned, manifests, next: 0, end });
    }

    /// Sends the parts of the next key; or the batch, once all are there.
    pub(super) fn gather(&mut self, ask: &Ask<'_>, (at, sure): (Instant, bool), mut it: Gathering) {
        while it.next < it.end {
            let place = it.next;
            it.next += 1;
            let (Some(Some(manifest)), Some(planned)) =
                (it.manifests.get(place).copied(), it.planned.get(place))
            else {
                continue;
            };
            let (key, value) = planned.leaves();
            let (bytes, text) = (key.key.clone(), value.flatten().unwrap_or_default().to_string());
            let request = Request::PutParts {
                key: &bytes,
                upload: manifest.upload(),
                first: 0,
                part_len: usize::from(manifest.part_len),
                bytes: text.as_bytes(),
            };
            let ticket = self.start_request(ask, false, request);
            let what = What::Big(BigStep::Gather(it));
            self.waiting.insert(ticket, Asked { at, sure, what });
            return;
        }
        let values: Vec<(Vec<u8>, u64)> = it.manifests.iter().map(value_and_expiry).collect();
        let steps = it.planned.iter().zip(&values);
        let steps: Vec<Step<'_>> =
            steps.map(|(planned, (value, expiry))| planned.step(value, *expiry)).collect();
        let ticket = self.start_request(ask, false, Request::Batch { steps: &steps });
        let hasty = it.end < it.planned.len();
        let what = What::Big(BigStep::SealAll { planned: it.planned, hasty });
        self.waiting.insert(ticket, Asked { at, sure, what });
    }
}

fn value_and_expiry(manifest: &Option<ManifestBody>) -> (Vec<u8>, u64) {
    manifest.map_or_else(Default::default, |it| (it.to_bytes().to_vec(), EXPIRY_BIG))
}
