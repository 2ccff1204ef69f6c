//! Starts the installed MariaDB server on a unix socket.
//!
//! A data directory with the system tables takes seconds to make, so one is made per run and
//! copied for each server. Its redo log is small, to make the copy small; the server itself grows
//! it to its own default (or the plan's size) when it starts.

use crate::child;
use crate::error::{Result, RigError};
use crate::guard::Guard;
use crate::process::{Launch, Process};
use crate::programs;
use crate::scratch::Scratch;
use crate::search::SearchPath;
use crate::server::{Server, ServerSpec};
use crate::settings::check_settings;
use model::{Endpoint, NetAddress, Product};
use nix::unistd::{User, geteuid, syncfs};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The database that every server of ours has; the account is `root` without a password.
pub const DATABASE: &str = "cachedyno";

const INSTALLER: &str = "mariadb-install-db";

const TEMPLATE_WITHIN: Duration = Duration::from_secs(120);
const READY_WITHIN: Duration = Duration::from_secs(30);

/// A data directory to copy from, made once per run and removed with it.
#[derive(Debug)]
pub struct MariadbTemplate {
    scratch: Scratch,
    program: PathBuf,
}

impl MariadbTemplate {
    /// Makes the template in `parent`, best on the disk under test: there the file system may copy
    /// by reference. Takes a few seconds.
    ///
    /// Errors: server or installer are missing; the installer failed, with its last words.
    pub fn make(guard: &Guard, parent: &Path, search: &SearchPath) -> Result<Self> {
        let program = find_server(search).ok_or_else(|| programs::MARIADB.missing())?;
        let installer = search
            .find(&[INSTALLER, "mysql_install_db"])
            .ok_or(RigError::Missing { program: INSTALLER, package: programs::MARIADB.package })?;
        let scratch = Scratch::new(guard, parent)?;
        let data = scratch.path().join("data");
        let mut arguments: Vec<OsString> = [
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--innodb-log-file-size=4M",
        ]
        .map(OsString::from)
        .into();
        arguments.extend(user_argument());
        arguments.push(with_path("--datadir=", &data));
        let launch = Launch {
            name: INSTALLER,
            program: installer,
            arguments,
            directory: scratch.path(),
            log: scratch.path().join("install.log"),
            cpus: None,
            group: None,
            search,
        };
        let process = Process::spawn(guard, launch)?;
        wait_for_success(&process)?;
        if !data.join("mysql").is_dir() {
            return Err(process.start_error("made no system tables"));
        }
        drop(process);
        Ok(Self { scratch, program })
    }

    fn data(&self) -> PathBuf {
        self.scratch.path().join("data")
    }
}

/// The installer ends by itself; anything but exit code 0 is an error.
fn wait_for_success(process: &Process) -> Result<()> {
    let end = std::time::Instant::now() + TEMPLATE_WITHIN;
    loop {
        match process.status() {
            Some(status) if status.success() => return Ok(()),
            Some(_) => return Err(process.start_error("ended")),
            None if std::time::Instant::now() > end => {
                return Err(process.start_error(&format!("not done after {TEMPLATE_WITHIN:?}")));
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Starts a server on a copy of `template` and waits until it greets on its socket (30 seconds
/// unless the spec says otherwise). Data that its start wrote is on the disk before this returns,
/// so that it is not written during a measurement. Call it from a thread that lives as long as the
/// run; see [`Server`].
///
/// A setting becomes `--name=value`; one whose name begins with `skip` and that has an empty value
/// becomes `--name`. Errors: a setting is refused, by us or by the server, whose own words are
/// then in the message; no greeting in time; no space for the copy.
pub fn start_mariadb(
    guard: &Guard,
    template: &MariadbTemplate,
    spec: &ServerSpec,
) -> Result<Server> {
    check_settings(Product::Mysql, None, &spec.settings)?;
    let data = Scratch::new(guard, &spec.data_parent)?;
    let sockets = Scratch::for_sockets(guard)?;
    let socket = sockets.socket("server.sock")?;
    let directory = data.path().join("data");
    copy_directory(&template.data(), &directory)?;
    let temporary = data.subdirectory("tmp")?;
    let init_file = sockets.path().join("init.sql");
    fs::write(&init_file, format!("CREATE DATABASE IF NOT EXISTS {DATABASE};\n"))
        .map_err(RigError::io("write", &init_file))?;
    let mut arguments: Vec<OsString> =
        ["--no-defaults", "--skip-networking", "--skip-log-bin"].map(OsString::from).into();
    arguments.extend(user_argument());
    arguments.push(with_path("--datadir=", &directory));
    arguments.push(with_path("--tmpdir=", &temporary));
    arguments.push(with_path("--socket=", &socket));
    arguments.push(with_path("--pid-file=", &sockets.path().join("server.pid")));
    arguments.push(with_path("--init-file=", &init_file));
    arguments.extend(spec.settings.iter().map(|(name, value)| setting(name, value).into()));
    let program = (programs::MARIADB.name, template.program.clone());
    let process = spec.launch(guard, program, arguments, &directory, &sockets)?;
    let deadline = spec.deadline.unwrap_or(READY_WITHIN);
    process.wait_until_ready(deadline, |left| greeting(&socket, left))?;
    flush(&directory)?;
    let own = [("skip-networking", ""), ("skip-log-bin", "")];
    let mut settings: BTreeMap<String, String> =
        own.into_iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
    settings.extend(spec.settings.clone());
    let endpoint = Endpoint::Mysql {
        address: NetAddress::Unix(socket),
        user: "root".into(),
        password: None,
        database: DATABASE.into(),
    };
    Ok(Server { process, endpoint, settings, data, sockets })
}

/// The server's program; one called `mysqld` counts only if it says that it is MariaDB.
pub(crate) fn find_server(search: &SearchPath) -> Option<PathBuf> {
    search.find(&[programs::MARIADB.name]).or_else(|| {
        let program = search.find(&["mysqld"])?;
        let output = child::command(&program).arg("--version").output().ok()?;
        String::from_utf8_lossy(&output.stdout).contains("MariaDB").then_some(program)
    })
}

/// It refuses to run as root unless told so by name.
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

/// Copies directories and regular files; the standard library asks the kernel to copy file ranges,
/// which file systems that can do it serve by reference.
fn copy_directory(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir(to).map_err(RigError::io("create directory", to))?;
    let entries = fs::read_dir(from).map_err(RigError::io("read directory", from))?;
    for entry in entries {
        let entry = entry.map_err(RigError::io("read directory", from))?;
        let kind = entry.file_type().map_err(RigError::io("read directory", from))?;
        let target = to.join(entry.file_name());
        if kind.is_dir() {
            copy_directory(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target).map_err(RigError::io("copy to", &target))?;
        }
    }
    Ok(())
}

fn flush(directory: &Path) -> Result<()> {
    let file = File::open(directory).map_err(RigError::io("open directory", directory))?;
    syncfs(file).map_err(|e| RigError::io("flush", directory)(e.into()))
}

/// Reads the first packet: three bytes of length, one of sequence, then 10 (the version of the
/// protocol), or 255 and an error. Source: MariaDB's "Connection phase".
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
        Ok(body) => greeted(&body),
        Err(e) => Err(format!("its socket gives: {e}")),
    }
}

fn greeted(body: &[u8]) -> std::result::Result<(), String> {
    match body {
        [10, _, ..] => Ok(()),
        [255, _, _, text @ ..] => Err(format!("it answers `{}`", String::from_utf8_lossy(text))),
        _ => Err("its first packet is no greeting".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_real_greeting_counts() {
        assert_eq!(greeted(b"\x0a10.11.19-MariaDB\0"), Ok(()));
        let full = greeted(b"\xff\x10\x04Too many connections").unwrap_err();
        assert_eq!(full, "it answers `Too many connections`");
        assert!(greeted(b"").is_err());
        assert!(greeted(b"HTTP/1.1 400").is_err());
    }

    #[test]
    fn settings_become_arguments() {
        assert_eq!(setting("innodb_buffer_pool_size", "1G"), "--innodb_buffer_pool_size=1G");
        assert_eq!(setting("sql_mode", ""), "--sql_mode=");
        assert_eq!(setting("skip-name-resolve", ""), "--skip-name-resolve");
    }
}
