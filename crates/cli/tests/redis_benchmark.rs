//! Compares `cachedyno redis-benchmark` with the original on real servers: same arguments, same
//! standard output except for the numbers, same data in the database.

#[cfg(test)]
mod redis_benchmark {
    mod cluster;
    mod common;
    mod data;
    mod endings;
    mod existing;
    mod faults;
    mod fleet;
    mod form;
    mod guide;
    mod keep_alive;
    #[path = "../program/common/memory.rs"]
    mod memory;
    mod remarks;
    mod tls;
}
