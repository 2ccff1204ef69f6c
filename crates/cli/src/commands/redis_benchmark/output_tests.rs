//! Tests of standard output against texts printed by redis-benchmark 7.0.15.

use stats::Histogram;

use super::*;

fn finished(us: &[u64]) -> TestResult<'static> {
    let mut histogram = Histogram::new();
    for us in us {
        histogram.record(us * 1_000);
    }
    TestResult {
        title: "SET",
        requests: us.len() as u64,
        seconds: 0.04,
        payload_bytes: 3,
        threads: 0,
        latencies: Latencies::new(&histogram, 3),
    }
}

fn info() -> ServerInfo {
    let (save, appendonly) = ("3600 1 300 100".into(), "no".into());
    ServerInfo::Server(Some(Configuration { save, appendonly }))
}

fn options(style: Style) -> Options {
    Options { style, ..Options::default() }
}

#[test]
fn quiet_prints_one_line_per_test() {
    let text = result(&options(Style::Quiet), &info(), &finished(&[695, 695, 700, 1000]), 58);
    let clean = " ".repeat(58);
    assert_eq!(text, format!("{clean}\rSET: 100.00 requests per second, p50=0.695 msec\n"));
    let text = result(&options(Style::Quiet), &info(), &finished(&[695]), 0);
    assert_eq!(text, " \rSET: 25.00 requests per second, p50=0.695 msec\n");
}

#[test]
fn csv_prints_one_row_per_test() {
    let text = result(&options(Style::Csv), &info(), &finished(&[100, 200, 300, 1400]), 0);
    let cells = r#""SET","100.00","0.500","0.100","0.200","1.400","1.400","1.400""#;
    assert_eq!(text, format!("{cells}\n"));
    assert_eq!(
        CSV_HEADER,
        "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\
         \"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n"
    );
}

const LISTING: &str = " \r====== SET ======
  4 requests completed in 0.04 seconds
  50 parallel clients
  3 bytes payload
  keep alive: 1
  host configuration \"save\": 3600 1 300 100
  host configuration \"appendonly\": no
  multi-thread: no

Latency by percentile distribution:
0.000% <= 0.100 milliseconds (cumulative count 1)
50.000% <= 0.200 milliseconds (cumulative count 2)
75.000% <= 0.300 milliseconds (cumulative count 3)
87.500% <= 1.400 milliseconds (cumulative count 4)
100.000% <= 1.400 milliseconds (cumulative count 4)

Cumulative distribution of latencies:
25.000% <= 0.100 milliseconds (cumulative count 1)
50.000% <= 0.200 milliseconds (cumulative count 2)
75.000% <= 0.300 milliseconds (cumulative count 3)
100.000% <= 1.400 milliseconds (cumulative count 4)

Summary:
  throughput summary: 100.00 requests per second
  latency summary (msec):
          avg       min       p50       p95       p99       max
        0.500     0.100     0.200     1.400     1.400     1.400
";

#[test]
fn long_style_prints_the_full_listing() {
    let text = result(&options(Style::Long), &info(), &finished(&[100, 200, 300, 1400]), 0);
    assert_eq!(text, LISTING);
}

#[test]
fn header_lists_threads_and_cluster_nodes() {
    let threaded = TestResult { threads: 2, ..finished(&[1]) };
    let text = result(&options(Style::Long), &ServerInfo::Server(None), &threaded, 0);
    assert!(text.contains("keep alive: 1\n  multi-thread: yes\n  threads: 2\n\n"), "{text}");

    let configuration = Configuration { save: String::new(), appendonly: "yes".into() };
    let node = |id: &str, at: &str, info| (id.to_string(), at.to_string(), info);
    let nodes = vec![node("aa", "h:1", Some(configuration)), node("bb", "h:2", None)];
    assert_eq!(
        cluster(&nodes),
        "Cluster has 2 master nodes:\n\nMaster 0: aa h:1\nMaster 1: bb h:2\n\n"
    );
    let text = result(&options(Style::Long), &ServerInfo::Cluster(nodes), &threaded, 0);
    let expected = "  cluster mode: yes (2 masters)\n  node [0] configuration:\n    save: NONE\n    \
                    appendonly: yes\n  multi-thread";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn progress_fits_on_one_line() {
    let now = Progress { title: "SET", rps: (3434.34, 8886.6), mean_ms: (4.1461, 4.0) };
    assert_eq!(
        progress(&now),
        "SET: rps=3434.3 (overall: 8886.6) avg_msec=4.146 (overall: 4.000)\r"
    );
    assert_eq!(clean_line(0), " \r");
    assert_eq!(clean_line(3), "   \r");
    assert_eq!(idle_count(5), "clients: 5\r");
    assert!(idle_banner(5).starts_with("Creating 5 idle connections"));
}
