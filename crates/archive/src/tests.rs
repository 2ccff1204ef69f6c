use super::*;
use crate::directory::Directory;
use model::{
    Choices, Conditions, ErrorClass, Event, Header, Interval, Scale, Seal, SealStatus, Sink, Study,
    TargetState, Trial,
};
use std::fs;
use std::io::Write as _;
use std::path::Path;

fn header(run: &str, started_unix_ms: u64) -> Header {
    let study = Study::parse("s", include_str!("../../../studies/sessions.toml")).unwrap();
    let plan = study.plan(&Choices::new(Scale::Quick, 1)).unwrap();
    Header {
        format: 1,
        run: run.into(),
        tool: "cachedyno test".into(),
        command: vec!["cachedyno".into()],
        started_unix_ms,
        plan,
        conditions: Conditions::default(),
        host_mark: None,
        null_rates: Vec::new(),
        calibration: None,
    }
}

fn trial(block: u32) -> Trial {
    Trial {
        block,
        cell: "files/steady/1".into(),
        started_unix_ms: 1,
        took_ns: 2,
        ..Trial::default()
    }
}

fn seal() -> Seal {
    Seal {
        null_rates: Vec::new(),
        status: SealStatus::Complete,
        finished_unix_ms: 5,
        blocks: 1,
        stopped_because: "budget".into(),
        resumed: false,
        lost: false,
    }
}

fn write(records: &Path, run: &str, started: u64) -> PathBuf {
    let mut writer = Writer::create(records, &header(run, started)).unwrap();
    writer
        .event(&Event::TargetChecked(TargetState {
            target: "files".into(),
            version: Some("files on ext4".into()),
            ..TargetState::default()
        }))
        .unwrap();
    writer.event(&Event::TrialEnded(Box::new(trial(0)))).unwrap();
    writer.path().to_path_buf()
}

#[test]
fn records_are_read_back_unchanged() {
    let records = tempfile::tempdir().unwrap();
    let path = write(records.path(), "aabbccdd", 1_795_289_000_000);
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    assert_eq!(name, "20261121T192320Z-sessions-aabbccdd");
    let record = Record::read(&path).unwrap();
    assert_eq!(record.trials, [trial(0)]);
    assert_eq!(record.targets[0].version.as_deref(), Some("files on ext4"));
    assert!(record.seal.is_none());
    assert_eq!(record.header, header("aabbccdd", 1_795_289_000_000));
}

#[test]
fn a_run_sealed_during_reading_is_not_reported_as_killed() {
    let records = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(records.path(), &header("aabbccdd", 0)).unwrap();
    let directory = Directory::of_record(writer.path()).unwrap();
    let ending = reader::ending(&directory, |_| {
        writer.event(&Event::RunEnded(seal())).unwrap();
        false
    });
    let ending = ending.unwrap();
    assert_eq!((ending.seal, ending.running), (Some(seal()), false));
}

#[test]
fn a_torn_line_is_ignored_and_cut_off_on_resuming() {
    let records = tempfile::tempdir().unwrap();
    let path = write(records.path(), "aabbccdd", 0);
    let torn = fs::OpenOptions::new().append(true).open(path.join(TRIALS));
    torn.unwrap().write_all(b"{\"block\":1,\"posi").unwrap();
    assert_eq!(Record::read(&path).unwrap().trials.len(), 1);
    let mut writer = Writer::resume(&path).unwrap();
    writer.event(&Event::TrialEnded(Box::new(trial(1)))).unwrap();
    writer.event(&Event::RunEnded(seal())).unwrap();
    let record = Record::read(&path).unwrap();
    assert_eq!(record.trials, [trial(0), trial(1)]);
    assert_eq!(record.seal, Some(seal()));
}

#[test]
fn points_of_a_trial_under_way_are_read_until_its_line_is_written() {
    let records = tempfile::tempdir().unwrap();
    let path = write(records.path(), "aabbccdd", 0);
    let part = |block, number| {
        let point = model::Point { stage: Some(number), ..model::Point::default() };
        Trial { points: vec![point], took_ns: u64::from(number), ..trial(block) }
    };
    let mut writer = Writer::resume(&path).unwrap();
    for part in [part(1, 0), part(2, 0), part(1, 1)] {
        writer.event(&Event::PointEnded(Box::new(part))).unwrap();
    }
    let torn = fs::OpenOptions::new().append(true).open(path.join(POINTS));
    torn.unwrap().write_all(b"{\"block\":1,\"posi").unwrap();
    drop(writer);
    let numbers = |trial: &Trial| trial.points.iter().map(|p| p.stage).collect::<Vec<_>>();
    let record = Record::read(&path).unwrap();
    assert_eq!(record.trials.len(), 3);
    assert_eq!((record.trials[1].took_ns, numbers(&record.trials[1])), (1, vec![Some(0), Some(1)]));
    // The line of a trial replaces its own points only.
    let mut writer = Writer::resume(&path).unwrap();
    writer.event(&Event::TrialEnded(Box::new(trial(1)))).unwrap();
    let record = Record::read(&path).unwrap();
    assert_eq!(record.trials, [trial(0), trial(1), part(2, 0)]);
    writer.event(&Event::TrialEnded(Box::new(trial(2)))).unwrap();
    assert!(!path.join(POINTS).exists());
    assert_eq!(Record::read(&path).unwrap().trials, [trial(0), trial(1), trial(2)]);
}

#[test]
fn a_latency_log_has_one_header_even_after_resuming() {
    let records = tempfile::tempdir().unwrap();
    let path = write(records.path(), "aabbccdd", 1_795_289_000_250);
    let interval = |begun_unix_ms| Interval {
        phase: "mixed".into(),
        operation: "get".into(),
        time: "service",
        begun_unix_ms,
        length_ns: 1_002_400_000,
        max_ns: 3_456_789,
        encoded: "HISTFAAA".into(),
    };
    let log = path.join(LATENCY_LOG);
    assert!(!log.exists());
    for begun_unix_ms in [1_795_289_001_000, 1_795_289_060_000] {
        let mut writer = Writer::resume(&path).unwrap();
        let (cell, intervals) = ("redis/get=0.5,set=0.5 x/4".into(), vec![interval(begun_unix_ms)]);
        writer.event(&Event::Intervals { cell, intervals }).unwrap();
        drop(writer);
        fs::OpenOptions::new().append(true).open(&log).unwrap().write_all(b"Tag=torn").unwrap();
    }
    drop(Writer::resume(&path).unwrap());
    assert_eq!(
        fs::read_to_string(&log).unwrap(),
        "#[Logged by cachedyno; values in nanoseconds, maxima in milliseconds]\n\
         #[Histogram log format version 1.3]\n\
         #[StartTime: 1795289000.250 (seconds since epoch), 2026-11-21T19:23:20.25Z]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"HdrHistogram\"\n\
         Tag=redis/get=0.5;set=0.5_x/4:mixed:get:service,0.750,1.002,3.457,HISTFAAA\n\
         Tag=redis/get=0.5;set=0.5_x/4:mixed:get:service,59.750,1.002,3.457,HISTFAAA\n"
    );
}

#[test]
fn a_damaged_line_is_an_error_with_its_number() {
    let records = tempfile::tempdir().unwrap();
    let path = write(records.path(), "aabbccdd", 0);
    fs::write(path.join(TRIALS), "{}\n{}\n").unwrap();
    let text = Record::read(&path).unwrap_err().to_string();
    assert!(text.contains("trials.jsonl`, line 1, is damaged: missing field"), "{text}");
}

#[test]
fn a_newer_format_is_refused() {
    let records = tempfile::tempdir().unwrap();
    let path = write(records.path(), "aabbccdd", 0);
    fs::write(path.join(HEADER), "{\"format\":99,\"whatever\":1}").unwrap();
    assert!(matches!(Record::read(&path), Err(ArchiveError::TooNew { found: 99, .. })));
}

#[test]
fn runs_are_found_by_path_id_prefix_and_latest() {
    let records = tempfile::tempdir().unwrap();
    let first = write(records.path(), "aa110000", 1000);
    let second = write(records.path(), "aa220000", 2000);
    fs::create_dir(records.path().join("unrelated")).unwrap();
    let listed = list(records.path(), &mut |_, e| panic!("{e}")).unwrap();
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|l| l.status == "unsealed" && l.limits.is_empty()), "{listed:?}");
    let found = |wanted: &str| find(records.path(), wanted);
    assert_eq!(found("latest").unwrap(), second);
    assert_eq!(found("aa1").unwrap(), first);
    assert_eq!(found(first.to_str().unwrap()).unwrap(), first);
    let text = found("aa").unwrap_err().to_string();
    assert!(text.starts_with("run `aa` is ambiguous, it matches `19700101T000001Z-"), "{text}");
    let text = found("zz").unwrap_err().to_string();
    assert!(text.contains("(known: aa110000, aa220000;"), "{text}");

    // A damaged record is not silently skipped.
    fs::write(second.join("header.json"), "{").unwrap();
    for wanted in ["latest", "aa22", second.file_name().unwrap().to_str().unwrap()] {
        let text = found(wanted).unwrap_err().to_string();
        assert!(text.contains("aa220000/header.json") && text.contains("damaged"), "{text}");
    }
    assert_eq!(found("aa1").unwrap(), first);
}

#[test]
fn a_record_in_use_cannot_be_opened_twice() {
    let records = tempfile::tempdir().unwrap();
    let writer = Writer::create(records.path(), &header("aabbccdd", 0)).unwrap();
    assert!(matches!(Writer::resume(writer.path()), Err(ArchiveError::InUse(_))));
    let path = writer.path().to_path_buf();
    drop(writer);
    assert!(Writer::resume(&path).is_ok());
}

#[test]
fn an_unwritable_directory_is_an_error_with_advice() {
    let records = tempfile::tempdir().unwrap();
    let file = records.path().join("file");
    fs::write(&file, "x").unwrap();
    let text = Writer::create(&file, &header("aabbccdd", 0)).unwrap_err().to_string();
    assert!(text.ends_with("(choose another directory with --out DIR)"), "{text}");
}

#[test]
fn the_last_state_of_a_target_counts() {
    let records = tempfile::tempdir().unwrap();
    let path = write(records.path(), "aabbccdd", 0);
    let failure = model::Failure { class: ErrorClass::Refused, message: "gone".into() };
    let (target, unavailable) = ("files".into(), Some(failure.clone()));
    let event = Event::TargetChecked(TargetState { target, unavailable, ..TargetState::default() });
    Writer::resume(&path).unwrap().event(&event).unwrap();
    let record = Record::read(&path).unwrap();
    assert_eq!(record.targets.len(), 1);
    assert_eq!(record.targets[0].unavailable, Some(failure));
}
