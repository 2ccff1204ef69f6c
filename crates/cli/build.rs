//! Bakes the commit into the binary, so that a record says what measured it: that of
//! `CACHEDYNO_COMMIT` if set, for builds in a container without git, or else that of git.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=CACHEDYNO_COMMIT");
    if let Some(commit) = env::var("CACHEDYNO_COMMIT").ok().filter(|commit| !commit.is_empty()) {
        println!("cargo::rustc-env=CACHEDYNO_COMMIT={commit}");
        return;
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_else(|| "unknown".into());
    let dirty =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|s| !s.is_empty());
    println!("cargo::rustc-env=CACHEDYNO_COMMIT={commit}{}", if dirty { "+changes" } else { "" });
    if let Some(head) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={head}");
    }
}
