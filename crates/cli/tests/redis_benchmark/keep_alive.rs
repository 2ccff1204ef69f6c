//! `-k 0`: a new connection per batch of requests, compared with the original.

use super::common::{Program, Server, form, tools};

/// Number of connections that a server has accepted so far.
fn connections(server: &Server) -> u64 {
    let stats = server.ask(&["INFO", "stats"]);
    let line = stats.lines().find_map(|l| l.strip_prefix("total_connections_received:")).unwrap();
    line.trim().parse().unwrap()
}

/// Runs a program with `-k 0`. Returns its comparable output, its number of connections, and the
/// number of `SET` calls on the server.
fn ran(program: Program, settings: &[&str], arguments: &[&str]) -> (Vec<String>, u64, u64) {
    let server = Server::with(settings);
    let before = connections(&server);
    let done = server.run(program, &[&["-k", "0", "-t", "set"], arguments].concat()).code(0);
    // The second query uses one more connection.
    let made = connections(&server) - before - 1;
    let stats = server.ask(&["INFO", "commandstats"]);
    let sets = stats.lines().find_map(|l| l.strip_prefix("cmdstat_set:calls=")).unwrap();
    let sets = sets.split(',').next().unwrap().parse().unwrap();
    (form(&done.stdout), made, sets)
}

/// Asserts that both programs print the same format and open one connection per batch, plus a few
/// to read the server's settings and for clients without remaining requests.
#[track_caller]
fn assert_same_as_original(settings: &[&str], arguments: &[&str], batches: u64, clients: u64) {
    if !tools() {
        return;
    }
    let (expected, theirs, their_sets) = ran(Program::Original, settings, arguments);
    let (got, ours, our_sets) = ran(Program::Ours, settings, arguments);
    assert_eq!(got, expected);
    assert_eq!(our_sets, their_sets);
    for made in [theirs, ours] {
        assert!((batches..=batches + clients + 3).contains(&made), "{theirs} {ours}");
    }
}

#[test]
fn each_request_has_its_own_connection() {
    assert_same_as_original(&[], &["-n", "200", "-c", "5"], 200, 5);
}

#[test]
fn each_pipeline_has_its_own_connection() {
    assert_same_as_original(&[], &["-n", "400", "-c", "4", "-P", "8", "-q"], 50, 4);
}

#[test]
fn threads_share_the_requests() {
    assert_same_as_original(&[], &["-n", "300", "-c", "6", "--threads", "2"], 300, 6);
}

#[test]
fn each_connection_logs_in_and_selects_its_database() {
    let login = ["-a", "word", "--dbnum", "3", "-n", "60", "-c", "3", "-q"];
    assert_same_as_original(&["--requirepass", "word"], &login, 60, 3);
}

#[test]
fn the_corrected_figures_include_connection_setup() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let arguments = ["-k", "0", "-n", "400", "-c", "2", "-t", "set", "--csv"];
    let ran = server.ours(&arguments).code(0).with_stderr("with -k 0 requests per second include");
    // The maximum with connection setup is not below the maximum without.
    let csv = ran.stdout.lines().last().unwrap().replace('"', "");
    let without_ms: f64 = csv.rsplit(',').next().unwrap().parse().unwrap();
    let row = ran.stderr.lines().find(|l| l.starts_with("SET ")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    // SET, five times with their units, then the counts.
    let unit = match cells[10] {
        "ns" => 1e-6,
        "µs" => 1e-3,
        "ms" => 1.0,
        _ => 1e3,
    };
    let with_ms = cells[9].parse::<f64>().unwrap() * unit;
    assert!(with_ms > without_ms * 0.98, "{row}\n{csv}");
    assert_eq!(cells[11], "400", "{row}");
}

#[test]
fn works_with_a_rate_and_a_unix_socket() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let before = connections(&server);
    let arguments = ["-k", "0", "-n", "300", "-c", "4", "--rps", "1000", "-t", "set", "-q"];
    server.ours(&arguments).code(0);
    let socket = server.socket();
    let arguments = ["-k", "0", "-n", "300", "-c", "100", "-t", "set", "-q", "-s"];
    server.ours(&[&arguments[..], &[socket.to_str().unwrap()]].concat()).code(0);
    let made = connections(&server) - before - 1;
    assert!((600..=710).contains(&made), "{made}");
}

#[test]
fn a_server_shutdown_is_an_error() {
    if !tools() {
        return;
    }
    let server = Server::new();
    let arguments = ["-k", "0", "-n", "100", "-c", "2", "-q", "shutdown", "nosave"];
    server.ours(&arguments).code(1).with_stderr("Error: ");
}
