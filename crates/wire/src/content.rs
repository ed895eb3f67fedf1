//! Content addresses (SwitchKV, section 3.1): a request is sent to an IPv6 address that says what
//! it wants of which match value, so that whoever routes by addresses routes by keys.
//!
//! ```text
//!  0               48      52          64                                             128
//!  | service prefix | class | keyspace  | first bits of the match value                 |
//! ```
//!
//! Clients make the address of a key here, and whoever fills tables those of partitions and keys.

use crate::layout::{
    CONTENT_CLASS_BITS, CONTENT_KEYSPACE_BITS, CONTENT_MATCH_BITS, CONTENT_PREFIX_BITS,
    ContentClass, Header, Op, flag, hop_flag,
};
use core::fmt;
use core::net::Ipv6Addr;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// Where the parts of an address end, counted from its last bit.
const KEYSPACE_SHIFT: usize = CONTENT_MATCH_BITS;
/// The same for the class.
const CLASS_SHIFT: usize = KEYSPACE_SHIFT + CONTENT_KEYSPACE_BITS;
/// The same for the service prefix.
const PREFIX_SHIFT: usize = CLASS_SHIFT + CONTENT_CLASS_BITS;
const _: () = assert!(PREFIX_SHIFT + CONTENT_PREFIX_BITS == 128, "an address has 128 bits");

/// Bits of a match value that stand in no address.
const MATCH_SHIFT: usize = 128 - CONTENT_MATCH_BITS;

/// The addresses of a cluster: all that begin with the same [`CONTENT_PREFIX_BITS`] bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServicePrefix(u128);

impl ServicePrefix {
    /// The prefix that begins with this address. `None` if a later bit is set, or if no unicast
    /// address can begin so.
    #[must_use]
    pub fn new(addr: Ipv6Addr) -> Option<Self> {
        let bits = u128::from(addr);
        let whole = bits & !(u128::MAX << PREFIX_SHIFT) == 0;
        let unicast = bits != 0 && !addr.is_multicast() && !addr.is_unicast_link_local();
        (whole && unicast).then_some(Self(bits))
    }

    /// The first 64 bits of its addresses, without class and keyspace.
    #[must_use]
    pub fn bits(self) -> u64 {
        match_bits(self.0)
    }

    /// The prefix with these first bits of addresses, as of [`new`](Self::new).
    #[must_use]
    pub fn of_bits(bits: u64) -> Option<Self> {
        Self::new(Ipv6Addr::from(u128::from(bits) << MATCH_SHIFT))
    }

    /// All of its addresses.
    #[must_use]
    pub fn addresses(self) -> AddressPrefix {
        let len = u8::try_from(CONTENT_PREFIX_BITS).expect("less than 128");
        AddressPrefix { addr: Ipv6Addr::from(self.0), len }
    }

    /// All of its addresses of this class.
    #[must_use]
    pub fn class(self, class: ContentClass) -> AddressPrefix {
        let addr = Ipv6Addr::from(self.0 | u128::from(class as u8) << CLASS_SHIFT);
        let len = u8::try_from(CONTENT_PREFIX_BITS + CONTENT_CLASS_BITS).expect("less than 128");
        AddressPrefix { addr, len }
    }

    /// The addresses of a keyspace. `None` if its id has more than [`CONTENT_KEYSPACE_BITS`] bits:
    /// its keys have no addresses.
    #[must_use]
    pub fn keyspace(self, keyspace: u16) -> Option<KeyspaceAddresses> {
        let fits = usize::from(keyspace) >> CONTENT_KEYSPACE_BITS == 0;
        fits.then_some(KeyspaceAddresses { prefix: self, keyspace })
    }

    /// What an address of this prefix says. `None` if it is none, or of no class.
    #[must_use]
    pub fn read(self, addr: Ipv6Addr) -> Option<ContentAddress> {
        let bits = u128::from(addr);
        let class = ContentClass::from_wire(low_bits(bits >> CLASS_SHIFT, CONTENT_CLASS_BITS))?;
        self.addresses().holds(addr).then_some(ContentAddress {
            class,
            keyspace: low_bits(bits >> KEYSPACE_SHIFT, CONTENT_KEYSPACE_BITS),
            match_bits: low_bits(bits, CONTENT_MATCH_BITS),
        })
    }
}

/// The bits of a match value that stand in addresses.
#[must_use]
pub fn match_bits(match_value: u128) -> u64 {
    u64::try_from(match_value >> MATCH_SHIFT).expect("so many bits fit")
}

/// The lowest `count` of these bits.
fn low_bits<T: TryFrom<u128>>(bits: u128, count: usize) -> T
where
    T::Error: fmt::Debug,
{
    T::try_from(bits & ((1 << count) - 1)).expect("so many bits fit")
}

impl ContentClass {
    /// That of a request with these flags, or of its reply. `None` for what is not about one key
    /// alone, and goes to no content address.
    #[must_use]
    pub const fn of(op: Op, flags: u8) -> Option<Self> {
        match op {
            Op::Get | Op::GetReply if flags & flag::AT_HOME != 0 => Some(Self::ReadAtHome),
            Op::Get | Op::GetReply => Some(Self::Read),
            Op::Put | Op::Del | Op::Cas | Op::Incr | Op::Batch | Op::Goodbye => Some(Self::Write),
            Op::PutReply | Op::DelReply | Op::CasReply | Op::IncrReply | Op::BatchReply => {
                Some(Self::Write)
            }
            _ => None,
        }
    }

    /// That of the address that this request was sent to, or that this reply comes from. `None` if
    /// that is no content address.
    #[must_use]
    pub const fn of_header(op: Op, header: &Header) -> Option<Self> {
        if header.hop_flags & CONTENT_HOP_FLAGS == CONTENT_HOP_FLAGS {
            Self::of(op, header.flags)
        } else {
            None
        }
    }
}

/// The hop flags of requests to content addresses, and of their replies: nobody has stamped them,
/// and they pass no switch.
pub const CONTENT_HOP_FLAGS: u8 = hop_flag::DIRECT | hop_flag::BY_ADDRESS;

/// What a content address says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentAddress {
    /// What is wanted.
    pub class: ContentClass,
    /// Id of the keyspace.
    pub keyspace: u16,
    /// First bits of the match value.
    pub match_bits: u64,
}

/// The addresses of one keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyspaceAddresses {
    prefix: ServicePrefix,
    keyspace: u16,
}

impl KeyspaceAddresses {
    /// Where a request for a key of this match value goes.
    #[must_use]
    pub fn of_key(self, class: ContentClass, match_value: u128) -> Ipv6Addr {
        self.of_bits(class, match_bits(match_value))
    }

    /// Where a request for a key goes whose match value begins with these [`match_bits`].
    #[must_use]
    pub fn of_bits(self, class: ContentClass, match_bits: u64) -> Ipv6Addr {
        let class = u128::from(class as u8) << CLASS_SHIFT;
        let keyspace = u128::from(self.keyspace) << KEYSPACE_SHIFT;
        Ipv6Addr::from(self.prefix.0 | class | keyspace | u128::from(match_bits))
    }

    /// The same as a prefix of all 128 bits: what a rule for this key alone matches. Keys of one
    /// tag share it.
    #[must_use]
    pub fn rule_of_key(self, class: ContentClass, match_value: u128) -> AddressPrefix {
        AddressPrefix { addr: self.of_key(class, match_value), len: 128 }
    }

    /// The addresses of all keys from match value `first` to `last`, inclusive. `None` if they are
    /// no prefix: their number is no power of two, it does not divide `first`, or a bound lies
    /// between match values that have the same address.
    #[must_use]
    pub fn of_interval(
        self,
        class: ContentClass,
        first: u128,
        last: u128,
    ) -> Option<AddressPrefix> {
        let (start, end) = (match_bits(first), match_bits(last));
        let whole = first == u128::from(start) << MATCH_SHIFT
            && last == u128::from(end) << MATCH_SHIFT | ((1 << MATCH_SHIFT) - 1);
        let varying = start ^ end;
        let is_prefix = varying & varying.wrapping_add(1) == 0 && start & varying == 0;
        let same = usize::try_from(varying.leading_zeros()).ok()?;
        let len = u8::try_from(128 - CONTENT_MATCH_BITS + same).ok()?;
        (whole && is_prefix).then_some(AddressPrefix { addr: self.of_key(class, first), len })
    }
}

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressPrefix {
    /// The first of them: all bits behind the prefix are 0.
    pub addr: Ipv6Addr,
    /// How many bits are the same, 0 to 128.
    pub len: u8,
}

impl AddressPrefix {
    /// Whether this is one of the addresses.
    #[must_use]
    pub fn holds(self, addr: Ipv6Addr) -> bool {
        let differ = u128::from(self.addr) ^ u128::from(addr);
        differ.leading_zeros() >= u32::from(self.len)
    }
}

impl fmt::Display for AddressPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr, self.len)
    }
}

impl fmt::Display for ServicePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.addresses().fmt(f)
    }
}

/// A text is no service prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoServicePrefix;

impl fmt::Display for NoServicePrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a service prefix is the first {CONTENT_PREFIX_BITS} bits of unicast IPv6 ")?;
        f.write_str("addresses, like fd00:6b77:1::/48")
    }
}

impl core::error::Error for NoServicePrefix {}

impl FromStr for ServicePrefix {
    type Err = NoServicePrefix;

    fn from_str(text: &str) -> Result<Self, NoServicePrefix> {
        let (addr, len) = text.split_once('/').ok_or(NoServicePrefix)?;
        let whole = len.parse() == Ok(CONTENT_PREFIX_BITS);
        let addr = addr.parse().ok().filter(|_| whole);
        addr.and_then(Self::new).ok_or(NoServicePrefix)
    }
}

impl Serialize for ServicePrefix {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ServicePrefix {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = alloc::string::String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Vectors {
        prefix: ServicePrefix,
        key: Vec<Key>,
        interval: Vec<Interval>,
        text: Vec<Text>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Key {
        class: String,
        keyspace: u16,
        match_value: String,
        address: Option<Ipv6Addr>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Interval {
        name: String,
        class: String,
        keyspace: u16,
        first: String,
        last: String,
        prefix: Option<String>,
    }

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Text {
        text: String,
        is: bool,
    }

    fn vectors() -> Vectors {
        let text = include_str!("../../../spec/vectors/content/addresses.toml");
        toml::from_str(text).expect("a file of content addresses")
    }

    fn class(name: &str) -> ContentClass {
        ContentClass::ALL.into_iter().find(|it| it.name() == name).expect("a class")
    }

    fn value(hex: &str) -> u128 {
        u128::from_str_radix(hex, 16).expect("hex digits")
    }

    #[test]
    fn addresses_of_keys_are_what_the_vectors_say() {
        let Vectors { prefix, key: keys, .. } = vectors();
        for key in &keys {
            let class = class(&key.class);
            let match_value = value(&key.match_value);
            let addresses = prefix.keyspace(key.keyspace);
            let made = addresses.map(|it| it.of_key(class, match_value));
            assert_eq!(made, key.address, "{}", key.match_value);
            let Some(addr) = made else { continue };
            let match_bits = match_bits(match_value);
            let said = ContentAddress { class, keyspace: key.keyspace, match_bits };
            assert_eq!(prefix.read(addr), Some(said));
        }
        let classes = ContentClass::ALL.map(|class| keys.iter().any(|k| k.class == class.name()));
        assert_eq!(classes, [true; ContentClass::ALL.len()], "each class has a vector");
        assert!(keys.iter().any(|k| k.address.is_none()), "so has a keyspace id that is too large");
    }

    #[test]
    fn prefixes_of_intervals_are_what_the_vectors_say() {
        let Vectors { prefix, interval: intervals, .. } = vectors();
        for it in &intervals {
            let addresses = prefix.keyspace(it.keyspace).expect("small ids");
            let made = addresses.of_interval(class(&it.class), value(&it.first), value(&it.last));
            assert_eq!(made.map(|made| made.to_string()), it.prefix, "{}", it.name);
        }
        assert!(intervals.iter().any(|it| it.prefix.is_none()), "some are no prefix");
    }

    #[test]
    fn texts_are_service_prefixes_as_the_vectors_say() {
        for Text { text, is } in vectors().text {
            let read: Result<ServicePrefix, _> = text.parse();
            assert_eq!(read.is_ok(), is, "{text}");
            assert_eq!(read.map_or(text.clone(), |prefix| prefix.to_string()), text);
        }
    }

    #[test]
    fn what_is_no_content_address_says_nothing() {
        let Vectors { prefix, .. } = vectors();
        let no_class = Ipv6Addr::from(prefix.0 | 1);
        assert_eq!(prefix.read(no_class), None);
        let other = ServicePrefix::new("fd99::".parse().expect("an address")).expect("a prefix");
        let addr = prefix.keyspace(1).expect("a small id").of_key(ContentClass::Read, 7);
        assert_eq!(other.read(addr), None);
    }

    proptest! {
        /// The address of a key is in the prefix of an interval if and only if the key is in it.
        #[test]
        fn a_prefix_holds_the_keys_of_its_interval(
            value: u128, other: u128, len in 0..=64_u32, near: bool,
        ) {
            let addresses = vectors().prefix.keyspace(5).expect("a small id");
            let varying = u128::MAX.checked_shr(len).expect("at most 64");
            let (first, last) = (value & !varying, value | varying);
            let prefix = addresses.of_interval(ContentClass::Write, first, last).expect("a prefix");
            prop_assert_eq!(u32::from(prefix.len), 64 + len);
            let key = if near { (first & !varying) | (other & varying) } else { other };
            let inside = (first..=last).contains(&key);
            prop_assert_eq!(prefix.holds(addresses.of_key(ContentClass::Write, key)), inside);
            prop_assert!(!prefix.holds(addresses.of_key(ContentClass::Read, key)));
        }
    }

    /// All intervals between sixteenths of the space, with bounds that are right or one off.
    #[test]
    fn no_other_interval_is_a_prefix() {
        let addresses = vectors().prefix.keyspace(5).expect("a small id");
        let mut prefixes = 0;
        for (start, end) in (0..16_u128).flat_map(|start| (0..16).map(move |end| (start, end))) {
            let (first, last) = (start << 124, end << 124 | u128::MAX >> 4);
            let bounds =
                [(first, last), (first + 1, last), (first, last - 1), (first | 1 << 63, last)];
            for (nudge, (first, last)) in bounds.into_iter().enumerate() {
                let len = (end + 1).saturating_sub(start);
                let sound = nudge == 0 && len.is_power_of_two() && start % len == 0;
                let made = addresses.of_interval(ContentClass::Read, first, last);
                assert_eq!(made.is_some(), sound, "{first:032x} to {last:032x}");
                prefixes += usize::from(sound);
            }
        }
        assert_eq!(prefixes, 31, "16 sixteenths, 8 eighths, ...");
    }
}
