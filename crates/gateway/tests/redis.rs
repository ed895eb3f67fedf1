//! A gateway before a cluster in this process, driven as clients drive it: with bytes.

#[cfg(test)]
mod redis {
    mod again;
    mod crowds;
    mod databases;
    mod handshakes;
    mod hostile;
    mod observed;
    mod pipeline;
    mod programs;
    mod scripts;
    mod server;
    mod slots;
    mod transactions;
    mod users;
}
#[cfg(test)]
mod raw;
