//! Starts the installed PostgreSQL on a Unix socket, and at a port with a password if another
//! machine uses it.
//!
//! Creating a data directory takes a second, so one is created per run and copied for each server.
//! PostgreSQL refuses to run as root. If we are root, it is started in a user namespace that maps
//! root to another user, so all directories still belong to us. Outside the namespace it is still
//! root, without capabilities; only the mode of its socket's directory keeps other users out. An
//! IPC namespace ends with the server, and other shared memory is in its data directory, so nothing
//! outlives a killed server. Without root a small shared memory segment would remain, so a server
//! receives a quit signal first.

use super::listen::{AtPort, random_password, write_private};
use super::own::{Executable, ServerDescription, single_server};
use crate::error::{Result, RigError};
use crate::guard::Guard;
use crate::process::{Launch, Process};
use crate::scratch::Scratch;
use crate::search::SearchPath;
use crate::server::{Server, ServerSpec};
use crate::settings::Form::{Number, Words};
use crate::settings::Names;
use crate::template::{Templates, copy_directory, data_of, flush};
use model::{Database, Endpoint, NetAddress};
use nix::sys::signal::Signal;
use nix::unistd::{User, geteuid};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io::{Read as _, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The server of PostgreSQL.
pub(super) const DESCRIPTION: ServerDescription = ServerDescription {
    executable: EXECUTABLE,
    find: |search| search.find(&[EXECUTABLE.name]),
    settings: &SETTINGS,
    mixes_dashes: false,
    start: |guard, templates, spec| Ok(single_server(start_postgres(guard, templates, spec)?)),
};

const EXECUTABLE: Executable = Executable { name: "postgres", package: "postgresql" };
const INSTALLER: &str = "initdb";
/// File beside the template with the account's password, which only a port asks for.
const PASSWORD: &str = "password";
/// Runs a program in new namespaces; part of util-linux, 2.36 or later.
const UNSHARE: &str = "unshare";

/// Name of the account and of the default database of every server.
const USER: &str = "postgres";
/// Only part of the socket's name if no port is opened.
const PORT: &str = "5432";

/// Its settings. Source: `postgres --describe-config` of 13 to 18.
const SETTINGS: [Names; 2] = [
    (
        Number,
        "autovacuum_analyze_scale_factor autovacuum_analyze_threshold autovacuum_max_workers \
         autovacuum_naptime autovacuum_vacuum_cost_delay autovacuum_vacuum_cost_limit \
         autovacuum_vacuum_scale_factor autovacuum_vacuum_threshold autovacuum_work_mem \
         backend_flush_after bgwriter_delay bgwriter_flush_after bgwriter_lru_maxpages \
         bgwriter_lru_multiplier checkpoint_completion_target checkpoint_flush_after \
         checkpoint_timeout commit_delay commit_siblings deadlock_timeout effective_cache_size \
         effective_io_concurrency gin_pending_list_limit huge_page_size lock_timeout \
         maintenance_io_concurrency maintenance_work_mem max_connections max_files_per_process \
         max_locks_per_transaction max_parallel_workers max_parallel_workers_per_gather \
         max_prepared_transactions max_stack_depth max_wal_senders max_wal_size \
         max_worker_processes min_wal_size random_page_cost seq_page_cost shared_buffers \
         statement_timeout superuser_reserved_connections temp_buffers vacuum_cost_delay \
         vacuum_cost_limit wal_buffers wal_keep_size wal_skip_threshold wal_writer_delay \
         wal_writer_flush_after work_mem",
    ),
    (
        Words,
        "autovacuum default_toast_compression default_transaction_isolation fsync \
         full_page_writes huge_pages io_method jit plan_cache_mode synchronize_seqscans \
         synchronous_commit track_activities track_counts track_io_timing \
         update_process_title wal_compression wal_init_zero wal_level wal_log_hints wal_recycle \
         wal_sync_method",
    ),
];

const TEMPLATE_WITHIN: Duration = Duration::from_secs(120);
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Starts a server on a copy of the template and waits until it accepts a login. Flushes data that
/// the start wrote, so it is not written to disk during a measurement.
///
/// A setting becomes `-c name=value`.
fn start_postgres(guard: &Guard, templates: &mut Templates, spec: &ServerSpec) -> Result<Server> {
    let search = &spec.search;
    let program = EXECUTABLE.find(search)?;
    let template = templates.of(EXECUTABLE.name, (guard, &spec.data_parent), |scratch| {
        install(guard, scratch, search)
    })?;
    let data = Scratch::new(guard, &spec.data_parent)?;
    let sockets = Scratch::for_sockets(guard)?;
    let directory = data_of(&data);
    copy_directory(&template, &directory)?;
    let network = spec.bind.map(|address| at_port(address, &template, &directory)).transpose()?;
    let address = network.as_ref().map(|network| network.address.to_string());
    let settings = settings(&spec.settings, address.as_deref().unwrap_or_default());
    let port = network.as_ref().map_or_else(|| PORT.into(), |network| network.port.to_string());
    let socket = sockets.socket(&format!(".s.PGSQL.{port}"))?;
    let mut arguments: Vec<OsString> = ["-D".into(), directory.clone().into(), "-k".into()].into();
    arguments.extend([sockets.path().into(), "-p".into(), port.into()]);
    for (name, value) in &settings {
        arguments.extend(["-c".into(), format!("{name}={value}").into()]);
    }
    let (program, arguments) = without_root(program, arguments, search)?;
    let process =
        spec.launch(guard, (EXECUTABLE.name, program), arguments, &directory, &sockets)?;
    let process = process.with_quit_signal(Signal::SIGQUIT);
    let deadline = spec.deadline.unwrap_or(READY_WITHIN);
    process.wait_until_ready(deadline, |left| login(&socket, left))?;
    flush(&directory)?;
    let (address, password) = match network {
        Some(network) => {
            let (address, password) = network.login();
            (address, Some(password))
        }
        None => (NetAddress::Unix(socket), None),
    };
    let (user, name) = (USER.into(), USER.into());
    let endpoint = Endpoint::Postgres(Database { address, user, password, name });
    Ok(Server { process: process.into(), endpoint, settings, data, sockets })
}

/// A port for the account, whose password the template was installed with; only those who know it
/// get in.
fn at_port(address: Ipv4Addr, template: &Path, directory: &Path) -> Result<AtPort> {
    let path = template.with_file_name(PASSWORD);
    let password = fs::read_to_string(&path).map_err(RigError::io("read", &path))?;
    let path = directory.join("pg_hba.conf");
    // md5 means SCRAM if the password is stored for it, as from version 14 on.
    fs::write(&path, "local all all trust\nhost all all all md5\n")
        .map_err(RigError::io("write", &path))?;
    let port = AtPort::new(EXECUTABLE.name, address)?;
    Ok(AtPort { password: password.trim().into(), ..port })
}

/// The plan's settings, and ours: no port except at `address`, no access for other users, no
/// leftovers.
fn settings(of_plan: &BTreeMap<String, String>, address: &str) -> BTreeMap<String, String> {
    let own = [
        ("dynamic_shared_memory_type", "mmap"),
        ("listen_addresses", address),
        ("unix_socket_permissions", "0700"),
    ];
    let own = own.into_iter().map(|(name, value)| (name.to_string(), value.to_string()));
    own.chain(of_plan.clone()).collect()
}

/// Creates a data directory in a template's directory.
fn install(guard: &Guard, template: &Scratch, search: &SearchPath) -> Result<()> {
    let missing = RigError::Missing { program: INSTALLER, package: EXECUTABLE.package };
    let installer = search.find(&[INSTALLER]).ok_or(missing)?;
    let data = data_of(template);
    let made = DirBuilder::new().mode(0o700).create(&data);
    made.map_err(RigError::io("create directory", &data))?;
    let password = template.path().join(PASSWORD);
    write_private(&password, &format!("{}\n", random_password()))?;
    let mut arguments: Vec<OsString> = ["-D".into(), data.into_os_string()].into();
    arguments.extend(["--pwfile".into(), password.into_os_string()]);
    let more = ["-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"];
    arguments.extend(more.map(OsString::from));
    let (installer, arguments) = without_root(installer, arguments, search)?;
    let launch = Launch::installer(INSTALLER, installer, arguments, template.path(), search);
    Process::spawn(guard, launch)?.wait_for_success(TEMPLATE_WITHIN)
}

/// Program and arguments to start instead, so that the program does not see itself as root.
fn without_root(
    program: PathBuf,
    arguments: Vec<OsString>,
    search: &SearchPath,
) -> Result<(PathBuf, Vec<OsString>)> {
    if !geteuid().is_root() {
        return Ok((program, arguments));
    }
    let missing = RigError::Missing { program: UNSHARE, package: "util-linux" };
    let unshare = search.find(&[UNSHARE]).ok_or(missing)?;
    // PostgreSQL looks up its user name, so the user must exist.
    let user =
        [USER, "nobody"].into_iter().find(|name| matches!(User::from_name(name), Ok(Some(_))));
    let user = format!("--map-user={}", user.unwrap_or("nobody"));
    let before = ["--user".into(), user.into(), "--ipc".into(), "--".into(), program.into()];
    Ok((unshare, before.into_iter().chain(arguments).collect()))
}

/// Sends a start-up message of protocol 3.0; the reply starts with `R`, or is an error. Source:
/// PostgreSQL's manual, "Message Formats".
fn login(socket: &Path, patience: Duration) -> std::result::Result<(), String> {
    let mut message = vec![0, 0, 0, 0, 0, 3, 0, 0];
    for word in ["user", USER, "database", USER, ""] {
        message.extend(word.as_bytes());
        message.push(0);
    }
    let length = (message.len() as u32).to_be_bytes();
    message[..length.len()].copy_from_slice(&length);
    let exchange = || {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(patience))?;
        stream.write_all(&message)?;
        let mut first = [0];
        stream.read_exact(&mut first)?;
        if first == *b"R" {
            // Terminate like a client, so the server does not log an error.
            stream.write_all(b"X\0\0\0\x04")?;
        }
        std::io::Result::Ok(first[0])
    };
    match exchange() {
        Ok(b'R') => Ok(()),
        Ok(other) => Err(format!("unexpected reply message `{}`", char::from(other))),
        Err(e) => Err(format!("socket error: {e}")),
    }
}
