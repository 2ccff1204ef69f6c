//! Commands on records, and commands that need no record.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::Value;

use super::common::{FAST, Finished, Place, among};

/// Two complete runs of the target `files`, oldest first.
struct Runs {
    place: Place,
    ids: [String; 2],
}

/// Returns the runs shared by concurrent tests. The last test to drop them removes them.
fn two_runs() -> Arc<Runs> {
    static SHARED: Mutex<Weak<Runs>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runs) = shared.upgrade() {
        return runs;
    }
    let place = Place::new();
    let arguments = ["--target", "files", "--set", "clients=1"];
    let blocks = ["--set", "blocks_min=3", "--set", "blocks_max=3"];
    let ids = [(), ()].map(|()| {
        let run = place.fast(&[&arguments[..], &blocks].concat());
        Place::finish(run).measured().json()["run"].as_str().unwrap().to_string()
    });
    let runs = Arc::new(Runs { place, ids });
    *shared = Arc::downgrade(&runs);
    runs
}

impl Runs {
    fn on_records(&self, arguments: &[&str]) -> Finished {
        self.place.on_records(arguments)
    }

    /// Directory of a run.
    fn path(&self, id: &str) -> PathBuf {
        let ends = |p: &PathBuf| p.to_str().unwrap().ends_with(id);
        self.place.all_records().into_iter().find(ends).unwrap()
    }
}

#[test]
fn columns_sets_the_width_of_output_to_a_pipe() {
    let runs = two_runs();
    let widest = |columns: &str| {
        let mut command = runs.place.command();
        command.args(["show", "latest", "--details", "--out"]).arg(runs.place.records());
        command.env("COLUMNS", columns);
        let shown = Place::finish(command).code(0).stdout;
        shown.lines().map(|line| line.chars().count()).max().unwrap()
    };
    assert!((101..=120).contains(&widest("120")), "{}", widest("120"));
    assert!(widest("90") <= 90, "{}", widest("90"));
    for nonsense in ["0", "-1", "wide", ""] {
        assert!((91..=100).contains(&widest(nonsense)), "{nonsense}: {}", widest(nonsense));
    }
}

#[test]
fn the_list_has_a_line_for_each_run() {
    let runs = two_runs();
    let ids = &runs.ids;
    let listed = runs.on_records(&["list"]).code(0).stdout;
    let lines: Vec<&str> = listed.lines().collect();
    assert_eq!(lines.len(), 1 + 2, "{listed}");
    assert!(lines[0].starts_with("run ") && lines[0].contains(" started (UTC) "), "{listed}");
    for (line, id) in lines[1..].iter().zip(ids) {
        assert!(line.starts_with(id), "oldest first: {listed}");
        let summary = fs::read(runs.path(id).join("summary.json")).unwrap();
        let summary: Value = serde_json::from_slice(&summary).unwrap();
        let state = summary["validity"].as_str().unwrap().to_uppercase();
        for part in [" sessions ", " quick ", &format!(" {state} "), " files"] {
            assert!(line.contains(part), "no `{part}` in {line}");
        }
    }
    let empty = Place::new();
    let listed = empty.on_records(&["list"]).code(0).stdout;
    assert!(listed.contains("no records in"), "{listed}");
    assert!(listed.contains("cachedyno run sessions"), "{listed}");
    assert!(!empty.records().exists());
}

#[test]
fn a_run_is_found_by_path_id_prefix_and_latest() {
    let runs = two_runs();
    let ids = &runs.ids;
    let shown = |run: &str| runs.on_records(&["show", run, "--format", "json"]).code(0).json();
    assert_eq!(shown("latest")["run"], ids[1].as_str());
    for id in ids {
        assert_eq!(shown(id)["run"], id.as_str());
        assert_eq!(shown(&id[..7])["run"], id.as_str());
        assert_eq!(shown(runs.path(id).to_str().unwrap())["run"], id.as_str());
    }
    let missing = runs.on_records(&["show", "zzz"]);
    missing.usage_error(&["no run `zzz`", &ids[0], &ids[1], "`latest`"]);
    // The names of both directories start with the year.
    let ambiguous = runs.on_records(&["show", "2"]);
    ambiguous.usage_error(&["run `2` is ambiguous", &ids[0], &ids[1]]);
    let directory = runs.place.disk().display().to_string();
    runs.on_records(&["show", &directory]).usage_error(&[&directory, "is not a record"]);
}

#[test]
fn the_summary_has_the_documented_keys() {
    let runs = two_runs();
    let shown = runs.on_records(&["show", "--format", "json"]).code(0);
    let summary = shown.json();
    for key in [
        "format",
        "run",
        "study",
        "scale",
        "validity",
        "reasons",
        "cells",
        "comparisons",
        "claims",
        "conditions",
        "targets",
        "failures",
        "footnotes",
        "status",
        "seed",
        "tool",
    ] {
        assert!(!summary[key].is_null(), "no `{key}` in {summary}");
    }
    assert_eq!((&summary["format"], &summary["study"]), (&1.into(), &"sessions".into()));
    assert_eq!((&summary["scale"], &summary["blocks"]), (&"quick".into(), &3.into()));
    for row in among(&summary["cells"], |_| true) {
        assert_eq!(row["load"]["arrivals"], "closed");
        for key in ["target", "product", "workload", "operation", "blocks"] {
            assert!(!row[key].is_null(), "no `{key}` in {row}");
        }
        for metric in ["rate_per_s", "service_ns_p50", "service_ns_p99", "service_ns_max"] {
            let value = &row["metrics"][metric];
            let number = |part: &str| value[part].as_f64().unwrap_or_else(|| panic!("{row}"));
            let (lo, center, hi) = (number("lo"), number("center"), number("hi"));
            assert!(lo <= center && center <= hi && center > 0.0, "{metric}: {value}");
        }
        assert!(row["charts"].is_null(), "the summary contains no charts");
        for name in ["ok", "miss", "error", "wrong"] {
            assert!(row["counts"][name].is_u64(), "no count {name} in {row}");
        }
    }
    let read = super::common::row(&summary, "files", "read");
    assert!(read["metrics"]["generator_cpu_ns_per_op"]["center"].as_f64().unwrap() > 0.0);

    let exported = runs.on_records(&["export", "latest", "--json"]).code(0);
    assert_eq!(exported.json(), summary);
    let latest = summary["run"].as_str().unwrap();
    let kept = fs::read(runs.path(latest).join("summary.json")).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    assert_same(&kept["cells"], &summary["cells"]);
}

/// Asserts that two values are equal, allowing for rounding of floating-point numbers in JSON.
#[track_caller]
fn assert_same(a: &Value, b: &Value) {
    match (a, b) {
        (Value::Array(x), Value::Array(y)) => {
            assert_eq!(x.len(), y.len());
            x.iter().zip(y).for_each(|(x, y)| assert_same(x, y));
        }
        (Value::Object(x), Value::Object(y)) => {
            assert!(x.keys().eq(y.keys()), "{a} and {b}");
            x.values().zip(y.values()).for_each(|(x, y)| assert_same(x, y));
        }
        (Value::Number(x), Value::Number(y)) if x.is_f64() && y.is_f64() => {
            let (x, y) = (x.as_f64().unwrap(), y.as_f64().unwrap());
            assert!((x - y).abs() <= 1e-12 * x.abs(), "{x} and {y}");
        }
        _ => assert_eq!(a, b),
    }
}

#[test]
fn text_and_markdown_show_the_same_run() {
    let runs = two_runs();
    let ids = &runs.ids;
    let text = runs.on_records(&["show", "--details"]).code(0).stdout;
    let markdown = runs.on_records(&["show", "--format", "markdown"]).code(0).stdout;
    for part in [ids[1].as_str(), "files", "read", "write", "change", "mixed"] {
        assert!(text.contains(part), "no `{part}` in {text}");
        assert!(markdown.contains(part), "no `{part}` in {markdown}");
    }
    assert!(text.contains("VALID") || text.contains("NOT-STEADY"), "{text}");
    assert!(!text.contains('\u{1b}'), "colours in output to a pipe: {text:?}");
    assert!(markdown.contains("\n| "), "{markdown}");
    assert!(markdown.lines().any(|l| l.starts_with('#')), "{markdown}");
}

#[test]
fn csv_has_a_line_for_each_row_and_block() {
    let runs = two_runs();
    let summary = runs.on_records(&["show", "--format", "json"]).code(0).json();
    let rows = summary["cells"].as_array().unwrap().len();
    let csv = runs.on_records(&["export", "--csv"]).code(0).stdout;
    let table: Vec<Vec<&str>> = csv.lines().map(|l| l.split(',').collect()).collect();
    assert_eq!(table.len(), 1 + rows, "{csv}");
    for column in ["run", "validity", "operation", "target", "rate_per_s", "rate_per_s_lo"] {
        assert!(table[0].contains(&column), "no `{column}` in {csv}");
    }
    let column = |name: &str| table[0].iter().position(|c| *c == name).unwrap();
    for line in &table[1..] {
        assert_eq!(line[column("target")], "files");
        assert!(line[column("rate_per_s")].parse::<f64>().unwrap() > 0.0, "{line:?}");
    }
    let blocks = runs.on_records(&["export", "--csv-blocks"]).code(0).stdout;
    assert_eq!(blocks.lines().count(), 1 + 3 * rows, "{blocks}");
    runs.on_records(&["export"]).code(2).error(&["required"]);
    runs.on_records(&["export", "--csv", "--json"]).code(2).error(&["cannot be used with"]);
}

#[test]
fn the_page_contains_its_data_and_loads_no_resources() {
    let runs = two_runs();
    let ids = &runs.ids;
    let page = runs.place.path().join("page.html");
    let printed = runs.on_records(&["report", &ids[0], "--page", page.to_str().unwrap()]).code(0);
    assert_eq!(printed.stdout.trim(), page.to_str().unwrap());
    let html = fs::read_to_string(&page).unwrap();
    let start = "<script type=\"application/json\" id=\"cachedyno-view\">";
    let data = html.split_once(start).expect("data in the page").1;
    let data = data.split_once("</script>").unwrap().0;
    let view: Value = serde_json::from_str(data).unwrap();
    assert_eq!(view["run"], ids[0].as_str());
    assert!(!view["cells"][0]["charts"].is_null(), "charts need their data");
    let lower = html.to_lowercase();
    for scheme in ["http://", "https://", "//"] {
        for before in ["src=\"", "src='", "src=", "url(", "url(\"", "url('", "@import \""] {
            let loads = format!("{before}{scheme}");
            assert!(!lower.contains(&loads), "the page would load `{loads}…`");
        }
        assert!(!lower.contains(&format!("<link href=\"{scheme}")));
    }
    assert!(!lower.contains("<link rel=\"stylesheet\""), "the page links a style sheet");

    let into_record = runs.on_records(&["report"]).code(0);
    let path = into_record.stdout.trim();
    assert!(path.ends_with(&format!("{}/report.html", ids[1])), "{path}");
    assert!(fs::read_to_string(path).unwrap().contains(&ids[1]));
    let nowhere = runs.place.path().join("no/such/page.html");
    runs.on_records(&["report", "--page", nowhere.to_str().unwrap()]).code(1).error(&[
        "no/such/page.html",
        "cannot be written",
        "--page FILE",
    ]);
}

#[test]
fn two_runs_are_compared_cell_by_cell() {
    let runs = two_runs();
    let ids = &runs.ids;
    let compared = runs.on_records(&["compare", &ids[0], &ids[1]]).code(0).stdout;
    for part in [ids[0].as_str(), ids[1].as_str(), "read", "write", "files"] {
        assert!(compared.contains(part), "no `{part}` in {compared}");
    }
    assert!(!compared.contains('\u{1b}'), "colours in output to a pipe: {compared:?}");
    assert!(compared.lines().all(|line| line.chars().count() <= 100), "{compared}");
    runs.on_records(&["compare", &ids[0], "zzz"]).usage_error(&["no run `zzz`"]);
    runs.on_records(&["compare", &ids[0]]).code(2).error(&["required"]);
}

#[test]
fn a_damaged_record_is_reported_and_does_not_hide_others() {
    let place = Place::new();
    Place::finish(place.fast(&["--target", "files", "--set", "clients=1"])).measured();
    let bad = place.records().join("20200101T000000Z-sessions-00000000");
    fs::create_dir(&bad).unwrap();
    fs::write(bad.join("header.json"), "{\"format\":1,").unwrap();
    let listed = || place.on_records(&["list"]).code(0).stdout;
    assert_eq!(listed().lines().count(), 1 + 1, "{}", listed());
    let stderr = place.on_records(&["list"]).stderr;
    assert!(
        stderr.contains("cannot list a record: ") && stderr.contains("00000000/header.json"),
        "{stderr}"
    );
    let path = bad.to_str().unwrap();
    place.on_records(&["show", path]).code(2).error(&["header.json", "line 1", "is damaged"]);
    fs::write(bad.join("header.json"), "{\"format\":99}").unwrap();
    place.on_records(&["show", path]).usage_error(&["format 99", "newer cachedyno"]);

    let record =
        super::common::Record::new(place.all_records().into_iter().find(|p| *p != bad).unwrap());
    // Without space on the disk for the page, there is no summary either.
    assert!(!listed().contains(" complete "), "{}", listed());
    fs::remove_file(record.path.join("summary.json")).unwrap();
    assert!(listed().contains(" complete "), "{}", listed());
    let mut lines = record.read("trials.jsonl");
    lines.extend_from_slice(b"{\"block\":\n");
    fs::write(record.path.join("trials.jsonl"), lines).unwrap();
    let shown = place.on_records(&["show", record.path.to_str().unwrap()]);
    shown.code(2).error(&["trials.jsonl", "line 2", "is damaged"]);
}

#[test]
fn studies_are_described_and_printed_unchanged() {
    let place = Place::new();
    let finish = |arguments: &[&str]| {
        let mut command = place.command();
        command.args(arguments);
        Place::finish(command)
    };
    let described = finish(&["studies"]).code(0).stdout;
    for part in ["sessions: ", "source: maxcluster", "targets: files, redis, mysql"] {
        assert!(described.contains(part), "no `{part}` in {described}");
    }
    for profile in ["steady (default)", "maxcluster-2019", "page"] {
        assert!(described.contains(&format!("profile {profile}:")), "{described}");
    }
    let printed = finish(&["studies", "sessions"]).code(0).stdout;
    assert_eq!(printed, include_str!("../../../../studies/sessions.toml"));
    finish(&["studies", "session"]).usage_error(&["unknown study `session`", "`sessions`"]);
}

#[test]
fn doctor_lists_the_stores_and_the_host() {
    let place = Place::new();
    let mut command = place.command();
    command.args(["doctor", "--disk"]).arg(place.disk());
    let printed = Place::finish(command).code(0).stdout;
    for part in ["stores", "files     needs no server", "CPUs of the clients", "disturb"] {
        assert!(printed.contains(part), "no `{part}` in {printed}");
    }
    let mut command = place.command();
    command.arg("doctor").env("PATH", "/nonexistent");
    let printed = Place::finish(command).code(0).stdout;
    assert!(printed.contains("apt-get install"), "{printed}");
    let mut command = place.command();
    command.args(["doctor", "--disk", "/no/such"]);
    Place::finish(command).usage_error(&["--disk `/no/such` is not a directory"]);
    place.assert_nothing_left();
}

#[test]
fn help_shows_version_and_exit_codes() {
    let place = Place::new();
    let mut command = place.command();
    command.arg("--version");
    let printed = Place::finish(command).code(0).stdout;
    assert!(printed.starts_with("cachedyno ") && printed.contains('('), "{printed}");
    let mut command = place.command();
    command.arg("--help");
    let printed = Place::finish(command).code(0).stdout;
    assert!(printed.contains("130") && printed.contains("interrupted."), "{printed}");
}

#[test]
fn quiet_and_json_print_only_the_result() {
    let place = Place::new();
    let start = ["sessions", "--scale", "quick", "--target", "files", "--set", "clients=1"];
    let run =
        |more: &[&str]| Place::finish(place.run(&[&start[..], &FAST, more].concat())).measured();
    let with_progress = run(&[]);
    for part in ["where should the sessions of a shop be kept?", "files: files on "] {
        assert!(with_progress.stderr.contains(part), "no `{part}` in {with_progress:#?}");
    }
    for quiet in [&run(&["--quiet"]), &run(&["--format", "json"])] {
        assert_eq!(quiet.stderr, "", "{quiet:#?}");
    }
    for text in [with_progress.stdout, run(&["--quiet"]).stdout] {
        let page = text.lines().find_map(|l| l.strip_prefix("page: ")).expect("the page's path");
        assert!(std::path::Path::new(page).is_file(), "{page}");
    }
    let markdown = run(&["--format", "markdown"]).stdout;
    assert!(markdown.starts_with('#') && !markdown.contains("page: "), "{markdown}");
}

#[test]
fn a_result_that_cannot_be_printed_is_an_error_and_not_a_panic() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("cachedyno"));
    let output = command.arg("studies").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("error: cannot print the result: "), "{stderr}");
}

#[test]
fn prune_needs_confirmation_and_keeps_foreign_files() {
    let place = Place::new();
    for _ in 0..3 {
        Place::finish(place.fast(&["--set", "clients=1", "--target", "files"])).measured();
    }
    let newest = place.on_records(&["show", "--format", "json"]).measured().json();
    let newest = newest["run"].as_str().unwrap().to_string();
    let mut records = place.all_records();
    records.sort_by_key(|record| record.to_str().unwrap().ends_with(&newest));
    let foreign = records[0].join("notes.txt");
    fs::write(&foreign, "mine").unwrap();
    let listed = place.on_records(&["prune", "--keep", "1"]).code(0).stdout;
    assert_eq!(listed.matches("would be removed").count(), 2, "{listed}");
    assert_eq!(place.all_records().len(), 3);
    let young = place.on_records(&["prune", "--older-than", "1h", "--yes"]).code(0).stdout;
    assert!(young.contains("no records to remove"), "{young}");
    let removed = place.on_records(&["prune", "--keep", "1", "--yes"]).code(0).stdout;
    assert!(
        removed.contains(": removed") && removed.contains("the directory is kept"),
        "{removed}"
    );
    assert_eq!(fs::read_to_string(foreign).unwrap(), "mine");
    assert_eq!(fs::read_dir(&records[0]).unwrap().count(), 1);
    assert!(!records[1].exists() && records[2].exists());
    place.on_records(&["show"]).measured();
    place.on_records(&["prune"]).code(2);
}

#[test]
fn distributions_are_exported_for_plotters() {
    let place = Place::new();
    Place::finish(place.fast(&["--set", "clients=1", "--target", "files"])).measured();
    let directory = place.path().join("hgrm");
    let printed =
        place.on_records(&["export", "--hgrm", directory.to_str().unwrap()]).code(0).stdout;
    let file = printed.lines().find(|line| line.ends_with("_write.hgrm")).unwrap();
    let text = fs::read_to_string(file).unwrap();
    assert!(text.starts_with("       Value     Percentile TotalCount 1/(1-Percentile)\n\n"));
    assert!(text.contains(" 1.000000000000 "), "{text}");
}
