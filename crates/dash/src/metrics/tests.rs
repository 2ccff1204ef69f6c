use super::*;
use crate::fixture;

/// The metrics of the fixture run before its trial ends.
fn mid_trial() -> Metrics {
    let mut metrics = Metrics::default();
    let events = fixture::run();
    let ends = events.iter().position(|e| matches!(e, Event::TrialEnded(_))).unwrap();
    for event in &events[..ends] {
        metrics.take(event);
    }
    metrics
}

fn text(metrics: &Metrics) -> String {
    String::from_utf8(metrics.render(Form::Text)).unwrap()
}

#[track_caller]
fn assert_line(text: &str, line: &str) {
    assert!(text.lines().any(|l| l == line), "no `{line}` in\n{text}");
}

#[test]
fn a_running_trial_has_request_stage_and_usage_metrics() {
    let text = text(&mid_trial());
    let labels = r#"target="redis",cell="redis/get=0.9,set=0.1/8",phase="mixed",op="get""#;
    let duration = "cachedyno_request_duration_seconds";
    for line in [
        format!(r#"{duration}_bucket{{{labels},le="0.00001"}} 100"#),
        format!(r#"{duration}_bucket{{{labels},le="0.000152"}} 100"#),
        format!(r#"{duration}_bucket{{{labels},le="0.000153"}} 900"#),
        format!(r#"{duration}_bucket{{{labels},le="0.0025"}} 900"#),
        format!(r#"{duration}_bucket{{{labels},le="0.003"}} 1000"#),
        format!(r#"{duration}_bucket{{{labels},le="5.0"}} 1000"#),
        format!(r#"{duration}_bucket{{{labels},le="+Inf"}} 1003"#),
        format!("{duration}_count{{{labels}}} 1003"),
        format!("cachedyno_request_failures_total{{{labels}}} 3"),
        format!("cachedyno_request_errors_total{{{labels}}} 4"),
        format!("cachedyno_request_misses_total{{{labels}}} 4"),
    ] {
        assert_line(&text, &line);
    }
    assert_eq!(text.lines().filter(|l| l.contains("_seconds_bucket{")).count(), 262);
    let cell = r#"target="redis",cell="redis/get=0.9,set=0.1/8""#;
    assert_line(&text, &format!("cachedyno_stage{{{cell}}} 2"));
    assert_line(&text, &format!("cachedyno_planned_requests_per_second{{{cell}}} 2000"));
    assert_line(&text, r#"cachedyno_process_cpu_seconds_total{target="redis",side="server"} 1"#);
    assert_line(&text, r#"cachedyno_store_evicted_keys_total{target="redis"} 60"#);
    assert_line(&text, r#"cachedyno_store_connections{target="redis"} 9"#);
    assert_line(&text, "cachedyno_run_active 1");
    assert_line(&text, "cachedyno_block 1");
}

#[test]
fn lag_is_response_time_minus_service_time() {
    let text = text(&mid_trial());
    let line = text.lines().find(|l| l.starts_with("cachedyno_request_lag_seconds_total")).unwrap();
    let lag_s: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
    let exact_s: f64 = fixture::TIMES.iter().map(|(ns, n)| (ns * n) as f64 / 2e9).sum();
    assert!((lag_s / exact_s - 1.0).abs() < 0.005, "{lag_s} instead of {exact_s}");
}

#[test]
fn after_the_trial_only_its_request_metrics_remain() {
    let mut metrics = Metrics::default();
    for event in fixture::run() {
        metrics.take(&event);
    }
    let text = text(&metrics);
    assert_line(&text, "cachedyno_run_active 0");
    assert_line(&text, "cachedyno_run_done_ratio 1");
    assert_line(&text, r#"cachedyno_trials_total{target="redis",result="failed"} 1"#);
    assert_line(&text, r#"cachedyno_trials_total{target="redis",result="measured"} 0"#);
    assert!(text.contains("cachedyno_request_duration_seconds_count"));
    for dropped in ["cachedyno_stage", "cachedyno_store_", "cachedyno_process_"] {
        assert!(!text.contains(dropped), "{dropped} in\n{text}");
    }
}

#[test]
fn threads_that_share_a_name_are_numbered() {
    let used = model::ProcessUse {
        threads: [(9, "w", 3), (2, "main", 1), (5, "w", 2)]
            .map(|(id, name, cpu_ns)| model::ThreadCpu { id, name: name.into(), cpu_ns })
            .to_vec(),
        ..model::ProcessUse::default()
    };
    let expected = [("main", 1), ("w", 2), ("w 2", 3)].map(|(n, ns)| (n.to_string(), ns));
    assert_eq!(threads(&used), expected);
}

#[test]
fn every_metric_in_the_dashboard_exists() {
    let dashboard = include_str!("../../../../grafana/cachedyno.json");
    let dashboard: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    let mut metrics = mid_trial();
    let during = text(&metrics);
    for event in &fixture::run()[9..] {
        metrics.take(event);
    }
    let both = during + &text(&metrics);
    let exported: Vec<&str> = both
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let mut queries = Vec::new();
    collect_queries(&dashboard, &mut queries);
    assert!(queries.len() >= 12, "{queries:?}");
    for query in queries {
        let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let names: Vec<&str> = words.filter(|word| word.starts_with("cachedyno_")).collect();
        assert!(!names.is_empty(), "{query}");
        for name in names {
            assert!(exported.contains(&name), "`{name}` of `{query}` is not exported");
        }
    }
}

/// Collects the queries of panels and variables.
fn collect_queries<'a>(value: &'a serde_json::Value, queries: &mut Vec<&'a str>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (name, field) in fields {
                match field.as_str() {
                    Some(query) if name == "expr" || query.starts_with("label_values") => {
                        queries.push(query);
                    }
                    _ => collect_queries(field, queries),
                }
            }
        }
        serde_json::Value::Array(all) => all.iter().for_each(|one| collect_queries(one, queries)),
        _ => {}
    }
}
