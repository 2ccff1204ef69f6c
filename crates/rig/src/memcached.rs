//! Starts the installed `memcached` on a unix socket.
//!
//! It has no configuration file: settings are options of its command line, of which those that a
//! measurement needs are known here by name ([`SETTINGS`]). It keeps nothing on disk.

use crate::error::Result;
use crate::guard::Guard;
use crate::programs;
use crate::scratch::Scratch;
use crate::server::{Server, ServerSpec, answers};
use crate::settings::check_settings;
use model::{Endpoint, Memcached, NetAddress, Product, Spelling};
use nix::unistd::geteuid;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

const READY_WITHIN: Duration = Duration::from_secs(10);

/// Settings by name, the option that each becomes, and what its value is.
pub const SETTINGS: [(&str, &str, &str); 6] = [
    ("connections", "-c", "connections at the same time"),
    ("evictions", "-M", "`yes`, or `no` to answer with an error when memory is full"),
    ("growth", "-f", "factor from one size of slots to the next"),
    ("item-size", "-I", "largest value, such as 1m"),
    ("memory", "-m", "megabytes for keys and values"),
    ("threads", "-t", "threads that serve"),
];

/// Starts a server and waits until it answers `version` on its socket (10 seconds unless the spec
/// says otherwise). Call it from a thread that lives as long as the run; see [`Server`].
///
/// Errors: the program is missing; a setting is not of [`SETTINGS`] or is refused by the server,
/// whose own words are then in the message; no answer in time.
pub fn start_memcached(guard: &Guard, spec: &ServerSpec) -> Result<Server> {
    let own = programs::MEMCACHED;
    let program = spec.search.find(&[own.name]).ok_or_else(|| own.missing())?;
    check_settings(Product::Memcached, None, &spec.settings)?;
    let data = Scratch::new(guard, &spec.data_parent)?;
    let sockets = Scratch::for_sockets(guard)?;
    let socket = sockets.socket("server.sock")?;
    let mut arguments: Vec<OsString> =
        vec!["-s".into(), socket.clone().into(), "-a".into(), "0700".into()];
    if geteuid().is_root() {
        // It refuses to be root unless that is meant.
        arguments.extend(["-u".into(), "root".into()]);
    }
    arguments.extend(options(&spec.settings).into_iter().map(OsString::from));
    let process = spec.launch(guard, (own.name, program), arguments, sockets.path(), &sockets)?;
    let version = |left| answers(&socket, "version", "VERSION ", left);
    process.wait_until_ready(spec.deadline.unwrap_or(READY_WITHIN), version)?;
    let endpoint = Endpoint::Memcached(Memcached {
        servers: vec![NetAddress::Unix(socket)],
        spelling: Spelling::default(),
        user: None,
        password: None,
        tls: None,
    });
    Ok(Server { process, endpoint, settings: spec.settings.clone(), data, sockets })
}

/// Settings as options of the command line.
fn options(settings: &BTreeMap<String, String>) -> Vec<&str> {
    let mut options = Vec::new();
    for (name, value) in settings {
        let plain = name.replace('_', "-");
        let option = SETTINGS.iter().find(|(known, ..)| *known == plain);
        match option.map(|(_, option, _)| *option) {
            Some("-M") if value == "no" => options.push("-M"),
            Some("-M") | None => {}
            Some(option) => options.extend([option, value]),
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Vec<String> {
        let pairs = pairs.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        options(&pairs.collect()).into_iter().map(String::from).collect()
    }

    #[test]
    fn settings_become_options() {
        let all = of(&[("memory", "64"), ("item_size", "2m"), ("evictions", "no")]);
        assert_eq!(all, ["-M", "-I", "2m", "-m", "64"]);
        assert!(of(&[("evictions", "yes")]).is_empty());
    }
}
