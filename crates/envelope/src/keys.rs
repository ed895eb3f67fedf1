//! Keys, the periods for which they are used, and the secret that all of them follow from.

use crate::pass::PassNumber;
use crate::tags::CookieKey;
use hmac::{Hmac, Mac as _};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use siphasher::sip128::{Hasher128 as _, SipHasher24};
use std::fmt;
use std::hash::Hasher as _;
use std::time::Duration;

/// 16 bytes that make tags, or further keys.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Key(#[serde(with = "as_hex")] pub [u8; 16]);

impl Key {
    /// The key that follows from this one for `whose`. Who has that one learns nothing of this.
    #[must_use]
    pub fn derive(&self, whose: u64) -> Self {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(&whose.to_be_bytes());
        Self(hasher.finish128().as_bytes())
    }
}

/// It is not for logs.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// What keys are derived for that is no pass: numbers that no pass has.
pub(crate) const MEMBERS: u64 = u64::MAX;
pub(crate) const COOKIES: u64 = u64::MAX - 1;

/// The number of a period: how often its length has passed since the Unix epoch, by the clock of
/// the cluster.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Period(pub u64);

impl Period {
    /// How long a period lasts. Packets of three are taken, so none is for as long as outcomes are
    /// remembered (`SESSION_IDLE_SECS`): whoever sends a recorded write again finds its outcome.
    pub const LEN: Duration = Duration::from_secs(180);

    /// The one at this time of the cluster, in Unix milliseconds.
    #[must_use]
    pub fn at(unix_ms: u64) -> Self {
        Self(unix_ms / Self::LEN_MS)
    }

    /// How long it still is until the next one begins, at this time in Unix milliseconds.
    #[must_use]
    pub fn left_at(unix_ms: u64) -> Duration {
        Duration::from_millis(Self::LEN_MS - unix_ms % Self::LEN_MS)
    }

    /// How long it is until it begins, at this time in Unix milliseconds.
    #[must_use]
    pub fn begins_in(self, unix_ms: u64) -> Duration {
        let begins = self.0.saturating_mul(Self::LEN_MS);
        Duration::from_millis(begins.saturating_sub(unix_ms))
    }

    /// As envelopes name it.
    #[must_use]
    pub fn byte(self) -> u8 {
        (self.0 & 0xff) as u8
    }

    const LEN_MS: u64 = Self::LEN.as_secs() * 1_000;
}

const _: () = assert!(3 * Period::LEN.as_secs() < wire::SESSION_IDLE_SECS as u64);

/// Where the keys of all periods come from. Only controllers have it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; Secret::LEN]);

impl Secret {
    /// Bytes of it.
    pub const LEN: usize = 32;

    /// Its bytes, for the file that controllers have it from.
    #[must_use]
    pub fn bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }

    /// A secret of these bytes, which must be drawn at random.
    #[must_use]
    pub fn new(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// What a member needs of the period before this one, of this one and of the next. Only who
    /// writes and reads what is in packets needs the keys of end tags.
    #[must_use]
    pub fn key_set(&self, current: Period, with_ends: bool) -> KeySet {
        key_set(current, with_ends, |_| self)
    }

    fn keys(&self, period: Period, with_ends: bool) -> PeriodKeys {
        let number = period.0.to_be_bytes();
        let end = with_ends.then(|| self.key(&[b"end", &number]));
        PeriodKeys { period, edge: self.key(&[b"edge", &number]), end }
    }

    fn ticket(&self, pass: PassNumber, whose: &str) -> Key {
        self.key(&[b"ticket", &pass.0.to_be_bytes(), whose.as_bytes()])
    }

    fn key(&self, of: &[&[u8]]) -> Key {
        let mut mac: Hmac<Sha256> =
            Hmac::new_from_slice(&self.0).expect("a key for HMAC may have any length");
        of.iter().for_each(|part| mac.update(part));
        let bytes = mac.finalize().into_bytes();
        Key(*bytes.first_chunk().expect("a SHA-256 is longer"))
    }
}

fn key_set<'a>(current: Period, with_ends: bool, secret: impl Fn(Period) -> &'a Secret) -> KeySet {
    let of = |number| {
        let period = Period(number);
        secret(period).keys(period, with_ends)
    };
    let first = current.0.saturating_sub(1);
    KeySet { current, periods: [of(first), of(first + 1), of(first + 2)] }
}

/// The secrets of controllers: each holds from a period on, until the next one does. So a secret
/// can be replaced while packets are under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secrets {
    first: Secret,
    later: Vec<(Period, Secret)>,
}

impl Secrets {
    /// One secret, for all periods.
    #[must_use]
    pub fn new(first: Secret) -> Self {
        Self { first, later: Vec::new() }
    }

    /// Another secret holds from this period on.
    pub fn replace(&mut self, from: Period, secret: Secret) {
        self.later.retain(|(other, _)| *other < from);
        self.later.push((from, secret));
    }

    /// Forgets those that hold no more in this period, nor in the one before.
    pub fn forget_before(&mut self, current: Period) {
        while let Some((from, _)) = self.later.first()
            && from.0 < current.0
        {
            self.first = self.later.remove(0).1;
        }
    }

    /// What each period has, the first secret with none.
    pub fn iter(&self) -> impl Iterator<Item = (Option<Period>, &Secret)> {
        let later = self.later.iter().map(|(from, secret)| (Some(*from), secret));
        std::iter::once((None, &self.first)).chain(later)
    }

    /// As [`Secret::key_set`].
    #[must_use]
    pub fn key_set(&self, current: Period, with_ends: bool) -> KeySet {
        key_set(current, with_ends, |period| self.of(period))
    }

    /// A number that tells apart what goes with keys of this secret, and says nothing of it.
    #[must_use]
    pub fn number(&self, of: &[u8]) -> u64 {
        let Key(bytes) = self.first.key(&[b"number", of]);
        u64::from_be_bytes(*bytes.first_chunk().expect("a key is longer"))
    }

    /// Shows, when a pass is renewed, to whom it was given.
    #[must_use]
    pub fn ticket(&self, pass: PassNumber, whose: &str) -> Key {
        let newest = self.later.last().map_or(&self.first, |(_, secret)| secret);
        newest.ticket(pass, whose)
    }

    /// Whether this ticket is of that pass and was given to this one.
    #[must_use]
    pub fn is_ticket(&self, ticket: Key, pass: PassNumber, whose: &str) -> bool {
        self.iter().any(|(_, secret)| secret.ticket(pass, whose) == ticket)
    }

    fn of(&self, period: Period) -> &Secret {
        let held = self.later.iter().rev().find(|(from, _)| *from <= period);
        held.map_or(&self.first, |(_, secret)| secret)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// The keys of one period that all others of it are derived from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeriodKeys {
    /// Which.
    pub period: Period,
    /// For edge tags and cookies.
    pub edge: Key,
    /// For end tags; a switch has none.
    pub end: Option<Key>,
}

impl PeriodKeys {
    /// The keys of a client in this period; only who has both can make a pass of them.
    #[must_use]
    pub fn of_client(&self, pass: PassNumber) -> Option<ClientKeys> {
        let (period, edge) = (self.period, self.edge.derive(pass.0));
        Some(ClientKeys { period, edge, end: self.end?.derive(pass.0) })
    }
}

/// The keys of the periods whose packets are taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeySet {
    /// The period whose keys what goes out is sealed with.
    pub current: Period,
    /// The one before, this one, the next.
    pub periods: [PeriodKeys; 3],
}

impl KeySet {
    /// Those that an envelope names by this byte.
    #[must_use]
    pub fn named(&self, byte: u8) -> Option<&PeriodKeys> {
        self.periods.iter().find(|it| it.period.byte() == byte)
    }

    /// Those of the current period.
    #[must_use]
    pub fn current(&self) -> Option<&PeriodKeys> {
        self.named(self.current.byte())
    }
}

/// What follows from a period's keys for edge tags, as a member uses it.
#[derive(Clone, Copy, Debug)]
pub struct EdgeKeys {
    /// What clients' keys are derived from.
    pub clients: Key,
    /// Members have one between them.
    pub members: Key,
    /// For cookies.
    pub cookies: CookieKey,
}

impl EdgeKeys {
    /// Derives them.
    #[must_use]
    pub fn of(keys: &PeriodKeys) -> Self {
        let clients = keys.edge;
        let cookies = CookieKey(clients.derive(COOKIES));
        Self { clients, members: clients.derive(MEMBERS), cookies }
    }
}

/// The keys of a client in one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientKeys {
    /// Which.
    pub period: Period,
    /// For edge tags.
    pub edge: Key,
    /// For end tags.
    pub end: Key,
}

mod as_hex {
    use data_encoding::HEXLOWER_PERMISSIVE as HEX;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8; 16], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&HEX.encode(bytes))
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<[u8; 16], D::Error> {
        let text = String::deserialize(from)?;
        let bytes = HEX.decode(text.as_bytes()).ok();
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.ok_or_else(|| de::Error::custom("a key has 32 hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret() -> Secret {
        Secret::new(std::array::from_fn(|i| u8::try_from(i).unwrap()))
    }

    #[test]
    fn all_keys_differ_and_follow_from_the_secret_alone() {
        let set = secret().key_set(Period(7), true);
        let mut keys: Vec<[u8; 16]> = Vec::new();
        for it in &set.periods {
            let (end, edge) = (it.end.unwrap(), EdgeKeys::of(it));
            keys.extend([
                it.edge.0,
                edge.members.0,
                edge.cookies.0.0,
                end.0,
                end.derive(MEMBERS).0,
            ]);
            for pass in [1, 2] {
                let client = it.of_client(PassNumber(pass)).unwrap();
                keys.extend([client.edge.0, client.end.0]);
            }
        }
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!((keys.len(), count), (27, 27));
        assert_eq!(secret().key_set(Period(7), true), set);
        assert_ne!(Secret::new([1; 32]).key_set(Period(7), true), set);
        let of_switch = secret().key_set(Period(7), false);
        assert!(of_switch.periods.iter().all(|it| it.end.is_none()));
        assert_eq!(of_switch.periods.map(|it| it.edge), set.periods.map(|it| it.edge));
        assert_eq!(of_switch.periods[1].of_client(PassNumber(1)), None);
    }

    #[test]
    fn a_period_has_the_same_keys_before_and_after_its_time() {
        let (now, later) = (secret().key_set(Period(7), true), secret().key_set(Period(8), true));
        assert_eq!(now.periods[1..], later.periods[..2]);
        assert_eq!(later.named(7), Some(&now.periods[1]));
        assert_eq!((later.named(6), later.current().unwrap().period), (None, Period(8)));
        let far = secret().key_set(Period(0x1_00ff), false);
        assert_eq!(far.named(0).unwrap().period, Period(0x1_0100));
        let first = secret().key_set(Period(0), false);
        assert_eq!(first.current().unwrap().period, Period(0));
    }

    #[test]
    fn keys_are_text_in_json_and_never_shown() {
        let set = secret().key_set(Period(7), true);
        let text = serde_json::to_string(&set).unwrap();
        assert_eq!(serde_json::from_str::<KeySet>(&text).unwrap(), set);
        let hex = data_encoding::HEXLOWER.encode(&set.periods[0].edge.0);
        assert!(text.contains(&hex));
        assert!(!format!("{set:?} {:?}", secret()).contains(&hex));
        assert!(serde_json::from_str::<Key>("\"00\"").is_err());
    }

    #[test]
    fn a_secret_is_replaced_from_a_period_on() {
        let (old, new) = (secret(), Secret::new([1; 32]));
        let mut secrets = Secrets::new(old.clone());
        assert_eq!(secrets.key_set(Period(7), true), old.key_set(Period(7), true));
        let pass = PassNumber(3);
        let ticket = secrets.ticket(pass, "client/ann");
        secrets.replace(Period(9), new.clone());
        // One that never held is replaced.
        secrets.replace(Period(8), new.clone());
        let set = secrets.key_set(Period(7), true);
        assert_eq!(set.periods[..2], old.key_set(Period(7), true).periods[..2]);
        assert_eq!(set.periods[2], new.key_set(Period(7), true).periods[2]);
        assert!(secrets.is_ticket(ticket, pass, "client/ann"));
        assert!(!secrets.is_ticket(ticket, pass, "client/bob"));
        assert!(!secrets.is_ticket(ticket, PassNumber(4), "client/ann"));
        let newer = secrets.ticket(pass, "client/ann");
        secrets.forget_before(Period(8));
        assert_eq!(secrets.iter().count(), 2);
        secrets.forget_before(Period(9));
        assert_eq!(secrets, Secrets::new(new));
        assert!(secrets.is_ticket(newer, pass, "client/ann"));
        assert!(!secrets.is_ticket(ticket, pass, "client/ann"));
    }

    #[test]
    fn periods_follow_each_other() {
        let len = u64::try_from(Period::LEN.as_millis()).unwrap();
        assert_eq!([0, len - 1, len].map(Period::at), [Period(0), Period(0), Period(1)]);
        assert_eq!(Period::left_at(len + 1), Period::LEN - Duration::from_millis(1));
    }
}
