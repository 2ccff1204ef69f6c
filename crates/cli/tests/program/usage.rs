//! Wrong arguments and wrong studies: exit code 2, one error line, nothing written.

use std::fs;

use super::common::{FAST, Place};

const STUDY: &str = include_str!("../../../../studies/sessions.toml");

/// Asserts that `run` with these arguments reports a usage error with all of `parts`, and writes
/// no record.
#[track_caller]
fn refused(arguments: &[&str], parts: &[&str]) {
    let place = Place::new();
    Place::finish(place.run(arguments)).usage_error(parts);
    assert!(!place.records().exists(), "written: {:?}", place.all_records());
    place.assert_nothing_left();
}

/// Like [`refused`], for a study file in which `from` is replaced with `to`. The error must name
/// the line on which `located` starts.
#[track_caller]
fn study_refused(located: &str, from: &str, to: &str, parts: &[&str]) {
    for text in [located, from] {
        assert_eq!(STUDY.matches(text).count(), 1, "`{text}` must occur once in the study");
    }
    let before = &STUDY[..STUDY.find(located).unwrap()];
    let line = 1 + before.matches('\n').count();
    let place = Place::new();
    let file = place.write("own.toml", &STUDY.replace(from, to));
    let file = file.to_str().unwrap();
    let located = format!("study `{file}`, line {line}: ");
    let parts = [&[located.as_str()], parts].concat();
    Place::finish(place.run(&[file])).usage_error(&parts);
    assert!(!place.records().exists());
}

#[test]
fn unknown_names_list_the_known_ones() {
    refused(&["session"], &["unknown study `session`", "known: `sessions`", "path of a study"]);
    refused(
        &["sessions", "--target", "rediss"],
        &["unknown target `rediss`", "`files`, `redis` and `mysql`", "--target rediss=URL"],
    );
    refused(
        &["sessions", "--set", "measure=5"],
        &["unknown key `measure`", "`measure_ms`", "`redis.NAME`"],
    );
    refused(
        &["sessions", "--set", "profile=steddy"],
        &["unknown profile `steddy`", "`steady`, `maxcluster-2019`, `page`, `visitors` and `gc`"],
    );
}

#[test]
fn invalid_values_list_the_valid_ones() {
    refused(&["sessions", "--set", "measure_ms"], &["`measure_ms`", "KEY=VALUE"]);
    refused(&["sessions", "--set", "clients=0"], &["clients=`0`", "1 to 4096"]);
    refused(&["sessions", "--set", "value_bytes=1"], &["value_bytes=`1`", "32 to 16777216"]);
    refused(&["sessions", "--set", "think_ms=NaN"], &["think_ms=`NaN`", "0 to 60000"]);
    refused(&["sessions", "--set", "generation=early"], &["`early`", "`inside` or `outside`"]);
    refused(&["sessions", "--budget", "soon"], &["--budget", "`soon` is not a duration", "1h30m"]);
    refused(
        &["sessions", "--budget", "99999999999999999999d"],
        &["--budget", "99999999999999999999d"],
    );
    refused(&["sessions", "--timeout", "5"], &["--timeout", "`5`"]);
    refused(&["sessions", "--timeout", "1us"], &["--timeout `1us` is too short", "1ms"]);
    refused(&["sessions", "--target", "a b"], &["`a b`", "1 to 40 letters"]);
    refused(&["sessions", "--target", "files", "--target", "files"], &["`files` is given twice"]);
}

#[test]
fn unusable_urls_are_explained() {
    let target = |url: &str, parts: &[&str]| refused(&["sessions", "--target", url], parts);
    target("x=redis//localhost", &["`redis//localhost` is not a URL", "redis://host:port/db"]);
    target("x=valkey://localhost", &["unknown scheme `valkey`", "redis://host:port/db"]);
    target(
        "x=memcached://localhost",
        &["target `x`", "not supported as a session store", "`bench`"],
    );
    target("x=redis://localhost/first", &["database", "`first`", "a number"]);
    target("x=mysql://localhost", &["database", "missing", "existing database"]);
    target("x=redis+unix://", &["socket path", "missing"]);
    target(
        "x=file://host/dir",
        &["not a local absolute path", "three slashes and an absolute directory"],
    );
}

#[test]
fn url_errors_do_not_show_the_password() {
    let place = Place::new();
    for url in ["x=redis://me:hush-hush@localhost/first", "x=valkey://me:hush-hush@localhost"] {
        let finished = Place::finish(place.run(&["sessions", "--target", url]));
        assert!(!finished.stderr.contains("hush"), "{finished:#?}");
        finished.usage_error(&[]);
    }
}

#[test]
fn unknown_scales_and_flags_are_refused() {
    refused(&["sessions", "--scale", "huge"], &["'huge'", "--scale"]);
    refused(&["sessions", "--sclae", "quick"], &["--sclae"]);
    refused(&["sessions", "--seed", "one"], &["'one'", "--seed"]);
    refused(&[], &["required"]);
}

#[test]
fn a_disk_must_be_a_directory() {
    let place = Place::new();
    let file = place.write("file", "");
    for path in [file.as_path(), &place.path().join("missing")] {
        let command = place.run_at(&place.records(), path, &["sessions"]);
        let name = path.display().to_string();
        Place::finish(command).usage_error(&["--disk", &name, "is not a directory"]);
        assert!(!place.records().exists(), "written: {:?}", place.all_records());
    }
    place.assert_nothing_left();
}

#[test]
fn password_files_must_exist_and_belong_to_a_target() {
    let url = "x=redis://127.0.0.1:1";
    let with = |file: &str, parts: &[&str]| {
        refused(&["sessions", "--target", url, "--password-file", file], parts);
    };
    with("x=/no/such/file", &["password file `/no/such/file` of `x` cannot be read"]);
    with("secret.txt", &["--password-file", "NAME=FILE"]);
    with("y=/dev/null", &["`y` is not a NAME=URL", "target of this command"]);
}

#[test]
fn errors_in_a_study_file_are_located() {
    let changed = |from: &str, to: &str, parts: &[&str]| study_refused(from, from, to, parts);
    let known = ["unknown field `ttl`", "expected one of", "`ttl_s`"];
    changed("ttl_s = 300 ", "ttl = 300 ", &known);
    let known = ["unknown operation `peek`", "known: `write`, `read` and `change`"];
    changed("read = 0.5, change = 0.4 } },", "peek = 0.5, change = 0.4 } },", &known);
    let known = ["unknown operation `read`", "known: `page` and `new`"];
    changed("mix = { page = 1.0 }", "mix = { read = 1.0 }", &known);
    changed("control = \"redis\"", "control = \"rediss\"", &["unknown target `rediss`"]);
    let known = ["unknown variant `alphabet`", "`counter`"];
    changed("names = \"counter\"", "names = \"alphabet\"", &known);
    changed("[scales.full]", "[scales.full", &[]);
    let claim = "[[claims]]\nid = \"read-1-files\"";
    let expected = "a = \"files\", b = \"redis\", operation";
    let known = ["unknown target `file`", "known: `files`, `redis` and `mysql`"];
    study_refused(claim, expected, &expected.replace("files", "file"), &known);
}

#[test]
fn an_unreadable_study_file_is_named() {
    refused(&["no/such.toml"], &["`no/such.toml` cannot be read"]);
    let place = Place::new();
    let directory = place.path().to_str().unwrap().to_string();
    refused(&[&directory], &[&directory, "cannot be read"]);
    let binary = place.path().join("binary.toml");
    fs::write(&binary, [0xff, 0xfe, 0]).unwrap();
    refused(&[binary.to_str().unwrap()], &["binary.toml", "cannot be read"]);
}

#[test]
fn a_custom_study_is_recorded_under_its_name() {
    let place = Place::new();
    let text = STUDY.replace("name = \"sessions\"", "name = \"own\"");
    let file = place.write("own.toml", &text);
    let study = [file.to_str().unwrap(), "--scale", "quick", "--format", "json"];
    let command = place.run(&[&study, &FAST[..], &["--target", "files"]].concat());
    let finished = Place::finish(command).measured();
    assert_eq!(finished.json()["study"], "own");
    assert!(place.record().path.to_str().unwrap().contains("-own-"));
}

#[test]
fn a_fast_fill_needs_an_application_cache() {
    refused(
        &["sessions", "--fill", "fast"],
        &["--fill: study `sessions` has no application cache to fill", "workload `app-cache`"],
    );
    refused(&["app-cache", "--fill", "quick"], &["'quick'", "--fill"]);
    refused(&["sessions", "--set", "fill=fast"], &["unknown key `fill`"]);
}
