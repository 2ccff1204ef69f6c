//! `cachedyno redis-benchmark` beside the real one: the same arguments, real servers, and standard
//! output that is the same but for its numbers. What the two leave in the database is compared too.

#[cfg(test)]
mod redis_benchmark {
    mod cluster;
    mod common;
    mod data;
    mod endings;
    mod existing;
    mod faults;
    mod form;
    mod guide;
    mod keep_alive;
    mod remarks;
    mod tls;
}
