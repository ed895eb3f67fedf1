//! A cluster whose machines' clocks are set. The clock of a process is set for all of its threads,
//! so this is a program of its own.

#[cfg(test)]
mod steps;
