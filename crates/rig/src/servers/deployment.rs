//! How Redis is deployed: alone, with replicas and Sentinels, or as a cluster.

use super::cluster::{SHARDS, start_cluster};
use super::listen::LISTEN;
use super::own::{ServerDescription, StartedServers};
use super::redis::{EXECUTABLE, SETTINGS};
use super::sentinel::start_replicated;
use crate::error::{Result, RigError};
use crate::guard::Guard;
use crate::server::ServerSpec;

/// The server of Redis.
pub(super) const DESCRIPTION: ServerDescription = ServerDescription {
    executable: EXECUTABLE,
    find: |search| search.find(&[EXECUTABLE.name]),
    settings: &SETTINGS,
    mixes_dashes: false,
    start: |guard, _, spec| start(guard, spec),
};

/// Settings that a cluster does not have: it needs no Sentinels, and its nodes listen on ports.
const NOT_OF_CLUSTERS: [&str; 2] = ["sentinels", LISTEN];

fn start(guard: &Guard, spec: &ServerSpec) -> Result<StartedServers> {
    if !spec.settings.contains_key(SHARDS) {
        return start_replicated(guard, spec);
    }
    match NOT_OF_CLUSTERS.iter().find(|name| spec.settings.contains_key(**name)) {
        Some(name) => Err(RigError::Setting {
            program: EXECUTABLE.or(spec.program).name,
            name: (*name).into(),
            problem: "has no effect",
            expected: "no `shards`: a cluster needs no Sentinels, and its nodes listen on ports",
        }),
        None => start_cluster(guard, spec),
    }
}
