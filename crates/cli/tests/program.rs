//! The binary `cachedyno` as its users see it: arguments, exit codes, output, records, and what it
//! leaves behind, with real servers.
//!
//! Every test works in a directory of its own; nothing is said about rates, and where only noise
//! decides between VALID and NOT-STEADY both exit codes will do.

#[cfg(test)]
mod program {
    mod alone;
    mod app_cache;
    mod app_cache_memory;
    mod bench;
    mod bench_faults;
    mod bench_loads;
    mod bench_outages;
    mod bench_targets;
    mod calibrate;
    mod commands;
    mod common;
    mod data_set;
    mod existing;
    mod existing_files;
    mod failover;
    mod faults;
    mod find_max;
    mod foreign;
    mod foreign_records;
    mod full_disk;
    mod gate;
    mod harm;
    mod interrupt;
    mod latency_log;
    mod leftovers;
    mod lost_writes;
    mod missing;
    mod own_keys;
    mod ownerless;
    mod passwords;
    mod profiles;
    mod programs;
    mod ramp;
    mod reference;
    mod replies;
    mod resume;
    mod room;
    mod samples;
    mod serve;
    mod stress;
    mod terminal;
    mod usage;
}
