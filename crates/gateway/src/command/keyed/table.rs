//! The table of commands about keys.

use super::{Keyed, generic, keyspace, scripting, strings};
use crate::command::spec::{Run, Spec};

impl Keyed {
    /// Its name, as the table has it.
    pub(crate) fn name(self) -> &'static str {
        self.spec().name
    }

    /// What the table says of it.
    pub(crate) fn spec(self) -> &'static Spec {
        let named = all().find(|spec| spec.run == Run::Keyed(self));
        named.expect("every command is in the table")
    }
}

/// Commands about keys.
pub(in crate::command) fn all() -> impl Iterator<Item = &'static Spec> {
    let of_keys = strings::TABLE.iter().chain(generic::TABLE).chain(keyspace::TABLE);
    of_keys.chain(scripting::TABLE)
}
