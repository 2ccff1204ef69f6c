//! `cargo xtask tidy`: checks the repository's own rules.
//!
//! Reads every file of the repository and prints one line per violation: `path:line: problem:
//! fix`. Exit codes: 0 without violations, 1 with violations, 2 for wrong usage or no repository.
//!
//! - [`limits`]: length of functions, files and lines; number of parameters and fields.
//! - [`arrows`]: allowed dependencies between crates; client libraries only in `drivers`.
//! - [`rooms`]: no clock, socket or process in pure crates; no printing, exiting or `unwrap` where
//!   it is forbidden.
//! - [`dead`]: every source file is reachable from its crate's root.
//! - [`circles`]: no import cycles between the files of a crate.
//! - [`words`]: text that no file may contain.
//! - [`docs`]: links resolve, and every study is documented.
//! - [`repo`], [`rust`], [`modules`], [`imports`]: files, tokens, module declarations and imports.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use repo::{Repo, Violation};

mod arrows;
mod circles;
mod dead;
mod docs;
mod imports;
mod limits;
mod modules;
mod repo;
mod rooms;
mod rust;
mod words;

/// All checks, in execution order.
const CHECKS: [fn(&Repo) -> Vec<Violation>; 7] = [
    limits::check,
    arrows::check,
    rooms::check,
    dead::check,
    circles::check,
    words::check,
    docs::check,
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("tidy"), None) => tidy().unwrap_or_else(|message| fail(&message)),
        _ => fail("expected one argument: cargo xtask tidy"),
    }
}

/// Checks the repository that contains this crate.
fn tidy() -> Result<ExitCode, String> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .ok_or("CARGO_MANIFEST_DIR is not set, run this with cargo: cargo xtask tidy")?;
    let repo = Repo::read(&PathBuf::from(here).join(".."))?;
    let mut found: Vec<_> = CHECKS.iter().flat_map(|check| check(&repo)).collect();
    found.sort();
    let mut out = std::io::stdout().lock();
    for violation in &found {
        writeln!(out, "{violation}").map_err(|e| format!("cannot print: {e}"))?;
    }
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Reports why nothing was checked.
fn fail(message: &str) -> ExitCode {
    // If this fails too, there is no way to report it.
    let _ = writeln!(std::io::stderr(), "error: {message}");
    ExitCode::from(2)
}
