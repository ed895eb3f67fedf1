//! What `spec/layout.toml` says to programs that show packets: which overlays a packet has, how its
//! numbers are written, and what its payload consists of.

use super::{Field, Layout};
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// What must hold of a header; what is not named may be anything.
#[derive(Clone, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct When {
    /// One of these operations; `*Reply` is all that end so.
    pub(crate) ops: Vec<String>,
    /// One of these outcomes.
    pub(crate) codes: Vec<String>,
    /// This outcome or a higher one.
    pub(crate) codes_from: u8,
    /// All of these hop flags.
    pub(crate) hop: Vec<String>,
    /// None of these hop flags.
    pub(crate) hop_clear: Vec<String>,
    /// All of these flags.
    pub(crate) flags: Vec<String>,
    /// These fields are 0.
    pub(crate) zero: Vec<String>,
    /// Whether the datagram is on its last way, to the reply address.
    pub(crate) delivered: Option<bool>,
}

/// How a field is written for people.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Shown {
    Hex,
    Signed,
    Address,
    Ids,
}

/// Ids after those that are counted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rest {
    pub(crate) name: String,
    pub(crate) when: Vec<When>,
}

/// What follows the headers for which one of the conditions holds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Payload {
    pub(crate) when: Vec<When>,
    pub(crate) parts: Vec<Part>,
}

/// A piece of a payload: of `body`, `bytes` and `each` there is one.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Part {
    pub(crate) body: Option<String>,
    pub(crate) bytes: Option<String>,
    /// Of bytes: the field that says how many they are; without it all that are left.
    pub(crate) len: Option<String>,
    /// Of bytes: the list that says how many there are of each.
    pub(crate) lens: Option<String>,
    pub(crate) each: Vec<String>,
    /// Of a list: the field that says how long it is; without it as long as there are bytes.
    pub(crate) times: Option<String>,
    pub(crate) when: Vec<When>,
    /// One field of a body, and one of the values that it has then.
    #[serde(rename = "where")]
    pub(crate) having: BTreeMap<String, Vec<String>>,
    /// The same, and those that it does not have.
    pub(crate) unless: BTreeMap<String, Vec<String>>,
}

impl Layout {
    /// The numbers of these values of a family; `*End` stands for all that end so.
    pub(crate) fn numbers(&self, family: &str, names: &[String]) -> Result<Vec<u8>> {
        let family = self.families.iter().find(|f| f.name == family);
        let values = &family.context("no such family")?.values;
        let mut numbers = Vec::new();
        for name in names {
            let matches = |it: &str| match name.strip_prefix('*') {
                Some(end) => it.ends_with(end),
                None => it == name,
            };
            let before = numbers.len();
            numbers.extend(values.iter().filter(|v| matches(&v.name)).map(|v| v.value));
            ensure!(numbers.len() > before, "nothing is called {name}");
        }
        Ok(numbers)
    }

    /// These flags of a set, as bits of a byte.
    pub(crate) fn mask(&self, flags: &str, names: &[String]) -> Result<u8> {
        let set = self.flags.iter().find(|f| f.name == flags).context("no such flags")?;
        names.iter().try_fold(0, |mask, name| {
            let flag = set.values.iter().find(|f| f.name == *name);
            let flag = flag.with_context(|| format!("no {flags} is called {name}"))?;
            Ok(mask | 1 << flag.bit)
        })
    }

    /// The header field of this name.
    pub(crate) fn field(&self, name: &str) -> Result<&Field> {
        let field = self.fields.iter().find(|f| f.name == name);
        field.with_context(|| format!("no field is called {name}"))
    }

    /// Fields of bodies, and the values that are named of each, as numbers.
    pub(crate) fn values<'n>(
        &self,
        of: &'n BTreeMap<String, Vec<String>>,
    ) -> Result<Vec<(&'n str, Vec<u8>)>> {
        let numbers = |(name, values): (&'n String, &Vec<String>)| {
            let mut fields = self.bodies.iter().flat_map(|body| &body.fields);
            let family = fields.find(|it| it.name == *name).and_then(|it| it.family.as_deref());
            let family = family.with_context(|| format!("{name} is no field with a family"))?;
            Ok((name.as_str(), self.numbers(family, values)?))
        };
        of.iter().map(numbers).collect()
    }

    /// Whether some field has its names from this family.
    pub(crate) fn is_shown(&self, family: &str) -> bool {
        let in_bodies = self.bodies.iter().flat_map(|body| &body.fields).map(|it| &it.family);
        let mut all = in_bodies.chain(self.fields.iter().map(|it| &it.family));
        all.any(|it| it.as_deref() == Some(family))
    }

    /// The header fields in the order of their bytes, overlays behind what they lie over.
    pub(crate) fn fields_in_order(&self) -> Vec<&Field> {
        let mut fields: Vec<&Field> = self.fields.iter().collect();
        fields.sort_by_key(|field| (field.at, field.overlay));
        fields
    }

    /// Nothing names what is not there, overlays exclude each other, and no operation is forgotten.
    pub(super) fn check_shown(&self) -> Result<()> {
        for field in &self.fields {
            let named = || format!("field {}", field.name);
            ensure!(field.overlay != field.when.is_empty(), "{}: an overlay has `when`", named());
            field.when.iter().try_for_each(|when| self.check_when(when)).with_context(named)?;
            if let Some(family) = &field.family {
                self.numbers(family, &[]).with_context(named)?;
            }
            if let Some(bits) = &field.bits {
                self.mask(bits, &[]).with_context(named)?;
            }
        }
        let overlays = || self.fields.iter().filter(|f| f.overlay);
        for (n, a) in overlays().enumerate() {
            for b in overlays().skip(n + 1) {
                let apart = a.at + a.size <= b.at || b.at + b.size <= a.at;
                let mut pairs = a.when.iter().flat_map(|x| b.when.iter().map(move |y| (x, y)));
                let exclude = apart || pairs.all(|(x, y)| self.exclude(x, y));
                ensure!(exclude, "{} and {} may be there at once", a.name, b.name);
            }
        }
        self.check_flags()?;
        self.check_payloads()
    }

    fn check_when(&self, when: &When) -> Result<()> {
        self.numbers("op", &when.ops)?;
        self.numbers("code", &when.codes)?;
        self.mask("hop_flag", &when.hop)?;
        self.mask("hop_flag", &when.hop_clear)?;
        self.mask("flag", &when.flags)?;
        when.zero.iter().try_for_each(|name| self.field(name).map(drop))
    }

    /// Whether no header fulfils both.
    fn exclude(&self, a: &When, b: &When) -> bool {
        let apart = |family, a: &[String], b: &[String]| {
            let set = |names| BTreeSet::from_iter(self.numbers(family, names).unwrap_or_default());
            !a.is_empty() && !b.is_empty() && set(a).is_disjoint(&set(b))
        };
        let clears = |a: &When, b: &When| a.hop.iter().any(|flag| b.hop_clear.contains(flag));
        let opposite = a.delivered.is_some_and(|it| b.delivered == Some(!it));
        apart("op", &a.ops, &b.ops)
            || apart("code", &a.codes, &b.codes)
            || clears(a, b)
            || clears(b, a)
            || opposite
    }

    /// No operation has two flags of one bit; a flag that names no operation is of all.
    fn check_flags(&self) -> Result<()> {
        let every = self.families.iter().find(|family| family.name == "op");
        let every: Vec<_> = every.iter().flat_map(|it| &it.values).map(|op| op.value).collect();
        let mut taken = BTreeMap::new();
        for set in &self.flags {
            for flag in &set.values {
                let named = self.numbers("op", &flag.ops).with_context(|| flag.name.clone())?;
                for op in if named.is_empty() { every.clone() } else { named } {
                    let other = taken.insert((&set.name, flag.bit, op), &flag.name);
                    ensure!(other.is_none(), "an operation has {} and {other:?}", flag.name);
                }
            }
        }
        Ok(())
    }

    fn check_payloads(&self) -> Result<()> {
        let mut told = BTreeSet::new();
        for payload in &self.payloads {
            for when in &payload.when {
                self.check_when(when)?;
                if when.codes.is_empty() && when.codes_from == 0 {
                    told.extend(self.numbers("op", &when.ops)?);
                }
            }
            payload.parts.iter().try_for_each(|part| self.check_part(part))?;
        }
        for body in &self.bodies {
            body.tail.iter().try_for_each(|when| self.check_when(when))?;
            body.then.iter().try_for_each(|part| self.check_part(part))?;
        }
        let ops = self.families.iter().find(|f| f.name == "op").map_or(&[][..], |f| &f.values);
        for op in ops {
            ensure!(told.contains(&op.value), "no [[payload]] says what {} carries", op.name);
        }
        Ok(())
    }

    fn check_part(&self, part: &Part) -> Result<()> {
        let kinds = [part.body.is_some(), part.bytes.is_some(), !part.each.is_empty()];
        let one = kinds.iter().filter(|it| **it).count() == 1;
        ensure!(one, "a part is a `body`, `bytes`, or a list of `each`");
        for name in part.body.iter().chain(&part.lens).chain(&part.each) {
            let known = self.bodies.iter().any(|body| body.name == *name);
            ensure!(known, "no body is called {name}");
        }
        part.when.iter().try_for_each(|when| self.check_when(when))?;
        self.values(&part.having)?;
        self.values(&part.unless)?;
        let body_fields = self.bodies.iter().flat_map(|body| &body.fields).map(|f| &f.name);
        let names: BTreeSet<&String> =
            body_fields.chain(self.fields.iter().map(|f| &f.name)).collect();
        for name in part.len.iter().chain(&part.times) {
            ensure!(names.contains(name), "no field is called {name}");
        }
        Ok(())
    }
}
