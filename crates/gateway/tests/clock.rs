//! A gateway and a cluster whose machines do not agree on what time it is.

#[cfg(test)]
mod clock {
    mod locks;
}
#[cfg(test)]
mod setup;
