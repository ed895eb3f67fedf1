//! The commands of a transaction whose keys cannot change together, one after the other: as those
//! of a pipeline, but that no other command of the connection comes in between.

use super::view::{Queued, Ran};
use super::{Store, limits};
use crate::Reply;

impl Store {
    /// Carries commands out in their order, each when the one before has its reply, whatever that
    /// is. What they did, in that order.
    pub async fn in_order(&self, commands: &[Queued]) -> Vec<Ran> {
        let mut gathering = self.room.gather();
        let (mut done, mut bytes) = (Vec::new(), 0);
        let mut full = None;
        for (command, args) in commands {
            // Nothing is done of which there would be no room to tell what came of it.
            if let Some(why) = &full {
                done.push(Ran::at_once(Reply::clone(why)));
                continue;
            }
            let ran = Ran::timed(async { whole(self.run(*command, args).await).await }).await;
            let len = len_of(&ran.reply);
            bytes += len;
            full = gathering.grow(len).err();
            if bytes > limits::MANY_MAX {
                full = Some(limits::too_many_bytes());
            }
            done.push(ran);
        }
        done
    }
}

/// A reply that can stand among others: those whose bytes still come cannot.
async fn whole(reply: Reply) -> Reply {
    let Reply::Long(long) = &reply else { return reply };
    if long.len() > limits::CHANGED_MAX as u64 {
        return limits::too_long_to_tell();
    }
    let Some(mut pieces) = long.take() else { return reply };
    let mut bytes = Vec::new();
    while let Some(piece) = pieces.recv().await {
        bytes.extend_from_slice(&piece);
    }
    if bytes.len() as u64 == long.len() { Reply::Bulk(bytes.into()) } else { limits::cut_short() }
}

/// Bytes of the values in a reply.
fn len_of(reply: &Reply) -> usize {
    match reply {
        Reply::Bulk(bytes) => bytes.len(),
        Reply::Array(items) => items.iter().map(len_of).sum(),
        _ => 0,
    }
}
