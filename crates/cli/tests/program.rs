//! End-to-end tests of the `cachedyno` binary with real servers: arguments, exit codes, output,
//! records and leftovers.
//!
//! Every test works in its own directory. No test asserts rates. Where noise decides between VALID
//! and NOT-STEADY, both exit codes are accepted.

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
    mod cache_aside;
    mod calibrate;
    mod commands;
    mod common;
    mod completions;
    mod data_set;
    mod disks;
    mod entries;
    mod existing;
    mod existing_files;
    mod failover;
    mod fault_command;
    mod faults;
    mod find_max;
    mod fleet;
    mod fleet_clients;
    mod fleet_networks;
    mod foreign;
    mod foreign_records;
    mod full_disk;
    mod gate;
    mod harm;
    mod interrupt;
    mod interruptions;
    mod latency_log;
    mod leftovers;
    mod limits;
    mod lost_writes;
    mod missing;
    mod orphaned;
    mod own_keys;
    mod passwords;
    mod profiles;
    mod programs;
    mod ramp;
    mod reference;
    mod replies;
    mod resume;
    mod rig_on;
    mod room;
    mod samples;
    mod serve;
    mod size;
    mod sizing;
    mod stress;
    mod terminal;
    mod tiers;
    mod tls_faults;
    mod usage;
}
