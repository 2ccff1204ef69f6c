use super::*;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Whether a program is installed; with `CI=true` a missing one fails the test.
fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    let must = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    assert!(found || !must, "{program} is not installed, and CI=true");
    found
}

#[test]
fn promtool_accepts_the_metrics() {
    if !installed("promtool") {
        return;
    }
    let (_dash, address) = mid_trial();
    let (_, _, metrics) = page(address, "/metrics", "*/*");
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    promtool.stdin.take().unwrap().write_all(&metrics).unwrap();
    let output = promtool.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

/// A Prometheus that scrapes one address ten times a second; killed when dropped.
struct Prometheus {
    child: Child,
    address: SocketAddr,
    _directory: tempfile::TempDir,
}

impl Prometheus {
    fn start(scraped: SocketAddr, more: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = rig::free_port(0).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let config = format!(
            "global:\n  scrape_interval: 100ms\n  scrape_timeout: 100ms\nscrape_configs:\n\
             - job_name: cachedyno\n  static_configs:\n  - targets: ['{scraped}']\n"
        );
        fs::write(directory.path().join("prometheus.yml"), config).unwrap();
        let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
        let log = fs::File::create(directory.path().join("log")).unwrap();
        let child = Command::new("prometheus")
            .arg(flag("config.file", &directory.path().join("prometheus.yml")))
            .arg(flag("storage.tsdb.path", &directory.path().join("data")))
            .arg(format!("--web.listen-address={address}"))
            .args(more)
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { child, address, _directory: directory }
    }

    /// The first value that a query returns, as text; waits until there is one.
    fn value(&self, query: &str) -> String {
        let escaped = query.bytes().fold(String::new(), |mut escaped, byte| {
            let _ = write!(escaped, "%{byte:02x}");
            escaped
        });
        wait_until(query, || {
            TcpStream::connect(self.address).ok()?;
            let path = format!("/api/v1/query?query={escaped}");
            let mut answer = String::new();
            request(self.address, &path, "*/*").read_to_string(&mut answer).ok()?;
            let body = &answer[answer.find('{')?..=answer.rfind('}')?];
            let answer: Value = serde_json::from_str(body).ok()?;
            Some(answer["data"]["result"][0]["value"][1].as_str()?.to_string())
        })
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn prometheus_reads_the_buckets() {
    if !installed("prometheus") {
        return;
    }
    let (_dash, address) = mid_trial();
    let prometheus = Prometheus::start(address, &[]);
    let duration = "cachedyno_request_duration_seconds";
    assert_eq!(prometheus.value(&format!("{duration}_count{{op=\"get\"}}")), "1003");
    let below = format!("{duration}_bucket{{le=\"0.000153\"}}");
    assert_eq!(prometheus.value(&below), "900");
    let slowest = format!("histogram_quantile(0.999, {duration}_bucket)");
    assert_eq!(prometheus.value(&slowest), "5");
    assert_eq!(prometheus.value(&format!("count({duration}_bucket)")), "262");
    assert_eq!(prometheus.value("cachedyno_stage{target=\"redis\"}"), "2");
    let cpu = "cachedyno_process_cpu_seconds_total{side=\"server\"}";
    assert_eq!(prometheus.value(cpu), "1");
}

#[test]
fn prometheus_reads_native_histograms() {
    if !installed("prometheus") {
        return;
    }
    let (_dash, address) = mid_trial();
    let prometheus = Prometheus::start(address, &["--enable-feature=native-histograms"]);
    let duration = "cachedyno_request_duration_seconds";
    assert_eq!(prometheus.value(&format!("histogram_count({duration})")), "1003");
    // The three failed requests are slower than all answered ones.
    let slowest = prometheus.value(&format!("histogram_quantile(0.999, {duration})"));
    assert_eq!(slowest, "+Inf");
    // Of 1,000 requests 800 take 152.5 µs: the buckets are 2.2 % wide.
    for (share, expected_s) in [(0.5, 152.5e-6), (0.95, 2.75e-3)] {
        let at_s: f64 =
            prometheus.value(&format!("histogram_quantile({share}, {duration})")).parse().unwrap();
        assert!((at_s / expected_s - 1.0).abs() < 0.022, "{at_s} instead of {expected_s}");
    }
    let sum_s = prometheus.value(&format!("histogram_sum({duration})"));
    let sum_s: f64 = sum_s.parse().unwrap();
    let exact_s: f64 = crate::fixture::TIMES.iter().map(|(ns, n)| (ns * n) as f64 / 1e9).sum();
    assert!((sum_s / exact_s - 1.0).abs() < 0.001, "{sum_s} instead of {exact_s}");
}
