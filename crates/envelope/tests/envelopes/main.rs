//! Envelopes from end to end.

#[cfg(test)]
mod exchange;
