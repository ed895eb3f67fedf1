//! Who sent a read here: the switch, or a client to the content address of the key.

use cluster::{CacheTables, ContentRouting, KeyspaceId, Match};
use wire::{ContentClass, DropReason, Endpoint, Header, Op};

/// Whoever asks, and is answered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asker {
    /// The switch, which has stamped the read.
    Switch(Endpoint),
    /// A client at this address; nobody has stamped the read.
    Client(Endpoint, ContentRouting),
}

impl Asker {
    /// Who has sent this read.
    pub(crate) fn of(
        tables: &CacheTables,
        from: Endpoint,
        header: &Header,
    ) -> Result<Self, DropReason> {
        let keyspace = KeyspaceId(header.keyspace);
        let keyspace = tables.keyspaces.iter().find(|it| it.id == keyspace);
        match keyspace.and_then(|it| it.content) {
            Some(content) if ContentClass::of_header(Op::Get, header).is_some() => {
                Ok(Self::Client(from, content))
            }
            _ if from == tables.switch => Ok(Self::Switch(from)),
            _ => Err(DropReason::NotFromSwitch),
        }
    }

    /// The header as answers repeat it: a client is answered where it asks from, and what it says
    /// of chains is not believed.
    pub(crate) fn answered_to(self, header: Header) -> Header {
        match self {
            Self::Switch(_) => header,
            Self::Client(client, _) => {
                let hop_flags = wire::CONTENT_HOP_FLAGS;
                let (reply_addr, reply_port) = (client.addr, client.port);
                Header { hop_flags, reply_addr, reply_port, chain_len: 0, ..header }
            }
        }
    }

    /// Where an answer comes from, if not from here, and where it goes.
    pub(crate) fn way_back(self, header: &Header) -> (Option<Endpoint>, Endpoint) {
        match self {
            Self::Switch(switch) => (None, switch),
            Self::Client(client, content) => {
                (address(&content, ContentClass::Read, header), client)
            }
        }
    }
}

/// The content address of a key that is asked for.
pub(crate) fn address(
    content: &ContentRouting,
    class: ContentClass,
    header: &Header,
) -> Option<Endpoint> {
    content.endpoint(class, KeyspaceId(header.keyspace), Match(header.match_value))
}
