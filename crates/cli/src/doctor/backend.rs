//! Checks of what nodes keep their values in, where others made it.

use super::finding::Finding;
use runtime::store::{BackendUrl, backend};

/// All checks.
pub(crate) fn check(url: &BackendUrl) -> Vec<Finding> {
    let finding = match backend::inspect(url) {
        Ok(backend::Fitness { found, remedy: None }) => Finding::ok("backend", found),
        Ok(backend::Fitness { found, remedy: Some(todo) }) => {
            Finding::problem("backend", found, todo)
        }
        Err(why) => Finding::problem("backend", why.to_string(), "docs/operating/backends.md"),
    };
    vec![finding]
}
