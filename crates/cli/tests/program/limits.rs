//! Limits that cannot be set, and stores that stop answering.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::Duration;

use super::common::{Place, Started, child_named, freeze, installed, skipped, wait_until};

const SOON: Duration = Duration::from_secs(60);

#[test]
fn a_limit_that_needs_root_is_refused_with_its_cure() {
    let place = Place::new();
    if fs::metadata(place.path()).unwrap().uid() != 0 || !installed(&["redis-server", "setpriv"]) {
        skipped("only root can run as another user");
        return;
    }
    // The other user may not reach the directory of the build.
    let program = place.path().join("cachedyno-copy");
    fs::copy(env!("CARGO_BIN_EXE_cachedyno"), &program).unwrap();
    let shared = place.path().join("tmp");
    for (directory, mode) in [(place.path(), 0o755), (&shared, 0o1777)] {
        fs::set_permissions(directory, fs::Permissions::from_mode(mode)).unwrap();
    }
    let other = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let mut command = place.command_by("setpriv", &other);
    command.arg(&program).args(["run", "beyond-ram", "--scale", "quick"]);
    command.args(["--set", "profile=swap", "--set", "memory=64MiB"]);
    command.arg("--out").arg(shared.join("records")).arg("--disk").arg(&shared);
    let text = Place::finish(command).code(3).stdout;
    for part in ["redis: denied: memory cannot be limited", "(expected root"] {
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(plain.contains(part), "no `{part}` in {text}");
    }
}

#[test]
fn a_store_that_stops_answering_ends_its_cell() {
    if !installed(&["redis-server"]) {
        return;
    }
    let place = Place::new();
    let mut command = place.command();
    command.args(["bench", "redis", "--keys", "500", "--clients", "4", "--duration", "60s"]);
    command.args(["--warmup", "100ms", "--stall-limit", "1s", "--blocks", "1"]);
    command.args(["--format", "json", "--out"]).arg(place.records());
    command.arg("--disk").arg(place.disk());
    let run = Started::new(command);
    let parent = run.pid();
    // The first server is that of the check.
    let server = wait_until("the load runs", SOON, || {
        let server = child_named(parent, "redis-server")?;
        let ticks = fs::read_to_string(format!("/proc/{server}/stat")).ok()?;
        let user: u64 = ticks.split_whitespace().nth(13)?.parse().ok()?;
        (user > 30).then_some(server)
    });
    freeze(server);
    let summary = run.finish_within(SOON).code(4).json();
    let failure = &summary["failures"][0];
    assert_eq!(failure["class"], "stalled", "{failure}");
    assert!(failure["phase"].is_string(), "{failure}");
    let reason = summary["reasons"][0].as_str().unwrap();
    assert!(
        reason.contains("1 of 1 trials ended early, first: stalled: no answer for"),
        "{reason}"
    );
    assert!(summary["cells"][0]["counts"]["ok"].as_u64() > Some(100), "{summary}");
    place.assert_nothing_left();
}
