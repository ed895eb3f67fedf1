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

/// Endpoints as texts.
pub(crate) mod endpoints {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::net::SocketAddr;
    use wire::Endpoint;

    pub(crate) fn serialize<S: Serializer>(
        all: &[Endpoint],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(all.iter().map(Endpoint::to_string))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<Endpoint>, D::Error> {
        let all = Vec::<SocketAddr>::deserialize(from)?;
        Ok(all.into_iter().map(Endpoint::from).collect())
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

/// 64 bits as 16 hexadecimal digits; read from a number, too.
pub(crate) mod hex64 {
    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};
    use std::fmt;

    pub(crate) fn serialize<S: Serializer>(it: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{it:016x}"))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        from.deserialize_any(Either)
    }

    struct Either;

    impl Visitor<'_> for Either {
        type Value = u64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("up to 16 hexadecimal digits as text, or a number")
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
            Ok(number)
        }

        /// As the integers of TOML are, in which vectors are written.
        fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
            u64::try_from(number).map_err(E::custom)
        }

        fn visit_str<E: Error>(self, digits: &str) -> Result<u64, E> {
            let sound = (1..=16).contains(&digits.len()) && !digits.starts_with('+');
            let number = u64::from_str_radix(digits, 16).ok().filter(|_| sound);
            number.ok_or_else(|| E::custom("not up to 16 hexadecimal digits"))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{ClusterId, Incarnation, StoreId};

    #[test]
    fn random_ids_keep_all_their_bits_in_json() {
        let id = StoreId(u64::MAX - 1);
        let text = serde_json::to_string(&id).unwrap();
        assert_eq!(text, "\"fffffffffffffffe\"");
        assert_eq!(serde_json::from_str::<StoreId>(&text).unwrap(), id);
        assert_eq!(
            serde_json::from_str::<Incarnation>("12").unwrap(),
            Incarnation(12),
            "as it was kept before"
        );
        for wrong in ["\"\"", "\"+1\"", "\"12345678123456781\"", "\"x\"", "-1"] {
            assert!(serde_json::from_str::<ClusterId>(wrong).is_err(), "{wrong}");
        }
    }
}
