//! Whether content addresses lead to the nodes and caches that are on this machine.

use super::finding::Finding;
use cluster::ContentRouting;
use wire::{AddressPrefix, ContentClass};

/// Classes whose addresses are this machine's own, as far as that was found out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Owned(pub(crate) Vec<(ContentClass, Result<bool, String>)>);

const CHECK: &str = "content addresses";

/// What to do so that these are the machine's own.
fn remedy(prefix: AddressPrefix) -> String {
    format!("ip -6 route add local {prefix} dev lo")
}

/// A node takes all of them.
pub(crate) fn check_node(content: &ContentRouting, owned: &Owned) -> Finding {
    let lacks = |it: &&(ContentClass, Result<bool, String>)| it.1 == Ok(false);
    if let Some(why) = unknown(owned) {
        return Finding::warning(CHECK, why, "look: ip -6 route show table local");
    }
    match owned.0.iter().find(lacks) {
        None => Finding::ok(CHECK, format!("all of {} are this machine's own", content.prefix)),
        Some((class, _)) => {
            let what = format!("those of class {} are not this machine's own", class.name());
            Finding::problem(CHECK, what, remedy(content.prefix.addresses()))
        }
    }
}

/// A cache takes those of reads alone: what it took of the others it could not send on.
pub(crate) fn check_cache(content: &ContentRouting, owned: &Owned) -> Finding {
    let prefix = content.prefix.class(ContentClass::Read);
    let wrong = |it: &&(ContentClass, Result<bool, String>)| it.1 == Ok(it.0 != ContentClass::Read);
    if let Some(why) = unknown(owned) {
        return Finding::warning(CHECK, why, "look: ip -6 route show table local");
    }
    match owned.0.iter().find(wrong) {
        None => Finding::ok(CHECK, format!("{prefix}, and no others, are this machine's own")),
        Some((ContentClass::Read, _)) => {
            let what = "those of class read are not this machine's own".to_owned();
            Finding::problem(CHECK, what, remedy(prefix))
        }
        Some((class, _)) => {
            let what = format!("those of class {} are this machine's own", class.name());
            let all = content.prefix;
            let only = format!(
                "run no node here, and: ip -6 route del local {all} dev lo; {}",
                remedy(prefix)
            );
            Finding::problem(CHECK, what, only)
        }
    }
}

/// Why it is not known.
fn unknown(owned: &Owned) -> Option<String> {
    owned.0.iter().find_map(|(_, it)| it.as_ref().err().cloned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Grade;

    fn content() -> ContentRouting {
        ContentRouting { prefix: "fd00:6b77:1::/48".parse().unwrap(), port: 7800 }
    }

    fn owned(classes: [bool; 3]) -> Owned {
        let each = ContentClass::ALL.into_iter().zip(classes.map(Ok));
        Owned(each.collect())
    }

    #[test]
    fn a_node_needs_all_of_them() {
        assert_eq!(check_node(&content(), &owned([true; 3])).grade, Grade::Ok);
        let lacks = check_node(&content(), &owned([true, true, false]));
        let remedy = lacks.remedy.unwrap();
        assert_eq!(remedy, "ip -6 route add local fd00:6b77:1::/48 dev lo");
        assert_eq!(lacks.grade, Grade::Problem);
    }

    #[test]
    fn a_cache_needs_those_of_reads_and_no_others() {
        assert_eq!(check_cache(&content(), &owned([true, false, false])).grade, Grade::Ok);
        let none = check_cache(&content(), &owned([false; 3]));
        let remedy = none.remedy.unwrap();
        assert_eq!(remedy, "ip -6 route add local fd00:6b77:1:1000::/52 dev lo");
        let all = check_cache(&content(), &owned([true; 3]));
        assert_eq!(all.grade, Grade::Problem);
        assert!(all.found.contains("read_at_home"), "{}", all.found);
    }

    #[test]
    fn what_is_not_known_is_no_problem() {
        let unknown = Owned(vec![(ContentClass::Read, Err("no ip".into()))]);
        assert_eq!(check_node(&content(), &unknown).grade, Grade::Warning);
        assert_eq!(check_cache(&content(), &unknown).grade, Grade::Warning);
    }
}
