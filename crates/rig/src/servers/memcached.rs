//! Starts the installed `memcached` on a Unix socket, or at a port with a password.
//!
//! It has no configuration file: settings are command-line options, of which [`SETTINGS`] names
//! those that measurements need. It stores nothing on disk, except values in a file of its data
//! directory with setting `flash` (extstore; doc/storage.txt and `memcached -h`).

use super::listen::{AtPort, write_private};
use super::own::{Executable, ServerDescription, single_server};
use crate::error::Result;
use crate::guard::Guard;
use crate::scratch::Scratch;
use crate::server::{Server, ServerSpec, answers};
use crate::settings::Form::{Count, Number, YesNo};
use crate::settings::Names;
use model::{Endpoint, Memcached, MemcachedProtocol, NetAddress};
use nix::unistd::geteuid;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// The server of memcached.
pub(super) const DESCRIPTION: ServerDescription = ServerDescription {
    executable: EXECUTABLE,
    find: |search| search.find(&[EXECUTABLE.name]),
    settings: &NAMES,
    mixes_dashes: true,
    start: |guard, _, spec| Ok(single_server(start_memcached(guard, spec)?)),
};

const EXECUTABLE: Executable = Executable { name: "memcached", package: "memcached" };

/// The names of [`SETTINGS`], with `_` for `-`, by the form of their values.
const NAMES: [Names; 3] = [
    (
        Number,
        "growth item_size memory ext_compact_under ext_drop_under ext_item_age ext_item_size \
         ext_low_ttl ext_max_frag ext_max_sleep ext_page_size ext_recache_rate ext_threads \
         ext_wbuf_size slab_automove slab_automove_freeratio slab_automove_window",
    ),
    (Count, "connections flash threads"),
    (YesNo, "evictions"),
];

/// Setting for the size of the file that takes values which memory has no room for, megabytes.
const FLASH: &str = "flash";
/// Starts of settings that are options of the same name after `-o`.
const EXTENDED: [&str; 2] = ["ext_", "slab_"];

const READY_WITHIN: Duration = Duration::from_secs(10);

/// User of a server on a port.
const USER: &str = "cachedyno";

/// Settings: name, command-line option and meaning of the value.
pub const SETTINGS: [(&str, &str, &str); 6] = [
    ("connections", "-c", "connections at the same time"),
    ("evictions", "-M", "`yes`, or `no` to answer with an error when memory is full"),
    ("growth", "-f", "growth factor of slab sizes"),
    ("item-size", "-I", "maximum item size, such as 1m"),
    ("memory", "-m", "megabytes for keys and values"),
    ("threads", "-t", "worker threads"),
];

/// Starts a server and waits until it replies to `version` on its socket, or accepts connections at
/// its port.
fn start_memcached(guard: &Guard, spec: &ServerSpec) -> Result<Server> {
    let program = EXECUTABLE.find(&spec.search)?;
    let data = Scratch::new(guard, &spec.data_parent)?;
    let sockets = Scratch::for_sockets(guard)?;
    let socket = sockets.socket("server.sock")?;
    let (mut arguments, endpoint) = match spec.bind {
        None => (vec!["-s".into(), socket.clone().into(), "-a".into(), "0700".into()], None),
        Some(address) => {
            let (arguments, endpoint) = at_port(address, &sockets)?;
            (arguments, Some(endpoint))
        }
    };
    if geteuid().is_root() {
        // It refuses to run as root without this option.
        arguments.extend(["-u".into(), "root".into()]);
    }
    arguments.extend(options(&spec.settings).into_iter().map(OsString::from));
    arguments.extend(extended(&spec.settings));
    let process =
        spec.launch(guard, (EXECUTABLE.name, program), arguments, data.path(), &sockets)?;
    let replies = |left| match endpoint.as_ref().and_then(|own| own.servers.first()) {
        Some(NetAddress::Tcp(host, port)) => TcpStream::connect((host.as_str(), *port))
            .map(|_| ())
            .map_err(|e| format!("cannot connect to its port: {e}")),
        _ => answers(&socket, "version", "VERSION ", left),
    };
    process.wait_until_ready(spec.deadline.unwrap_or(READY_WITHIN), replies)?;
    let endpoint = Endpoint::Memcached(endpoint.unwrap_or_else(|| Memcached {
        servers: vec![NetAddress::Unix(socket)],
        protocol: MemcachedProtocol::default(),
        user: None,
        password: None,
        tls: None,
    }));
    Ok(Server { process: process.into(), endpoint, settings: spec.settings.clone(), data, sockets })
}

/// Options for a free port of an address, with a random password that clients send first
/// (doc/protocol.txt, "Authentication"), and its endpoint.
fn at_port(address: Ipv4Addr, sockets: &Scratch) -> Result<(Vec<OsString>, Memcached)> {
    let at = AtPort::new(EXECUTABLE.name, address)?;
    let file = sockets.path().join("users");
    write_private(&file, &format!("{USER}:{}\n", at.password))?;
    let arguments = [
        OsString::from("-l"),
        address.to_string().into(),
        "-p".into(),
        at.port.to_string().into(),
        "-Y".into(),
        file.into(),
    ];
    let (server, password) = at.login();
    let endpoint = Memcached {
        servers: vec![server],
        protocol: MemcachedProtocol::default(),
        user: Some(USER.into()),
        password: Some(password),
        tls: None,
    };
    Ok((arguments.into(), endpoint))
}

/// Settings as command-line options.
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

/// The option for settings that are named after `-o`, and for the file of values in the working
/// directory; nothing without any.
fn extended(settings: &BTreeMap<String, String>) -> Vec<OsString> {
    let path = settings.get(FLASH).map(|megabytes| format!("ext_path=values:{megabytes}m"));
    let own = settings.iter().map(|(name, value)| (name.replace('-', "_"), value));
    let own = own.filter(|(name, _)| EXTENDED.iter().any(|start| name.starts_with(start)));
    let own = own.map(|(name, value)| format!("{name}={value}"));
    // The size of its pages must be known before the file.
    let all: Vec<String> = own.chain(path).collect();
    if all.is_empty() { Vec::new() } else { vec!["-o".into(), all.join(",").into()] }
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

    #[test]
    fn values_in_a_file_have_one_option() {
        let pairs = [("flash", "512"), ("memory", "64"), ("ext-page_size", "8")];
        let settings = pairs.map(|(name, value)| (name.to_string(), value.to_string())).into();
        assert_eq!(extended(&settings), ["-o", "ext_page_size=8,ext_path=values:512m"]);
        let moving = [("slab_automove".to_string(), "2".to_string())].into();
        assert_eq!(extended(&moving), ["-o", "slab_automove=2"]);
        assert!(extended(&BTreeMap::new()).is_empty());
    }
}
