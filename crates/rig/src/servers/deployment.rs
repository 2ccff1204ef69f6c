//! How Redis is deployed: alone, with replicas and Sentinels, as a cluster, or behind a proxy.

use super::cluster::{SHARDS, start_cluster};
use super::listen::{LISTEN, PROXY, STUNNEL, TCP, TLS};
use super::own::{ServerDescription, StartedServers};
use super::proxy::{start_behind_stunnel, start_proxied};
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

/// A deployment of several servers, or of one behind a proxy.
struct Deployment {
    is_asked: fn(&ServerSpec) -> bool,
    /// Settings that have no effect on it, and what is expected.
    excludes: (&'static [&'static str], &'static str),
    start: fn(&Guard, &ServerSpec) -> Result<StartedServers>,
}

/// The first that is asked for is started; otherwise one server, alone or with replicas.
const DEPLOYMENTS: [Deployment; 3] = [
    Deployment {
        is_asked: |spec| spec.settings.contains_key(PROXY),
        excludes: (
            &["sentinels", "replicas", "cluster-node-timeout", LISTEN],
            "none with `proxy`, which is before single servers on ports",
        ),
        start: |guard, spec| start_proxied(guard, spec, SHARDS),
    },
    Deployment {
        is_asked: |spec| spec.settings.contains_key(SHARDS),
        excludes: (&["sentinels"], "no `shards`: a cluster needs no Sentinels"),
        start: start_cluster,
    },
    Deployment {
        is_asked: |spec| spec.settings.get(LISTEN).is_some_and(|way| way == STUNNEL),
        excludes: (&["sentinels", "replicas"], "none with stunnel, which is before one server"),
        start: start_behind_stunnel,
    },
];

fn start(guard: &Guard, spec: &ServerSpec) -> Result<StartedServers> {
    let useless = |name: &str, expected| {
        let (program, problem) = (EXECUTABLE.or(spec.program).name, "has no effect");
        Err(RigError::Setting { program, name: name.into(), problem, expected })
    };
    let has_shards = spec.settings.contains_key(SHARDS);
    let way = spec.settings.get(LISTEN).map(String::as_str);
    if spec.settings.contains_key(PROXY) && !has_shards {
        return useless(PROXY, "`shards` as well: the number of servers behind it");
    }
    if has_shards && way.is_some_and(|way| ![TCP, TLS].contains(&way)) {
        return useless(
            LISTEN,
            "`tcp` or `tls` with `shards`: nodes of a cluster reach each other",
        );
    }
    let asked = DEPLOYMENTS.iter().find(|deployment| (deployment.is_asked)(spec));
    let Some(Deployment { excludes: (names, expected), start, .. }) = asked else {
        return start_replicated(guard, spec);
    };
    match names.iter().find(|name| spec.settings.contains_key(**name)) {
        Some(name) => useless(name, expected),
        None => start(guard, spec),
    }
}
