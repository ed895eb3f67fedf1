//! A gateway and a cluster whose machines do not agree on what time it is.

#[cfg(test)]
mod locks;
#[cfg(test)]
#[path = "../commands/setup.rs"]
mod setup;
