//! The six commands of a cloud provider's guide to benchmarking its caches, verbatim except for
//! host and password.
//!
//! Source:
//! <https://learn.microsoft.com/azure/azure-cache-for-redis/cache-best-practices-performance>.

use super::cluster::Cluster;
use super::common::{Server, installed, tools};
use super::tls::{Certificates, LOCALHOST};

const KEY: &str = "yourAccesskey";
const AUTH: [&str; 2] = ["--requirepass", KEY];

/// Splits a command line into arguments.
fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

#[test]
fn fill_then_latency_then_throughput() {
    if !tools() {
        return;
    }
    let server = Server::with(&AUTH);
    let fill = server.ours(&words("-a yourAccesskey -t SET -n 10 -d 1024")).code(0);
    assert!(fill.stdout.contains("====== SET ======\n  10 requests completed in"), "{fill:?}");
    assert_eq!(server.ask(&["STRLEN", "key:__rand_int__"]), "1024");

    let latency = server.ours(&words("-a yourAccesskey -t GET -d 1024 -P 50 -c 4")).code(0);
    let latency =
        latency.with_stderr("without -r").with_stderr("with -P 50").without_stderr("found nothing");
    assert!(latency.stdout.contains("  100000 requests completed in"), "{latency:?}");
    assert!(latency.stdout.contains("  4 parallel clients\n"), "{latency:?}");

    let line = "-a yourAccesskey -t GET -n 1000000 -d 1024 -P 50 -c 50";
    let throughput = server.ours(&words(line)).code(0).without_stderr("found nothing");
    assert!(throughput.stdout.contains("  1000000 requests completed in"), "{throughput:?}");

    let threads = format!("{line} --threads 32");
    let threads = server.ours(&words(&threads)).code(0).with_stderr("exceeds the number of CPUs");
    assert!(threads.stdout.contains("  threads: 32\n"), "{threads:?}");
    let calls = server.ask(&["INFO", "commandstats"]);
    assert!(calls.contains("cmdstat_get:calls=2100000,"), "{calls}");
}

#[test]
fn throughput_with_tls() {
    if !tools() || !installed(&["openssl"]) {
        return;
    }
    let certificates = Certificates::new(&[LOCALHOST]);
    let server =
        certificates.server("server", &[&["--tls-auth-clients", "no"], &AUTH[..]].concat());
    // The system's authorities, since the guide's command does not name any.
    let system = [("SSL_CERT_FILE", certificates.path("ca.pem"))];
    let fill = words("-a yourAccesskey -t SET -n 10 -d 1024 --tls");
    server.ours_with(&system, &fill).code(0);
    let line = "-a yourAccesskey -t GET -n 1000000 -d 1024 -P 50 -c 50 --tls";
    let ran = server.ours_with(&system, &words(line)).code(0).without_stderr("found nothing");
    assert!(ran.stdout.contains("  1000000 requests completed in"), "{ran:?}");
}

#[test]
fn throughput_of_a_cluster() {
    if !tools() {
        return;
    }
    let cluster = Cluster::with(0, &["--requirepass", KEY, "--masterauth", KEY]);
    let line = "-a yourAccesskey -t GET -n 1000000 -d 1024 -P 50 -c 50 --cluster";
    let ran = cluster.first().ours(&words(line)).code(0).with_stderr("every GET found nothing");
    assert!(ran.stdout.starts_with("Cluster has 3 master nodes:\n\nMaster 0: "), "{ran:?}");
    assert!(ran.stdout.contains("  1000000 requests completed in"), "{ran:?}");
    assert_eq!(cluster.calls("get").iter().sum::<u64>(), 1_000_000);
}
