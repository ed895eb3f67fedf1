//! Endpoints, instants and keys as people read them in JSON.

/// An instant as nanoseconds since the Unix epoch.
pub(crate) mod instant {
    use machine::Instant;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(it: &Instant, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(it.0)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Instant, D::Error> {
        u64::deserialize(from).map(Instant)
    }
}

/// An endpoint as `address:port`.
pub(crate) mod endpoint {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::net::SocketAddr;
    use wire::Endpoint;

    pub(crate) fn serialize<S: Serializer>(
        it: &Endpoint,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(it)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Endpoint, D::Error> {
        SocketAddr::deserialize(from).map(Endpoint::from)
    }
}

/// Room by its name.
pub(crate) mod room {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};
    use wire::Room;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references in")]
    pub(crate) fn serialize<S: Serializer>(it: &Room, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(it.name())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Room, D::Error> {
        let name = String::deserialize(from)?;
        let found = Room::ALL.into_iter().find(|room| room.name() == name);
        found.ok_or_else(|| D::Error::custom("no name of how much room there is"))
    }
}

/// Bytes as hexadecimal digits.
pub(crate) mod hex {
    use data_encoding::HEXLOWER_PERMISSIVE;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(it: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&HEXLOWER_PERMISSIVE.encode(it))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let digits = String::deserialize(from)?;
        let wrong = |_| D::Error::custom("not hexadecimal digits");
        HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).map_err(wrong)
    }
}
