//! Starts the installed MariaDB server on a Unix socket, and at a port with a password if another
//! machine uses it.
//!
//! Creating a data directory with the system tables takes seconds, so one is created per run and
//! copied for each server. Its redo log is small, so the copy is small too; the server grows it to
//! its default (or the plan's size) when it starts.

use super::listen::{AtPort, write_private};
use super::own::{Executable, ServerDescription, single_server};
use crate::child;
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
use nix::unistd::{User, geteuid};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The database on every server that we start. The account is `root` without a password on the
/// socket, and this name with a random one at a port.
pub const DATABASE: &str = "cachedyno";

/// The server of MariaDB, for clients of MySQL.
pub(super) const DESCRIPTION: ServerDescription = ServerDescription {
    executable: EXECUTABLE,
    find: find_server,
    settings: &SETTINGS,
    mixes_dashes: true,
    start: |guard, templates, spec| Ok(single_server(start_mariadb(guard, templates, spec)?)),
};

const EXECUTABLE: Executable = Executable { name: "mariadbd", package: "mariadb-server" };

/// Its settings, with `_` for `-`. Source: `mariadbd --verbose --help` of 10.6 to 11.4.
const SETTINGS: [Names; 2] = [
    (
        Number,
        "aria_checkpoint_interval aria_log_file_size aria_pagecache_buffer_size \
         aria_sort_buffer_size back_log bulk_insert_buffer_size connect_timeout \
         eq_range_index_dive_limit host_cache_size innodb_adaptive_flushing_lwm \
         innodb_adaptive_hash_index_parts innodb_autoextend_increment \
         innodb_buffer_pool_chunk_size innodb_buffer_pool_instances innodb_buffer_pool_size \
         innodb_buffer_pool_size_auto_min innodb_buffer_pool_size_max \
         innodb_change_buffer_max_size innodb_compression_level innodb_concurrency_tickets \
         innodb_fast_shutdown innodb_fill_factor innodb_flush_log_at_timeout \
         innodb_flush_log_at_trx_commit innodb_flush_neighbors innodb_flushing_avg_loops \
         innodb_io_capacity innodb_io_capacity_max innodb_lock_wait_timeout \
         innodb_log_buffer_size innodb_log_file_size innodb_log_files_in_group \
         innodb_log_spin_wait_delay innodb_log_write_ahead_size innodb_lru_scan_depth \
         innodb_max_dirty_pages_pct innodb_max_dirty_pages_pct_lwm innodb_max_purge_lag \
         innodb_max_purge_lag_delay innodb_max_undo_log_size innodb_old_blocks_pct \
         innodb_old_blocks_time innodb_open_files innodb_page_cleaners \
         innodb_purge_batch_size innodb_purge_threads innodb_read_ahead_threshold \
         innodb_read_io_threads innodb_sort_buffer_size innodb_spin_wait_delay \
         innodb_stats_persistent_sample_pages innodb_stats_transient_sample_pages \
         innodb_sync_spin_loops innodb_thread_concurrency innodb_thread_sleep_delay \
         innodb_undo_tablespaces innodb_write_io_threads interactive_timeout join_buffer_size \
         join_buffer_space_limit join_cache_level key_buffer_size key_cache_block_size \
         key_cache_segments lock_wait_timeout max_allowed_packet max_connect_errors \
         max_connections max_heap_table_size max_prepared_stmt_count max_session_mem_used \
         max_statement_time mrr_buffer_size myisam_sort_buffer_size net_buffer_length \
         net_read_timeout net_write_timeout open_files_limit optimizer_prune_level \
         optimizer_search_depth optimizer_use_condition_selectivity preload_buffer_size \
         query_alloc_block_size query_cache_limit query_cache_min_res_unit query_cache_size \
         query_prealloc_size range_alloc_block_size read_buffer_size read_rnd_buffer_size \
         sort_buffer_size stored_program_cache sync_binlog table_definition_cache \
         table_open_cache table_open_cache_instances tcp_keepalive_interval \
         tcp_keepalive_probes tcp_keepalive_time thread_cache_size thread_pool_idle_timeout \
         thread_pool_max_threads thread_pool_oversubscribe thread_pool_prio_kickup_timer \
         thread_pool_size thread_pool_stall_limit thread_stack tmp_disk_table_size \
         tmp_memory_table_size tmp_table_size transaction_alloc_block_size \
         transaction_prealloc_size wait_timeout",
    ),
    (
        Words,
        "autocommit character_set_server collation_server innodb_adaptive_flushing \
         innodb_adaptive_hash_index innodb_autoinc_lock_mode \
         innodb_buffer_pool_dump_at_shutdown innodb_buffer_pool_load_at_startup \
         innodb_change_buffering innodb_checksum_algorithm innodb_compression_algorithm \
         innodb_deadlock_detect innodb_default_row_format innodb_doublewrite \
         innodb_file_per_table innodb_flush_method innodb_flush_sync \
         innodb_log_file_buffering innodb_log_file_mmap innodb_numa_interleave \
         innodb_random_read_ahead innodb_snapshot_isolation innodb_stats_auto_recalc \
         innodb_stats_persistent innodb_strict_mode innodb_undo_log_truncate \
         innodb_use_atomic_writes innodb_use_native_aio large_pages optimizer_switch \
         performance_schema query_cache_strip_comments query_cache_type \
         query_cache_wlock_invalidate skip_name_resolve sql_mode tcp_nodelay thread_handling \
         thread_pool_dedicated_listener thread_pool_priority transaction_isolation \
         tx_isolation use_stat_tables userstat",
    ),
];

const INSTALLER: &str = "mariadb-install-db";
const NO_NETWORK: &str = "--skip-networking";

const TEMPLATE_WITHIN: Duration = Duration::from_secs(120);
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Creates a data directory with the system tables in a template's directory.
///
/// Errors: the installer is missing, or it failed (with the end of its log).
fn install(guard: &Guard, template: &Scratch, search: &SearchPath) -> Result<()> {
    let installer = search
        .find(&[INSTALLER, "mysql_install_db"])
        .ok_or(RigError::Missing { program: INSTALLER, package: EXECUTABLE.package })?;
    let data = data_of(template);
    let mut arguments: Vec<OsString> = [
        "--no-defaults",
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        // Also where the machine's name cannot be resolved.
        "--force",
        "--innodb-log-file-size=4M",
    ]
    .map(OsString::from)
    .into();
    arguments.extend(user_argument());
    arguments.push(with_path("--datadir=", &data));
    let process = Process::spawn(
        guard,
        Launch::installer(INSTALLER, installer, arguments, template.path(), search),
    )?;
    process.wait_for_success(TEMPLATE_WITHIN)?;
    if !data.join("mysql").is_dir() {
        return Err(process.start_error("did not create the system tables"));
    }
    Ok(())
}

/// Starts a server on a copy of the template and waits for its greeting on the socket. Flushes data
/// that the start wrote, so it is not written to disk during a measurement.
///
/// A setting becomes `--name=value`, or `--name` if the name starts with `skip` and the value is
/// empty.
fn start_mariadb(guard: &Guard, templates: &mut Templates, spec: &ServerSpec) -> Result<Server> {
    let program = find_server(&spec.search).ok_or_else(|| EXECUTABLE.missing())?;
    let template = templates.of(EXECUTABLE.name, (guard, &spec.data_parent), |scratch| {
        install(guard, scratch, &spec.search)
    })?;
    let data = Scratch::new(guard, &spec.data_parent)?;
    let sockets = Scratch::for_sockets(guard)?;
    let socket = sockets.socket("server.sock")?;
    let directory = data_of(&data);
    copy_directory(&template, &directory)?;
    let temporary = data.subdirectory("tmp")?;
    let init_file = sockets.path().join("init.sql");
    let network = spec.bind.map(|address| AtPort::new(EXECUTABLE.name, address)).transpose()?;
    let accounts = network.as_ref().map(accounts).unwrap_or_default();
    let init = format!("CREATE DATABASE IF NOT EXISTS {DATABASE};\n{accounts}");
    write_private(&init_file, &init)?;
    let mut arguments: Vec<OsString> = ["--no-defaults", "--skip-log-bin"].map(Into::into).into();
    let closed = || vec![NO_NETWORK.into()];
    arguments.extend(network.as_ref().map_or_else(closed, network_arguments));
    arguments.extend(user_argument());
    arguments.push(with_path("--datadir=", &directory));
    arguments.push(with_path("--tmpdir=", &temporary));
    arguments.push(with_path("--socket=", &socket));
    arguments.push(with_path("--pid-file=", &sockets.path().join("server.pid")));
    arguments.push(with_path("--init-file=", &init_file));
    arguments.extend(spec.settings.iter().map(|(name, value)| setting(name, value).into()));
    let process =
        spec.launch(guard, (EXECUTABLE.name, program), arguments, &directory, &sockets)?;
    let deadline = spec.deadline.unwrap_or(READY_WITHIN);
    process.wait_until_ready(deadline, |left| greeting(&socket, left))?;
    flush(&directory)?;
    let closed = network.is_none().then_some("skip-networking");
    let own = closed.into_iter().chain(["skip-log-bin"]);
    let mut settings: BTreeMap<String, String> =
        own.map(|name| (name.to_string(), String::new())).collect();
    settings.extend(spec.settings.clone());
    let (address, user, password) = match network {
        Some(network) => {
            let (address, password) = network.login();
            (address, DATABASE, Some(password))
        }
        None => (NetAddress::Unix(socket), "root", None),
    };
    let (user, name) = (user.into(), DATABASE.into());
    let endpoint = Endpoint::Mysql(Database { address, user, password, name });
    Ok(Server { process: process.into(), endpoint, settings, data, sockets })
}

/// Accounts are found by address, without a question to a name server.
fn network_arguments(at: &AtPort) -> Vec<OsString> {
    let AtPort { address, port, .. } = at;
    let bind = format!("--bind-address={address}");
    vec![bind.into(), format!("--port={port}").into(), "--skip-name-resolve".into()]
}

/// SQL that leaves no account without a password at the port.
fn accounts(at: &AtPort) -> String {
    let password = &at.password;
    format!(
        "DELETE FROM mysql.global_priv WHERE User = '' OR (User = 'root' AND Host <> \
         'localhost');\nFLUSH PRIVILEGES;\nCREATE USER '{DATABASE}'@'%' IDENTIFIED BY \
         '{password}';\nGRANT ALL PRIVILEGES ON *.* TO '{DATABASE}'@'%';\n"
    )
}

/// Finds the server program; `mysqld` is accepted only if its version output contains `MariaDB`.
fn find_server(search: &SearchPath) -> Option<PathBuf> {
    search.find(&[EXECUTABLE.name]).or_else(|| {
        let program = search.find(&["mysqld"])?;
        let output = child::command(&program).arg("--version").output().ok()?;
        String::from_utf8_lossy(&output.stdout).contains("MariaDB").then_some(program)
    })
}

/// MariaDB refuses to run as root unless `--user=root` is given.
fn user_argument() -> Option<OsString> {
    let user = User::from_uid(geteuid()).ok()??;
    Some(format!("--user={}", user.name).into())
}

fn with_path(option: &str, path: &Path) -> OsString {
    let mut argument = OsString::from(option);
    argument.push(path);
    argument
}

fn setting(name: &str, value: &str) -> String {
    if value.is_empty() && name.starts_with("skip") {
        format!("--{name}")
    } else {
        format!("--{name}={value}")
    }
}

/// Reads the first packet: three bytes of length, one of sequence, then 10 (the protocol version),
/// or 255 and an error. Source: MariaDB's "Connection phase".
fn greeting(socket: &Path, patience: Duration) -> std::result::Result<(), String> {
    let read = || {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(patience))?;
        let mut head = [0; 4];
        stream.read_exact(&mut head)?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
        let mut body = vec![0; length.min(1024)];
        stream.read_exact(&mut body)?;
        io::Result::Ok(body)
    };
    match read() {
        Ok(body) => check_greeting(&body),
        Err(e) => Err(format!("socket error: {e}")),
    }
}

fn check_greeting(body: &[u8]) -> std::result::Result<(), String> {
    match body {
        [10, _, ..] => Ok(()),
        [255, _, _, text @ ..] => {
            Err(format!("unexpected reply `{}`", String::from_utf8_lossy(text)))
        }
        _ => Err("its first packet is not a greeting".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_greeting_is_accepted() {
        assert_eq!(check_greeting(b"\x0a10.11.19-MariaDB\0"), Ok(()));
        let full = check_greeting(b"\xff\x10\x04Too many connections").unwrap_err();
        assert_eq!(full, "unexpected reply `Too many connections`");
        assert!(check_greeting(b"").is_err());
        assert!(check_greeting(b"HTTP/1.1 400").is_err());
    }

    #[test]
    fn settings_become_arguments() {
        assert_eq!(setting("innodb_buffer_pool_size", "1G"), "--innodb_buffer_pool_size=1G");
        assert_eq!(setting("sql_mode", ""), "--sql_mode=");
        assert_eq!(setting("skip-name-resolve", ""), "--skip-name-resolve");
    }
}
