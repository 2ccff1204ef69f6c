//! A record is untrusted data: regardless of its contents, commands that read it end soon, use
//! memory bounded by its size, print a result or one error line, and change nothing outside it.
//!
//! `CACHEDYNO_ROUNDS` sets how many random changes are tried, `CACHEDYNO_SEED` the first seed.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::{Value, json};
use stats::SplitMix64;

use super::common::{Finished, Place, installed, peak_memory_kib};

const FILES: [&str; 8] = [
    "header.json",
    "targets.jsonl",
    "trials.jsonl",
    "latency.hlog",
    "samples.jsonl.gz",
    "seal.json",
    "summary.json",
    "report.html",
];

/// Every way to read a record.
const READING: [&[&str]; 9] = [
    &["list"],
    &["show", "latest"],
    &["show", "latest", "--format", "json"],
    &["show", "latest", "--format", "markdown"],
    &["report", "latest"],
    &["compare", "latest", "latest"],
    &["export", "latest", "--json"],
    &["export", "latest", "--csv"],
    &["export", "latest", "--csv-samples"],
];

/// Timeout, far above the allowed CPU time, for a busy machine.
const PATIENCE: Duration = Duration::from_secs(40);

/// A valid line for a target that is not in the plan.
const TARGET: &[u8] =
    b"{\"target\":\"x\",\"version\":null,\"configuration\":[],\"unavailable\":null}\n";

/// A record, next to files that no command may change.
struct Foreign {
    place: Place,
    record: PathBuf,
    /// Original content of its files.
    original: BTreeMap<String, Vec<u8>>,
}

/// A finished command and its peak memory.
struct Measured {
    finished: Finished,
    memory_bytes: u64,
}

impl Foreign {
    /// A record of sessions in files.
    fn new() -> Self {
        let place = Place::new();
        let files = ["--set", "clients=1", "--target", "files"];
        Place::finish(place.fast(&files)).measured();
        Self::of(place)
    }

    /// A record of a ramp, with stages, samples and a latency log.
    fn ramp() -> Option<Self> {
        if !installed(&["redis-server"]) {
            return None;
        }
        let place = Place::new();
        let start = ["ramp", "--scale", "quick", "--format", "json", "--target", "redis"];
        let sets = ["stage_ms=100", "measure_ms=150", "warmup_ms=20", "blocks_min=1"];
        let more = ["blocks_max=1", "keys=2000", "rates=1000,2000"];
        let sets = sets.iter().chain(&more).flat_map(|set| ["--set", set]);
        Place::finish(place.run(&start.into_iter().chain(sets).collect::<Vec<_>>())).measured();
        Some(Self::of(place))
    }

    fn of(place: Place) -> Self {
        let record = place.record().path;
        place.write("outside.txt", "not yours");
        fs::create_dir(place.path().join("outside")).unwrap();
        place.write("outside/deep.jsonl", "{\"not\":\"yours\"}\n{\"torn");
        let read = |name: &&str| Some((name.to_string(), fs::read(record.join(name)).ok()?));
        let original = FILES.iter().filter_map(read).collect();
        Self { place, record, original }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.record.join(name)
    }

    fn outside(&self) -> PathBuf {
        self.place.path().join("outside.txt")
    }

    /// Restores the original files.
    fn restore(&self) {
        for entry in fs::read_dir(&self.record).unwrap() {
            let path = entry.unwrap().path();
            if path.symlink_metadata().unwrap().is_dir() {
                fs::remove_dir_all(path).unwrap();
            } else {
                fs::remove_file(path).unwrap();
            }
        }
        for (name, bytes) in &self.original {
            fs::write(self.path(name), bytes).unwrap();
        }
    }

    fn replace(&self, name: &str, put: impl FnOnce(&Path)) {
        let path = self.path(name);
        // An earlier change can have left a FIFO here, to which a write would block.
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
        put(&path);
    }

    fn header(&self, change: impl FnOnce(&mut Value)) {
        let mut header: Value = serde_json::from_slice(&self.original["header.json"]).unwrap();
        change(&mut header);
        fs::write(self.path("header.json"), header.to_string()).unwrap();
    }

    fn first_trial(&self) -> Value {
        let text = String::from_utf8(self.original["trials.jsonl"].clone()).unwrap();
        serde_json::from_str(text.lines().next().unwrap()).unwrap()
    }

    fn trials(&self, trials: &[Value]) {
        let lines: Vec<String> = trials.iter().map(Value::to_string).collect();
        fs::write(self.path("trials.jsonl"), lines.join("\n") + "\n").unwrap();
    }

    fn size(&self) -> u64 {
        let known = fs::read_dir(&self.record).unwrap().map(|e| e.unwrap().metadata().unwrap());
        known.filter(std::fs::Metadata::is_file).map(|known| known.len()).sum()
    }

    /// Content and inode of every file outside the record.
    fn outside_files(&self) -> BTreeMap<PathBuf, (Vec<u8>, u64)> {
        let mut all = BTreeMap::new();
        let mut open = vec![self.place.path().to_path_buf()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let known = path.symlink_metadata().unwrap();
                if known.is_dir() && path != self.record {
                    open.push(path);
                } else if known.is_file() {
                    all.insert(path.clone(), (fs::read(&path).unwrap(), known.ino()));
                }
            }
        }
        all
    }

    /// Runs a command on the records and asserts the guarantees listed at the top of this file.
    fn check(&self, arguments: &[&str], what: &str) -> Finished {
        let (before, size) = (self.outside_files(), self.size());
        let mut command = self.place.command();
        command.args(arguments).arg("--out").arg(self.place.records());
        let Measured { finished, memory_bytes } = measured(command);
        let context = format!("{arguments:?} after {what}: {finished:#?}");
        assert!(matches!(finished.code, Some(0..=2)), "{context}");
        let said = &finished.stderr;
        assert!(!said.contains("panicked") && !said.contains("contradict each other"), "{context}");
        let most = 100_000_000 + 10 * size;
        assert!(memory_bytes < most, "{memory_bytes} bytes of memory for {size}: {context}");
        assert!(finished.took < PATIENCE, "{context}");
        let around = self.outside_files();
        let differs = |(path, was): &(&PathBuf, &(Vec<u8>, u64))| around.get(*path) != Some(*was);
        let changed: Vec<_> = before.iter().filter(differs).map(|(path, _)| path).collect();
        assert!(changed.is_empty() && around.len() == before.len(), "{changed:?}: {context}");
        finished
    }

    fn check_all(&self, what: &str) {
        for arguments in READING {
            self.check(arguments, what);
        }
    }
}

/// Runs a command to its end and samples its peak memory.
fn measured(mut command: Command) -> Measured {
    let output = tempfile::tempdir().unwrap();
    let file = |name| fs::File::create(output.path().join(name)).unwrap();
    command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err"));
    let since = Instant::now();
    let mut child = command.spawn().unwrap();
    let mut memory_bytes = 0;
    let code = loop {
        memory_bytes = memory_bytes.max(peak_memory_kib(child.id()).unwrap_or(0) * 1024);
        if let Some(status) = child.try_wait().unwrap() {
            break status.code();
        }
        if since.elapsed() > PATIENCE {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let text = |name| String::from_utf8_lossy(&fs::read(output.path().join(name)).unwrap()).into();
    let finished =
        Finished { code, stdout: text("out"), stderr: text("err"), took: since.elapsed() };
    Measured { finished, memory_bytes }
}

fn gzip(parts: &[(&[u8], usize)]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    for (part, times) in parts {
        for _ in 0..*times {
            packed.write_all(part).unwrap();
        }
    }
    packed.finish().unwrap()
}

#[test]
fn links_are_not_followed_and_only_regular_files_are_read() {
    let foreign = Foreign::new();
    let outside = foreign.outside();
    for name in ["report.html", "summary.json"] {
        foreign.restore();
        foreign.replace(name, |path| symlink(&outside, path).unwrap());
        foreign.check_all(&format!("{name} is a link"));
    }
    assert!(!foreign.path("report.html").is_symlink(), "the page replaces the link");
    for name in ["header.json", "trials.jsonl", "targets.jsonl", "samples.jsonl.gz", "seal.json"] {
        let kept = foreign.place.path().join("outside/kept");
        fs::write(&kept, &foreign.original[name]).unwrap();
        foreign.restore();
        foreign.replace(name, |path| symlink(&kept, path).unwrap());
        let path = foreign.record.to_string_lossy().into_owned();
        let shown = foreign.check(&["show", &path], &format!("{name} is a link"));
        shown.code(2).error(&[name, "symbolic link", "expected a regular file"]);
        foreign.replace(name, |path| mkfifo(path, Mode::from_bits_truncate(0o600)).unwrap());
        let shown = foreign.check(&["show", &path], &format!("{name} is a FIFO"));
        shown.code(2).error(&[name, "FIFO", "expected a regular file"]);
        foreign.check(&["list"], &format!("{name} is a FIFO"));
    }
}

#[test]
fn sparse_files_are_refused_without_using_memory() {
    let foreign = Foreign::new();
    let path = foreign.record.to_string_lossy().into_owned();
    for name in ["header.json", "trials.jsonl", "targets.jsonl", "samples.jsonl.gz", "seal.json"] {
        foreign.restore();
        let file = fs::OpenOptions::new().write(true).open(foreign.path(name)).unwrap();
        file.set_len(1 << 30).unwrap();
        let mut command = foreign.place.command();
        command.args(["show", &path]);
        let Measured { finished, memory_bytes } = measured(command);
        finished.code(2).error(&[name, "has a hole"]);
        assert!(memory_bytes < 100_000_000, "{name}: {memory_bytes}");
    }
}

#[test]
fn a_record_behind_a_link_is_found_only_by_its_path() {
    let foreign = Foreign::new();
    let elsewhere = foreign.place.path().join("elsewhere");
    fs::rename(&foreign.record, &elsewhere).unwrap();
    symlink(&elsewhere, &foreign.record).unwrap();
    let listed = foreign.place.on_records(&["list"]).code(0);
    assert!(listed.stdout.contains("no records"), "{listed:?}");
    foreign.place.on_records(&["show", "latest"]).usage_error(&["no run `latest`"]);
    foreign.place.on_records(&["show", foreign.record.to_str().unwrap()]).code(0);
}

#[test]
fn resuming_refuses_symbolic_and_hard_links() {
    let foreign = Foreign::new();
    let resume = |name: &str, part: &str| {
        let before = foreign.outside_files();
        let resumed = Place::finish(foreign.place.run(&["--resume", "latest"]));
        assert!(matches!(resumed.code, Some(1 | 2)), "{resumed:?}");
        resumed.error(&[name, part]);
        assert!(before == foreign.outside_files(), "{name} {part}");
    };
    for name in ["trials.jsonl", "targets.jsonl", "samples.jsonl.gz", "lock"] {
        let kept = foreign.place.path().join("outside/kept");
        let torn =
            [foreign.original.get(name).map_or(&b""[..], |bytes| bytes), b"{\"torn"].concat();
        fs::write(&kept, torn).unwrap();
        for link in [true, false] {
            foreign.restore();
            fs::remove_file(foreign.path("seal.json")).unwrap();
            if link {
                foreign.replace(name, |path| symlink(&kept, path).unwrap());
                resume(name, "symbolic link");
            } else {
                foreign.replace(name, |path| fs::hard_link(&kept, path).unwrap());
                resume(name, "hard links");
            }
        }
    }
}

#[test]
fn a_page_is_written_only_to_a_regular_file() {
    let foreign = Foreign::new();
    let (link, outside) = (foreign.place.path().join("link.html"), foreign.outside());
    symlink(&outside, &link).unwrap();
    for page in [link.to_str().unwrap(), "/dev/null", foreign.place.path().to_str().unwrap()] {
        let written = foreign.check(&["report", "latest", "--page", page], "nothing");
        written.code(1).error(&[page, "cannot be written", "--page FILE"]);
    }
    assert_eq!(fs::read_to_string(outside).unwrap(), "not yours");
}

#[test]
fn files_changed_after_the_seal_are_named_everywhere() {
    let foreign = Foreign::new();
    let said = |arguments: &[&str]| foreign.check(arguments, "an edit").code(0).stdout;
    let changed = "changed after it was sealed";
    foreign.check(&["report"], "nothing");
    fs::remove_file(foreign.path("summary.json")).unwrap();
    // A run of one block cannot be compared.
    for arguments in READING.iter().filter(|words| words[0] != "compare") {
        let text = said(arguments);
        assert!(!text.contains("changed after") && !text.contains(", changed"), "{text}");
    }
    let mut trial = foreign.first_trial();
    trial["took_ns"] = json!(trial["took_ns"].as_u64().unwrap() + 1);
    foreign.trials(&[trial]);
    for arguments in [&["show"][..], &["show", "--format", "markdown"]] {
        let text = said(arguments).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(changed) && text.contains("trials.jsonl"), "{text}");
    }
    for arguments in [&["show", "--format", "json"][..], &["export", "latest", "--json"]] {
        let view: Value = serde_json::from_str(&said(arguments)).unwrap();
        assert_eq!(view["changed"], json!(["trials.jsonl"]));
    }
    for csv in ["--csv", "--csv-blocks", "--csv-samples"] {
        let exported = foreign.check(&["export", "latest", csv], "an edit").code(0);
        assert!(exported.stderr.contains(changed) && !exported.stdout.contains(changed), "{csv}");
    }
    said(&["report"]);
    assert!(fs::read_to_string(foreign.path("report.html")).unwrap().contains(changed));
    assert!(said(&["list"]).contains(", changed"));
}

#[test]
fn a_resumed_record_is_sealed_again_and_does_not_hide_an_edit() {
    let foreign = Foreign::new();
    let mut seal: Value = serde_json::from_slice(&foreign.original["seal.json"]).unwrap();
    seal["status"] = json!("interrupted");
    for (edit, expected) in [(false, Value::Null), (true, json!(["targets.jsonl"]))] {
        foreign.restore();
        fs::write(foreign.path("seal.json"), seal.to_string()).unwrap();
        if edit {
            let target = OpenOptions::new().append(true).open(foreign.path("targets.jsonl"));
            target.unwrap().write_all(TARGET).unwrap();
        }
        let resumed = Place::finish(foreign.place.run(&["--resume", "latest", "--format", "json"]));
        assert_eq!(resumed.measured().json()["changed"], expected);
        let shown = foreign.check(&["show", "--format", "json"], "resuming").code(0).json();
        assert_eq!((&shown["changed"], &shown["status"]), (&expected, &json!("complete")));
    }
}

#[test]
fn decompression_bombs_stay_harmless() {
    let foreign = Foreign::new();
    let line = br#"{"block":0,"cell":"files/steady/1","at_ns":[0"#;
    let rest = br#"],"interface":null,"counters":{"generator_cpu_ns":[0]},"server_threads":[],"generator_threads":["#;
    let thread = br#"{"id":1,"name":"t","cpu_ns":[0]},"#;
    let last = br#"{"id":1,"name":"t","cpu_ns":[0]}]}"#;
    let long = "n".repeat(60_000);
    let long = format!(r#"{{"id":1,"name":"{long}","cpu_ns":[0]}}]}}"#);
    let whole: &[u8] = b"\n";
    let zeros = ",0".repeat(1_000);
    let bombs = [
        // Zeros, a line without an end, many samples, many threads of many samples, a long name.
        gzip(&[(&[0; 1 << 14], 4_000)]),
        gzip(&[(&[b' '; 1 << 14], 4_000)]),
        gzip(&[(line, 1), (zeros.as_bytes(), 10_000), (rest, 1), (last, 1), (whole, 1)]),
        gzip(&[
            (line, 1),
            (zeros.as_bytes(), 100),
            (rest, 1),
            (thread, 20_000),
            (last, 1),
            (whole, 1),
        ]),
        gzip(&[(line, 1), (zeros.as_bytes(), 100), (rest, 1), (long.as_bytes(), 1), (whole, 1)]),
    ];
    for (number, bomb) in bombs.iter().enumerate() {
        foreign.restore();
        fs::write(foreign.path("samples.jsonl.gz"), bomb).unwrap();
        for arguments in [&["show"][..], &["export", "latest", "--csv-samples"], &["report"]] {
            foreign.check(arguments, &format!("bomb {number}"));
        }
    }
}

#[test]
fn histograms_of_any_range_stay_small() {
    let foreign = Foreign::new();
    let mut trial = foreign.first_trial();
    // One request of 100 years, in 60 bytes; expanded into counters, each takes 400 kB.
    let far = histogram_of(u64::MAX / 4);
    let phase = &mut trial["points"][0];
    let operation = phase["operations"][0].clone();
    let many = (0..2_000).map(|n| {
        let mut operation = operation.clone();
        operation["operation"] = json!(format!("o{n}"));
        for time in ["service", "response", "lock_wait"] {
            operation[time] = json!(far);
        }
        operation
    });
    phase["operations"] = Value::Array(many.collect());
    foreign.trials(&[trial]);
    for arguments in [&["show"][..], &["report"], &["export", "latest", "--csv-blocks"]] {
        foreign.check(arguments, "many histograms");
    }
}

/// An encoded histogram with one value.
fn histogram_of(ns: u64) -> String {
    let mut histogram = stats::Histogram::new();
    histogram.record(ns);
    histogram.encode()
}

#[test]
fn impossible_numbers_are_refused_by_name() {
    let foreign = Foreign::new();
    let path = foreign.record.to_string_lossy().into_owned();
    let plans: [(&str, Value); 6] = [
        ("/plan/effort/blocks_max", json!(4_000_000_000_u32)),
        ("/plan/cells/0/load/clients", json!(4_000_000_000_u32)),
        ("/plan/timeout_ns", json!(i64::MAX)),
        ("/plan/cells/0/workload/value_bytes", json!(1_u64 << 40)),
        ("/plan/equivalence_zone", json!(1e300)),
        ("/started_unix_ms", json!(u64::MAX)),
    ];
    for (pointer, value) in plans {
        foreign.restore();
        foreign.header(|header| *header.pointer_mut(pointer).unwrap() = value.clone());
        let key = pointer.rsplit('/').next().unwrap();
        let shown = foreign.check(&["show", &path], pointer).code(2);
        shown.error(&["header.json`", &format!("{key}`"), "expected"]);
    }
    let mut trial = foreign.first_trial();
    trial["points"][0]["length_ns"] = json!(u64::MAX);
    foreign.restore();
    foreign.trials(&[foreign.first_trial(), trial]);
    let shown = foreign.check(&["show", &path], "a phase of 584 years").code(2);
    shown.error(&["trials.jsonl`, line 2", "`length_ns`", "expected"]);
}

#[test]
fn many_small_entries_are_read_quickly() {
    let foreign = Foreign::new();
    let mut small = foreign.first_trial();
    small["points"] = json!([]);
    let of = |n: u32| {
        let mut trial = small.clone();
        trial["block"] = json!(n);
        trial
    };
    foreign.trials(&(0..6_000).map(of).collect::<Vec<_>>());
    foreign.check(&["show"], "6,000 blocks");
    foreign.check(&["list"], "6,000 blocks");
    foreign.trials(&(0..6_000).map(|_| of(0)).collect::<Vec<_>>());
    foreign.check(&["show"], "one block 6,000 times");
    foreign.restore();
    foreign.header(|header| {
        let cell = header["plan"]["cells"][0].clone();
        header["plan"]["cells"] = (0..4_000).map(|_| cell.clone()).collect();
    });
    foreign.check(&["show"], "4,000 cells");
    foreign.restore();
    foreign.header(|header| header["command"] = json!(vec![""; 500_000]));
    foreign.check(&["show", "--format", "json"], "500,000 words");
    foreign.restore();
    fs::write(foreign.path("header.json"), "[".repeat(1_000_000)).unwrap();
    foreign.check(&["list"], "depth");
    foreign.restore();
    fs::write(foreign.path("trials.jsonl"), vec![b'x'; 3_000_000]).unwrap();
    foreign.check(&["show"], "a line without an end");
}

fn one_of<'a, T>(random: &mut SplitMix64, all: &'a [T]) -> &'a T {
    &all[random.index(all.len())]
}

/// Changes one value somewhere in a line of JSON.
fn change_json(text: &[u8], random: &mut SplitMix64) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> =
        text.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    if lines.is_empty() {
        return b"{}\n".to_vec();
    }
    let at = random.index(lines.len());
    let Ok(mut value) = serde_json::from_slice::<Value>(&lines[at]) else { return text.to_vec() };
    let mut place = &mut value;
    // Deep enough for every key; sometimes stops at a branch.
    for _ in 0..=random.index(12) {
        let random = &mut *random;
        place = match &*place {
            Value::Object(map) if !map.is_empty() => {
                let key = map.keys().nth(random.index(map.len())).unwrap().clone();
                &mut place[key]
            }
            Value::Array(list) if !list.is_empty() => {
                let at = random.index(list.len());
                &mut place[at]
            }
            _ => break,
        };
    }
    let (doubled, far) = (json!([place.clone(), place.clone()]), json!(histogram_of(u64::MAX / 4)));
    let odd = [
        json!(-1),
        json!(0),
        json!(1),
        json!(u64::MAX),
        json!(i64::MAX),
        json!(1e308),
        json!(-0.5),
        json!(u32::MAX),
        json!(4_000_000_000_000_u64),
        json!(""),
        json!("../../outside.txt"),
        json!("\u{1b}]0;x\u{7}"),
        json!("x".repeat(70_000)),
        Value::Null,
        json!([]),
        json!({}),
        json!(true),
        json!([[]]),
        doubled,
        far,
    ];
    *place = one_of(random, &odd).clone();
    lines[at] = format!("{value}\n").into_bytes();
    if random.index(8) == 0 {
        let again = lines[at].clone();
        lines.extend(std::iter::repeat_n(again, random.index(50)));
    }
    lines.concat()
}

fn change_bytes(text: &[u8], random: &mut SplitMix64) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for _ in 0..=random.index(4) {
        let length = bytes.len();
        if length == 0 {
            bytes.push(b'x');
            continue;
        }
        let at = random.index(length);
        match random.index(4) {
            0 => bytes[at] ^= 1 << random.index(8),
            1 => bytes.truncate(at),
            2 => bytes.insert(at, *one_of(random, b"0\n{[\"\x00\xff9-")),
            _ => {
                let part = bytes[at..(at + random.index(200)).min(length)].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }
    bytes
}

/// Changes one file of the record; returns its name.
fn change(foreign: &Foreign, random: &mut SplitMix64) -> String {
    let names: Vec<&String> = foreign.original.keys().collect();
    let name = one_of(random, &names).as_str();
    let outside = foreign.outside();
    match random.index(12) {
        0 => foreign.replace(name, |path| symlink(&outside, path).unwrap()),
        1 => foreign.replace(name, |path| fs::hard_link(&outside, path).unwrap()),
        2 => foreign.replace(name, |path| mkfifo(path, Mode::from_bits_truncate(0o600)).unwrap()),
        3 => foreign.replace(name, |path| fs::create_dir(path).unwrap()),
        4 => foreign.replace(name, |_| {}),
        5 => {
            let bytes = change_bytes(&foreign.original[name], random);
            foreign.replace(name, |path| fs::write(path, bytes).unwrap());
        }
        6 => {
            let mut line = Vec::new();
            let packed = &foreign.original["samples.jsonl.gz"][..];
            std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed), &mut line)
                .unwrap();
            let line = change_json(&line, random);
            let packed = gzip(&[(&line, 1)]);
            foreign.replace("samples.jsonl.gz", |path| fs::write(path, packed).unwrap());
            return "samples.jsonl.gz".into();
        }
        _ => {
            let name =
                *one_of(random, &["header.json", "trials.jsonl", "trials.jsonl", "targets.jsonl"]);
            let changed = change_json(&foreign.original[name], random);
            foreign.replace(name, |path| fs::write(path, changed).unwrap());
            return name.into();
        }
    }
    name.into()
}

#[test]
fn records_changed_at_random_do_no_harm() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let (rounds, seed) = (number("CACHEDYNO_ROUNDS").unwrap_or(40), number("CACHEDYNO_SEED"));
    let mut records = vec![Foreign::new()];
    records.extend(Foreign::ramp());
    for round in 0..rounds {
        let mut random = SplitMix64::new(seed.unwrap_or(14).wrapping_mul(1 << 32) + round);
        let foreign = &records[random.index(records.len())];
        foreign.restore();
        let what: Vec<String> =
            (0..=random.index(3)).map(|_| change(foreign, &mut random)).collect();
        let arguments = *one_of(&mut random, &READING);
        foreign.check(arguments, &format!("{what:?} in round {round}"));
    }
}
