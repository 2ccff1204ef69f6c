//! Starts and stops real servers.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test helpers panic and print like tests"
)]

mod common;
mod starting;

use cachedyno_rig::{
    Guard, Pinning, ProcessTree, SearchPath, Server, ServerSpec, Templates, installed,
    process_cpu_ns,
};
use common::{entries, eventually, guard, role, runs};
use model::{Endpoint, ErrorClass, Failure, NetAddress, Product, Program};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use starting::{start, start_from};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Starts a server, prints its process id and socket, and waits to be killed.
#[test]
#[ignore = "a role that other tests start as a separate process"]
fn role_owner() {
    let guard = guard();
    let base = PathBuf::from(std::env::var_os("RIG_TEST_BASE").unwrap());
    let spec = ServerSpec::new(&base);
    let name = std::env::var("RIG_TEST_PRODUCT").unwrap();
    let product = Product::ALL.into_iter().find(|product| product.name() == name).unwrap();
    let server = start(product, &guard, &spec).unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "owned {} {}", server.pid(), socket(&server).display()).unwrap();
    out.flush().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(600));
}

/// True if the program is installed; otherwise prints that the test is skipped.
fn is_installed(program: &str) -> bool {
    let found = SearchPath::of_process().find(&[program]).is_some();
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

fn socket(server: &Server) -> &Path {
    match server.endpoint().addresses() {
        [NetAddress::Unix(path)] => path,
        other => panic!("{other:?} is not a socket"),
    }
}

fn ask(server: &Server, command: &str) -> String {
    let mut stream = UnixStream::connect(socket(server)).unwrap();
    write!(stream, "{command}\r\nQUIT\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn spec(base: &Path, settings: &[(&str, &str)]) -> ServerSpec {
    let settings = settings.iter().map(|(n, v)| ((*n).to_string(), (*v).to_string())).collect();
    ServerSpec { settings, ..ServerSpec::new(base) }
}

#[test]
fn redis_listens_on_a_port_with_a_password_and_with_tls() {
    if !is_installed("redis-server") {
        return;
    }
    let (base, guard) = (tempfile::tempdir().unwrap(), guard());
    for listen in ["tcp", "tls"] {
        let spec = spec(base.path(), &[("save", ""), ("listen", listen)]);
        let server = start(Product::Redis, &guard, &spec).unwrap();
        let Endpoint::Redis { address: NetAddress::Tcp(host, port), password, options, .. } =
            server.endpoint().clone()
        else {
            panic!("{:?}", server.endpoint());
        };
        assert!(host == "127.0.0.1" && password.is_some());
        let mut stream = TcpStream::connect((host.as_str(), port)).unwrap();
        let answer = |stream: &mut TcpStream| {
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            answer
        };
        write!(stream, "PING\r\nQUIT\r\n").unwrap();
        let certificate = options.tls.and_then(|files| files.ca_file);
        assert_eq!(certificate.is_some(), listen == "tls");
        match certificate {
            None => assert!(answer(&mut stream).starts_with("-NOAUTH")),
            Some(path) => {
                // Plain text is no handshake.
                assert!(!answer(&mut stream).contains("NOAUTH"));
                let key = path.with_file_name("key.pem");
                let mode = fs::metadata(&key).unwrap().permissions().mode();
                assert_eq!(mode & 0o077, 0, "{mode:o}");
                let all = fs::read_to_string(path).unwrap() + &fs::read_to_string(key).unwrap();
                assert!(all.contains("BEGIN CERTIFICATE") && all.contains("PRIVATE KEY"));
            }
        }
        assert_eq!(server.settings().get("listen").map(String::as_str), Some(listen));
        server.stop().unwrap();
    }
    let refused = |more: &[(&str, &str)]| {
        let spec = spec(base.path(), more);
        start(Product::Redis, &guard, &spec).unwrap_err().to_string()
    };
    let error = refused(&[("listen", "udp")]);
    assert!(error.contains("expected `unix`, `tcp`, `tls` or `stunnel`"), "{error}");
    let error = refused(&[("listen", "tls"), ("replicas", "1")]);
    assert!(error.contains("`listen`") && error.contains("no `replicas`"), "{error}");
    assert_eq!(entries(base.path()), Vec::<String>::new());
}

#[test]
fn redis_runs_with_its_settings_and_leaves_nothing_behind() {
    if !is_installed("redis-server") {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let guard = guard();
    let cpus = Pinning::for_this_process().server;
    let mut spec = spec(base.path(), &[("save", ""), ("appendonly", "yes"), ("maxmemory", "8mb")]);
    spec.cpus = Some(cpus.clone());
    let server = start(Product::Redis, &guard, &spec).unwrap();
    assert!(runs(server.pid()));
    assert_eq!(server.died(), None);
    assert!(ask(&server, "CONFIG GET save").starts_with("*2\r\n$4\r\nsave\r\n$0\r\n\r\n"));
    assert!(ask(&server, "CONFIG GET appendonly").contains("yes"));
    assert!(ask(&server, "CONFIG GET maxmemory").contains("8388608"));
    assert!(ask(&server, "CONFIG GET port").contains("$1\r\n0\r\n"));
    assert_eq!(server.settings()["maxmemory"], "8mb");
    assert!(server.command_line()[0].ends_with("redis-server"));
    assert!(process_cpu_ns(server.pid()).unwrap() > 0);
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let allowed = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:")).unwrap();
    assert_eq!(allowed.trim().parse(), Ok(cpus[0]), "pinned to {cpus:?}");

    let (pid, sockets) = (server.pid(), socket(&server).parent().unwrap().to_path_buf());
    assert!(sockets.exists() && !entries(base.path()).is_empty());
    server.stop().unwrap();
    assert!(!runs(pid) && !sockets.exists());
    assert!(entries(base.path()).is_empty());
}

#[test]
fn replacements_of_redis_are_found_by_name_and_started() {
    let Some(redis) = SearchPath::of_process().find(&["redis-server"]) else {
        println!("skipped: redis-server is not installed");
        return;
    };
    let (base, programs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let guard = guard();
    for program in Program::ALL {
        let script = programs.path().join(program.name());
        fs::write(&script, format!("#!/bin/sh\nexec {} \"$@\"\n", redis.display())).unwrap();
        fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let search = SearchPath::new([programs.path().to_path_buf()]);
        let spec = spec(base.path(), &[("maxmemory", "8mb")]);
        let spec = ServerSpec { program: Some(program), search, ..spec };
        let server = start(Product::Redis, &guard, &spec).unwrap();
        assert!(ask(&server, "CONFIG GET maxmemory").contains("8388608"));
        assert_eq!(server.name(), program.name());
        assert_eq!(server.command_line()[0], script.display().to_string());
        server.stop().unwrap();
        // Redis itself is not on this search path.
        let failure: Failure = start(Product::Redis, &guard, &ServerSpec { program: None, ..spec })
            .unwrap_err()
            .into();
        assert_eq!(failure.class, ErrorClass::Missing);
        assert!(entries(base.path()).is_empty());
    }
}

#[test]
fn installed_replacements_of_redis_accept_its_settings() {
    let base = tempfile::tempdir().unwrap();
    let guard = guard();
    for program in Program::ALL.into_iter().filter(|p| is_installed(p.name())) {
        let settings = [("save", ""), ("appendonly", "no"), ("maxclients", "100")];
        let spec = ServerSpec { program: Some(program), ..spec(base.path(), &settings) };
        let server = start(Product::Redis, &guard, &spec).unwrap();
        assert!(ask(&server, "CONFIG GET save").starts_with("*2\r\n$4\r\nsave\r\n$0\r\n\r\n"));
        assert!(ask(&server, "CONFIG GET maxclients").contains("$3\r\n100\r\n"));
        assert!(ask(&server, "CONFIG GET port").contains("$1\r\n0\r\n"));
        server.stop().unwrap();
        assert!(entries(base.path()).is_empty());
    }
}

#[test]
fn mariadb_starts_twice_from_one_template_and_leaves_nothing_behind() {
    if !is_installed("mariadbd") {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let guard = guard();
    let mut templates = Templates::default();
    let spec = spec(base.path(), &[("innodb_buffer_pool_size", "32M"), ("skip-name-resolve", "")]);
    for _ in 0..2 {
        let started = std::time::Instant::now();
        let server = start_from(&mut templates, Product::Mysql, &guard, &spec).unwrap();
        println!("start: {:?}", started.elapsed());
        let mut greeting = [0; 16];
        UnixStream::connect(socket(&server)).unwrap().read_exact(&mut greeting).unwrap();
        assert_eq!(greeting[4], 10, "protocol version");
        assert!(
            matches!(server.endpoint(), Endpoint::Mysql(database) if database.name == "cachedyno")
        );
        let argument = "--innodb_buffer_pool_size=32M";
        assert!(server.command_line().iter().any(|a| a == argument));
        let (pid, sockets) = (server.pid(), socket(&server).parent().unwrap().to_path_buf());
        let data = entries(base.path());
        assert_eq!(data.len(), 2, "template and server: {data:?}");
        drop(server);
        assert!(!runs(pid) && !sockets.exists());
    }
    drop(templates);
    assert!(entries(base.path()).is_empty());
}

/// Logs in as root without a password and runs one statement, with the minimum of the protocol.
/// Returns the first byte of the server's reply (0 for success).
fn statement(server: &Server, text: &str) -> u8 {
    fn packet(stream: &mut UnixStream) -> Vec<u8> {
        let mut head = [0; 4];
        stream.read_exact(&mut head).unwrap();
        let length = u32::from_le_bytes([head[0], head[1], head[2], 0]);
        let mut body = vec![0; length as usize];
        stream.read_exact(&mut body).unwrap();
        body
    }
    fn send(stream: &mut UnixStream, sequence: u8, body: &[u8]) {
        let length = u32::try_from(body.len()).unwrap().to_le_bytes();
        stream.write_all(&[&length[..3], &[sequence], body].concat()).unwrap();
    }
    let mut stream = UnixStream::connect(socket(server)).unwrap();
    packet(&mut stream);
    // PROTOCOL_41, SECURE_CONNECTION, CONNECT_WITH_DB; packets of 16 MiB; utf8mb4.
    let capabilities: u32 = 0x200 | 0x8000 | 0x8;
    let login = [
        &capabilities.to_le_bytes()[..],
        &0x0100_0000_u32.to_le_bytes(),
        &[45],
        &[0; 23],
        b"root\0\0cachedyno\0",
    ]
    .concat();
    send(&mut stream, 1, &login);
    assert_eq!(packet(&mut stream)[0], 0, "login");
    send(&mut stream, 0, &[&[3], text.as_bytes()].concat());
    packet(&mut stream)[0]
}

#[test]
fn root_can_create_tables_in_the_database() {
    if !is_installed("mariadbd") {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let guard = guard();
    let server = start(Product::Mysql, &guard, &ServerSpec::new(base.path())).unwrap();
    assert_eq!(statement(&server, "CREATE TABLE t (a INT) ENGINE=InnoDB"), 0);
    assert_eq!(statement(&server, "INSERT INTO cachedyno.t VALUES (1)"), 0);
    assert_eq!(statement(&server, "INSERT INTO missing VALUES (1)"), 255);

    let wrong = spec(base.path(), &[("innodb_flush_method", "no_such_method")]);
    let failure: Failure = start(Product::Mysql, &guard, &wrong).unwrap_err().into();
    assert_eq!(failure.class, ErrorClass::Start);
    assert!(failure.message.contains("'no_such_method'"), "{failure}");

    kill(Pid::from_raw(server.pid().cast_signed()), Signal::SIGKILL).unwrap();
    eventually("the death is detected", || server.died().is_some());
    assert!(server.died().unwrap().starts_with("was killed by signal 9 (SIGKILL)"));
}

#[test]
fn errors_say_how_to_install_missing_programs() {
    let base = tempfile::tempdir().unwrap();
    let guard = guard();
    let nowhere = SearchPath::new([base.path().to_path_buf()]);
    let spec = ServerSpec { search: nowhere.clone(), ..ServerSpec::new(base.path()) };
    let failure: Failure = start(Product::Redis, &guard, &spec).unwrap_err().into();
    assert_eq!(failure.class, ErrorClass::Missing);
    assert_eq!(failure.message, "redis-server is not installed (apt-get install redis-server)");
    for program in Program::ALL {
        let spec = ServerSpec { program: Some(program), ..spec.clone() };
        let name = program.name();
        let error = start(Product::Redis, &guard, &spec).unwrap_err().to_string();
        let expected = format!("{name} is not installed (apt-get install {name}, ");
        assert!(error.starts_with(&expected), "{error}");
    }
    let error = start(Product::Mysql, &guard, &spec).unwrap_err();
    assert_eq!(error.class(), ErrorClass::Missing);
    assert_eq!(error.to_string(), "mariadbd is not installed (apt-get install mariadb-server)");
    assert!(entries(base.path()).is_empty());
}

#[test]
fn an_invalid_setting_is_reported_with_the_servers_message() {
    if !is_installed("redis-server") {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let guard = guard();
    let unknown = spec(base.path(), &[("appendfsync", "no-such-word")]);
    let failure: Failure = start(Product::Redis, &guard, &unknown).unwrap_err().into();
    assert_eq!(failure.class, ErrorClass::Start);
    assert!(failure.message.contains("appendfsync no-such-word"), "{failure}");
    assert!(failure.message.contains("exit code 1"), "{failure}");
    let ours = spec(base.path(), &[("port", "6379")]);
    let failure: Failure = start(Product::Redis, &guard, &ours).unwrap_err().into();
    assert!(failure.message.starts_with("setting `port` of redis-server"), "{failure}");
    let mut nowhere = ServerSpec::new(base.path().join("missing"));
    let error = start(Product::Redis, &guard, &nowhere).unwrap_err().to_string();
    assert!(error.starts_with("cannot use directory `"), "{error}");
    nowhere.data_parent = base.path().into();
    nowhere.cpus = Some(vec![1000]);
    let error = start(Product::Redis, &guard, &nowhere).unwrap_err().to_string();
    assert!(error.starts_with("CPU `1000` cannot be used"), "{error}");
    assert!(entries(base.path()).is_empty());
}

#[test]
fn a_server_that_never_replies_times_out() {
    if !is_installed("redis-server") {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let programs = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/bin/sleep", programs.path().join("sleep")).unwrap();
    let script = programs.path().join("redis-server");
    fs::write(&script, "#!/bin/sh\necho starting slowly\nexec sleep 600\n").unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let spec = ServerSpec {
        search: SearchPath::new([programs.path().to_path_buf()]),
        deadline: Some(std::time::Duration::from_millis(300)),
        ..ServerSpec::new(base.path())
    };
    let failure: Failure = start(Product::Redis, &guard(), &spec).unwrap_err().into();
    assert_eq!(failure.class, ErrorClass::Start);
    assert!(failure.message.contains("not ready after 300ms: socket error: "), "{failure}");
    assert!(failure.message.ends_with("; its log: starting slowly"), "{failure}");
    assert!(entries(base.path()).is_empty());
}

#[test]
fn the_reason_of_a_death_is_reported() {
    if !is_installed("redis-server") {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let guard: Guard = guard();
    let spec = ServerSpec::new(base.path());
    let server = start(Product::Redis, &guard, &spec).unwrap();
    kill(Pid::from_raw(server.pid().cast_signed()), Signal::SIGKILL).unwrap();
    eventually("the death is detected", || server.died().is_some());
    let reason = server.died().unwrap();
    assert!(reason.starts_with("was killed by signal 9 (SIGKILL)"), "{reason}");
    assert!(reason.contains("; its log: "), "{reason}");

    let server = start(Product::Redis, &guard, &spec).unwrap();
    assert!(ask(&server, "SHUTDOWN NOSAVE").is_empty());
    eventually("the exit is detected", || server.died().is_some());
    assert!(server.died().unwrap().starts_with("ended with exit code 0"));
    server.stop().unwrap();
}

fn assert_killed_owner_leaves_nothing(product: Product) {
    let base = tempfile::tempdir().unwrap();
    let mut command = role("role_owner");
    command.env("RIG_TEST_PRODUCT", product.name()).env("RIG_TEST_BASE", base.path());
    let mut owner = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let line = lines.map(Result::unwrap).find(|l| l.contains("owned ")).unwrap();
    let (pid, socket) = line.split_once("owned ").unwrap().1.split_once(' ').unwrap();
    let (pid, socket): (u32, _) = (pid.parse().unwrap(), PathBuf::from(socket));
    assert!(runs(pid) && socket.exists());
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("the server ends", || !runs(pid));
    eventually("its socket is removed", || !socket.parent().unwrap().exists());
    eventually("its data is removed", || entries(base.path()).is_empty());
}

#[test]
fn a_killed_owner_leaves_no_redis_behind() {
    if is_installed("redis-server") {
        assert_killed_owner_leaves_nothing(Product::Redis);
    }
}

#[test]
fn a_killed_owner_leaves_no_mariadb_behind() {
    if is_installed("mariadbd") {
        assert_killed_owner_leaves_nothing(Product::Mysql);
    }
}

#[test]
fn a_killed_owner_leaves_no_postgresql_behind() {
    if is_installed("postgres") {
        assert_killed_owner_leaves_nothing(Product::Postgres);
    }
}

#[test]
fn postgresql_starts_twice_from_one_template_and_its_children_end_with_it() {
    if !is_installed("postgres") {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let guard = guard();
    let mut templates = Templates::default();
    let spec = spec(base.path(), &[("shared_buffers", "32MB"), ("synchronous_commit", "off")]);
    for _ in 0..2 {
        let server = start_from(&mut templates, Product::Postgres, &guard, &spec).unwrap();
        assert!(server.command_line().iter().any(|a| a == "shared_buffers=32MB"));
        let tree = ProcessTree::new(&[server.pid()]);
        let pids = tree.pids();
        assert!(pids.len() > 2, "no child processes: {pids:?}");
        let memory = tree.memory_bytes().unwrap();
        assert!((4 << 20..200 << 20).contains(&memory), "{memory} bytes");
        let sockets = socket(&server).parent().unwrap().to_path_buf();
        let in_shared_memory = fs::read_dir("/dev/shm").unwrap().any(|entry| {
            let name = entry.unwrap().file_name().to_string_lossy().into_owned();
            pids.iter()
                .any(|pid| fs::read_to_string(format!("/proc/{pid}/maps")).unwrap().contains(&name))
        });
        assert!(!in_shared_memory, "shared memory is outside its directory");
        server.stop().unwrap();
        assert!(!pids.into_iter().any(runs) && !sockets.exists());
        assert_eq!(entries(base.path()).len(), 1, "only the template remains");
    }
    let wrong = ServerSpec {
        settings: [("wal_level".to_string(), "no_such_level".to_string())].into(),
        ..spec
    };
    let failure: Failure =
        start_from(&mut templates, Product::Postgres, &guard, &wrong).unwrap_err().into();
    assert_eq!(failure.class, ErrorClass::Start);
    assert!(failure.message.contains("\"no_such_level\""), "{failure}");
    drop(templates);
    assert!(entries(base.path()).is_empty());
}

/// The installer is a script whose child processes could continue to write to the directory.
#[test]
fn an_owner_killed_while_installing_leaves_nothing_behind() {
    if !is_installed("mariadbd") {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let mut command = role("role_owner");
    command.env("RIG_TEST_PRODUCT", "mysql").env("RIG_TEST_BASE", base.path());
    let mut owner = command.stdout(Stdio::null()).spawn().unwrap();
    let busy = |name: &String| base.path().join(name).join("data/ibdata1").exists();
    eventually("the installer writes data", || entries(base.path()).iter().any(busy));
    owner.kill().unwrap();
    owner.wait().unwrap();
    eventually("the directory is removed", || entries(base.path()).is_empty());
}

/// `PR_SET_PDEATHSIG`, which the documentation of `Server` warns about.
#[test]
fn a_server_ends_with_the_thread_that_started_it() {
    if !is_installed("redis-server") {
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let (guard, spec) = (guard(), ServerSpec::new(base.path()));
    let server =
        std::thread::spawn(move || start(Product::Redis, &guard, &spec).unwrap()).join().unwrap();
    eventually("the server ends", || server.died().is_some());
    assert!(server.died().unwrap().starts_with("was killed by signal 9 (SIGKILL)"));
}

#[test]
fn installed_servers_report_their_version() {
    for server in installed(&SearchPath::of_process()) {
        let (title, program) = match (server.name, Program::of_target(server.name)) {
            (_, Some(program)) => (program.server.title, program.name()),
            ("redis", _) => ("Redis", "redis-server"),
            ("mysql", _) => ("MariaDB", "mariadbd"),
            ("memcached", _) => ("memcached", "memcached"),
            ("postgres", _) => ("PostgreSQL", "postgres"),
            (other, _) => panic!("{other} has no server"),
        };
        assert_eq!(server.program, program);
        if is_installed(program) {
            let version = server.version.unwrap();
            assert!(version.contains(title) && !version.contains('\n'), "{version}");
        }
    }
}
