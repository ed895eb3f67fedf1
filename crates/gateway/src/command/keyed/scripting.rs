//! Scripts, which are about the keys that they are given.

use super::Keyed;
use crate::command::spec::{Access, COUNTED, Run, Spec};

const fn entry(
    name: &'static str,
    run: Keyed,
    access: Access,
    since: &'static str,
    summary: &'static str,
) -> Spec {
    let categories = &["scripting"];
    let (arity, keys, group, run) = (-3, COUNTED, "scripting", Run::Keyed(run));
    Spec { name, arity, keys, access, categories, summary, since, group, run }
}

pub(super) static TABLE: &[Spec] = &[
    entry(
        "eval",
        Keyed::Eval,
        Access::Write,
        "2.6.0",
        "Runs a script in Lua on keys with the same tag, all of it at one instant.",
    ),
    entry("eval_ro", Keyed::EvalRo, Access::Read, "7.0.0", "Runs a script that changes nothing."),
    entry(
        "evalsha",
        Keyed::EvalSha,
        Access::Write,
        "2.6.0",
        "Runs a script that the gateway knows, by the SHA-1 of its text.",
    ),
    entry(
        "evalsha_ro",
        Keyed::EvalShaRo,
        Access::Read,
        "7.0.0",
        "Runs a script that the gateway knows and that changes nothing.",
    ),
];
