//! Servers at a URL that cannot be used: TLS that does not fit, wrong passwords, incomplete
//! clusters, proxies. Each is reported with its cure and in time.

use std::process::Command;
use std::time::Duration;

use super::common::{
    Certificates, Cluster, Finished, Place, PortServer, Started, count, installed, row, target,
    wait_until,
};

/// Far more than any run here takes, even on a loaded machine, and less than a hang.
const PATIENCE: Duration = Duration::from_secs(60);
const TIMEOUT: &str = "2s";

fn bench(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command();
    command.arg("bench").args(arguments).args(["--timeout", TIMEOUT, "--format", "json"]);
    command.args(["--duration", "200ms", "--warmup", "0ms", "--blocks", "1", "--clients", "2"]);
    command.args(["--keys", "2000", "--op", "get=1"]);
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    command
}

/// Runs `bench` on the target `x` with these arguments.
fn ran(arguments: &[&str]) -> Finished {
    let place = Place::new();
    let finished = Started::new(bench(&place, arguments)).finish_within(PATIENCE);
    place.assert_nothing_left();
    finished
}

/// Asserts that the target was not run for a reason with all of `parts`, and none of `others`.
#[track_caller]
fn assert_not_run(arguments: &[&str], parts: &[&str], others: &[&str]) {
    let summary = ran(arguments).code(3).json();
    let reason = target(&summary, "x")["not_run"].as_str().unwrap().to_string();
    for part in parts {
        assert!(reason.contains(part), "no `{part}` in {reason}");
    }
    for other in others {
        assert!(!reason.contains(other), "`{other}` in {reason}");
    }
}

fn has_tls_tools() -> bool {
    installed(&["redis-server", "openssl", "setpriv"])
}

#[test]
fn a_certificate_that_is_not_valid_is_reported_with_its_cure() {
    if !has_tls_tools() {
        return;
    }
    let names = [
        ("here", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
        ("elsewhere", "subjectAltName=DNS:elsewhere.example"),
        ("past", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
    ];
    let (certificates, strangers) = (Certificates::new(&names), Certificates::new(&[]));
    let (ca, other_ca) = (certificates.path("ca.pem"), strangers.path("ca.pem"));
    let server = |name: &str| certificates.redis(name, &["--tls-auth-clients", "no"]);
    let url = |server: &PortServer| format!("x=rediss://localhost:{}", server.port);

    let here = server("here");
    ran(&[&url(&here), "--cacert", &ca]).measured();
    let cure = ["not issued by a trusted authority", "--cacert FILE"];
    assert_not_run(&[&url(&here), "--cacert", &other_ca], &cure, &["--cert "]);

    let elsewhere = server("elsewhere");
    let cure = ["certificate is for another name", "--sni NAME"];
    assert_not_run(&[&url(&elsewhere), "--cacert", &ca], &cure, &["--cacert"]);

    std::fs::write(certificates.path("ext"), names[2].1).unwrap();
    certificates.expire("past");
    let past = server("past");
    let cure = ["has expired", "renew it"];
    assert_not_run(&[&url(&past), "--cacert", &ca], &cure, &["--cacert"]);
}

#[test]
fn a_missing_client_certificate_names_its_flags() {
    if !has_tls_tools() {
        return;
    }
    let certificates = Certificates::new(&[
        ("here", "subjectAltName=DNS:localhost"),
        ("client", "extendedKeyUsage=clientAuth"),
    ]);
    let strangers = Certificates::new(&[("client", "extendedKeyUsage=clientAuth")]);
    let ca = certificates.path("ca.pem");
    for protocols in ["TLSv1.3", "TLSv1.2"] {
        let settings = ["--tls-auth-clients", "yes", "--tls-protocols", protocols];
        let server = certificates.redis("here", &settings);
        let url = format!("x=rediss://localhost:{}", server.port);
        let cure = ["requires a client's certificate", "--cert FILE and --key FILE"];
        assert_not_run(&[&url, "--cacert", &ca], &cure, &["--cacert"]);
        let with = |from: &Certificates| {
            let [cert, key] = ["client.pem", "client.key"].map(|name| from.path(name));
            [&*url, "--cacert", &ca, "--cert", &cert, "--key", &key].map(String::from)
        };
        let own = with(&certificates);
        ran(&own.each_ref().map(String::as_str)).measured();
        let foreign = with(&strangers);
        let cure = ["rejects the client's certificate", "--cert FILE and --key FILE"];
        assert_not_run(&foreign.each_ref().map(String::as_str), &cure, &["--cacert"]);
    }
}

#[test]
fn a_study_takes_a_client_certificate() {
    if !has_tls_tools() {
        return;
    }
    let certificates = Certificates::new(&[
        ("here", "subjectAltName=DNS:localhost"),
        ("client", "extendedKeyUsage=clientAuth"),
    ]);
    let server = certificates.redis("here", &["--tls-auth-clients", "yes"]);
    let place = Place::new();
    let mut command = place.command();
    command.args(["run", "sizing", "--scale", "quick", "--budget", "1s", "--format", "json"]);
    command.args(["--set", "profile=throughput", "--set", "measure_ms=200", "--set", "keys=500"]);
    command.args(["--set", "blocks_min=1", "--timeout", TIMEOUT]);
    command.args(["--target", &format!("redis-tls=rediss://localhost:{}", server.port)]);
    for (flag, file) in [("--cacert", "ca.pem"), ("--cert", "client.pem"), ("--key", "client.key")]
    {
        command.args([flag, &certificates.path(file)]);
    }
    command.arg("--out").arg(place.records()).arg("--disk").arg(place.disk());
    let summary = Started::new(command).finish_within(PATIENCE).measured().json();
    assert!(count(row(&summary, "redis-tls", "get"), "ok") > 50, "{summary}");
    place.assert_nothing_left();
}

#[test]
fn a_url_without_tls_for_a_port_with_it_and_the_reverse_name_the_other_scheme() {
    if !has_tls_tools() {
        return;
    }
    let certificates = Certificates::new(&[("here", "subjectAltName=DNS:localhost")]);
    for more in [&[][..], &["--requirepass", "sesame-81"]] {
        let settings = [&["--tls-auth-clients", "no"], more].concat();
        let (plain, tls) = (PortServer::redis(more), certificates.redis("here", &settings));
        let url = |scheme: &str, server: &PortServer| {
            let login = if more.is_empty() { "" } else { ":sesame-81@" };
            format!("x={scheme}://{login}localhost:{}", server.port)
        };
        let cure = ["requires TLS on this port", "with rediss:// in place of redis://"];
        assert_not_run(&[&url("redis", &tls)], &cure, &["sesame"]);
        let cure = ["does not use TLS on this port", "with redis:// in place of rediss://"];
        let insecure = [&url("rediss", &plain), "--tls-insecure"];
        assert_not_run(&insecure, &cure, &["sesame"]);
    }
    // A server that requires a certificate of its clients does not admit the one that looks.
    let strict = certificates.redis("here", &["--tls-auth-clients", "yes"]);
    let cure = ["requires TLS on this port", "with rediss:// in place of redis://"];
    assert_not_run(&[&format!("x=redis://localhost:{}", strict.port)], &cure, &[]);
}

#[test]
fn a_wrong_password_over_tls_is_denied() {
    if !has_tls_tools() {
        return;
    }
    let certificates = Certificates::new(&[("here", "subjectAltName=DNS:localhost")]);
    let settings = ["--tls-auth-clients", "no", "--requirepass", "sesame-81"];
    let server = certificates.redis("here", &settings);
    let ca = certificates.path("ca.pem");
    let url = |login: &str| format!("x=rediss://{login}localhost:{}", server.port);
    let reason = ["denied: ", "rejected the user or the password", "WRONGPASS"];
    assert_not_run(&[&url(":barley-17@"), "--cacert", &ca], &reason, &["barley"]);
    let reason = ["denied: ", "NOAUTH", "--password-file"];
    assert_not_run(&[&url(""), "--cacert", &ca], &reason, &[]);
}

#[test]
fn a_cluster_with_a_missing_slot_is_not_run() {
    if !installed(&["redis-server", "redis-cli", "setpriv"]) {
        return;
    }
    // Slots 0 to 16383, but for one.
    let server = Cluster::server("15000");
    server.ask(&["CLUSTER", "ADDSLOTSRANGE", "0", "99", "101", "16383"]);
    let url = format!("x=redis+cluster://127.0.0.1:{}", server.port);
    let reason = ["1 of its slots has no server", "redis-cli --cluster fix"];
    assert_not_run(&[&url], &reason, &[]);
    server.ask(&["CLUSTER", "ADDSLOTS", "100"]);
    wait_until("the cluster serves all slots", PATIENCE, || {
        server.ask(&["CLUSTER", "INFO"]).contains("cluster_state:ok").then_some(())
    });
    ran(&[&url]).measured();
}

/// A proxy closes a connection on a command that it does not know.
#[test]
fn a_proxy_needs_the_servers_behind_it() {
    if !installed(&["redis-server", "redis-cli", "nutcracker", "setpriv"]) {
        return;
    }
    let servers = [PortServer::redis(&[]), PortServer::redis(&[])];
    let proxy = PortServer::nutcracker(&servers.each_ref());
    let url = format!("x=redis://127.0.0.1:{}", proxy.port);
    let cure = ["closes the connection on `INFO`", "proxy", "?behind=HOST:PORT,HOST:PORT"];
    assert_not_run(&[&url], &cure, &[]);
    assert_not_run(&[&url, "--allow-shared", "--i-own-this-server"], &cure, &[]);
    let cluster = format!("x=redis+cluster://127.0.0.1:{}", proxy.port);
    assert_not_run(&[&cluster], &["`CLUSTER SLOTS`", "proxy", "?behind="], &[]);

    let behind = servers.each_ref().map(|server| format!("127.0.0.1:{}", server.port)).join(",");
    // One of two servers, or another one, is not what is behind it.
    let other = PortServer::redis(&[]);
    for wrong in [servers[0].port, other.port] {
        let url = format!("{url}?behind=127.0.0.1:{wrong}");
        assert_not_run(&[&url], &["of 256 keys written through", "on none", "`?behind=`"], &[]);
    }
    assert!(servers.iter().all(|server| server.ask(&["DBSIZE"]) == "0"), "nothing is left");
    let unknown = format!("{url}?behind=nowhere.invalid");
    assert_not_run(&[&unknown], &["`nowhere.invalid:6379`", "has no address"], &[]);
    let whole = format!("{url}?behind={behind}");
    servers[1].ask(&["SET", "foreign", "1"]);
    assert_not_run(&[&whole], &["is not empty", "--allow-shared"], &[]);
    let summary = ran(&[&whole, "--allow-shared"]).measured().json();
    let own = row(&summary, "x", "get");
    assert!(count(own, "ok") > 50 && count(own, "error") == 0 && count(own, "miss") == 0, "{own}");
    assert!(servers.iter().all(|server| server.calls("get") > 10), "both have keys");
    let sizes = servers.each_ref().map(|server| server.ask(&["DBSIZE"]));
    assert_eq!(sizes, ["0", "1"], "only the foreign key is left");
}

/// As the original does, with a warning that the keys on the servers are unknown.
#[test]
fn redis_benchmark_measures_through_a_proxy() {
    if !installed(&["redis-server", "redis-cli", "nutcracker", "setpriv"]) {
        return;
    }
    let server = PortServer::redis(&[]);
    let proxy = PortServer::nutcracker(&[&server]);
    for more in [&[][..], &["--fleet", "local:2"]] {
        let place = Place::new();
        let mut command = place.command();
        command.args(["redis-benchmark", "-p", &proxy.port.to_string()]);
        command.args(["-t", "set,get", "-n", "1000", "-c", "4", "-q"]).args(more);
        let finished = Started::new(command).finish_within(PATIENCE).code(0);
        let rates = finished.stdout.matches(" requests per second").count();
        assert_eq!(rates, 2, "{finished:?}");
        let warning = "does not report whether it holds keys (the server closed the connection";
        assert!(finished.stderr.contains(warning), "{finished:?}");
    }
    assert_eq!(["set", "get"].map(|command| server.calls(command)), [2_000, 2_000]);
}
