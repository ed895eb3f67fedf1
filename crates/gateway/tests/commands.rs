//! What commands do, carried out on a whole cluster in this process: beside a real Redis server,
//! and many at once.

#[cfg(test)]
mod commands {
    mod concurrency;
    mod differential;
    mod draw;
    mod history;
    mod keyspace;
    mod long;
    mod meanings;
    mod redis;
    mod scripts;
    mod table;
    mod transactions;
}
#[cfg(test)]
mod setup;
