//! What a decided reply to a request for one key, or for a keyspace, means.

use crate::{BatchReply, CasReply, DelReply, IncrReply, Reply};
use cluster::{ContentRouting, HotPolicy, Keyspace, KeyspaceId, KeyspaceKind};
use wire::{Body, Code, ContentRoutingBody, ServicePrefix, Version};

/// The reply as callers see it; `None` if this operation cannot end with this code.
pub(crate) fn single(code: Code, version: Version, body: &Body<'_>) -> Option<Reply> {
    Some(match (body, code) {
        (Body::GetReply(entry), Code::Ok) => Reply::Get(Some((*entry).into())),
        (Body::GetReply(_), Code::NotFound) => Reply::Get(None),
        (Body::PutReply, Code::Ok) => Reply::Put { version },
        (Body::DelReply, Code::Ok) => Reply::Del(DelReply { existed: true, version }),
        (Body::DelReply, Code::NotFound) => Reply::Del(DelReply { existed: false, version }),
        (Body::CasReply, Code::Ok) => Reply::Cas(CasReply::Written { version }),
        (Body::CasReply, Code::CasMismatch) => Reply::Cas(CasReply::Mismatch { version }),
        (Body::IncrReply { result }, Code::Ok) => {
            Reply::Incr(IncrReply::Sum { sum: *result, version })
        }
        (Body::BatchReply { .. }, Code::Ok) => Reply::Batch(BatchReply::Applied { version }),
        (Body::BatchReply { step }, Code::CasMismatch) => {
            Reply::Batch(BatchReply::Failed { step: usize::from(*step) })
        }
        (Body::IncrReply { .. }, Code::NotANumber) => Reply::Incr(IncrReply::NotANumber),
        (Body::IncrReply { .. }, Code::Overflow) => Reply::Incr(IncrReply::Overflow),
        _ => return None,
    })
}

/// The keyspace that a DESCRIBE reply describes; `None` if it describes none.
pub(crate) fn keyspace(name: &str, code: Code, body: &Body<'_>) -> Option<Keyspace> {
    let (Body::DescribeReply { fixed, prefix }, Code::Ok) = (body, code) else { return None };
    let (kind, content) = match fixed.kind {
        0 => (KeyspaceKind::Hash, None),
        1 => (KeyspaceKind::Range { prefix: prefix.to_vec() }, None),
        2 => (KeyspaceKind::Hash, Some(content_routing(prefix)?)),
        _ => return None,
    };
    let id = KeyspaceId(fixed.id);
    // How many nodes hold a key is nothing that a client needs, and the reply does not say it.
    Some(Keyspace {
        id,
        name: name.to_owned(),
        kind,
        seed: fixed.seed,
        replicas: 0,
        hot: HotPolicy::default(),
        content,
    })
}

/// Where content addresses are.
fn content_routing(bytes: &[u8]) -> Option<ContentRouting> {
    let (ContentRoutingBody { prefix, port }, _) = ContentRoutingBody::split(bytes)?;
    let prefix = ServicePrefix::of_bits(prefix)?;
    (port != 0).then_some(ContentRouting { prefix, port })
}
