//! `cargo xtask tidy`: the rules of the house as a test.
//!
//! Reads every file of the repository and prints one line a violation, `path:line: what, and the
//! cure`. Exit code 0 when there is none, 1 when there are, 2 for wrong usage or no repository.
//!
//! - [`limits`]: length of functions, files and lines; numbers of parameters and fields.
//! - [`arrows`]: which crate may use which, and client libraries only in drivers.
//! - [`rooms`]: no clock, socket or process in pure rooms; printing, exiting and `unwrap` only
//!   where they belong.
//! - [`dead`]: every source file is reached from its crate's root.
//! - [`circles`]: no circles of imports between the files of a crate.
//! - [`words`]: what no text of the project may contain.
//! - [`docs`]: links resolve, and every study is documented.
//! - [`repo`], [`rust`], [`modules`], [`imports`]: the files, their tokens, and how they hang
//!   together.

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

/// Every check, in the order in which they are run.
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

/// Checks the repository that this crate stands in.
fn tidy() -> Result<ExitCode, String> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .ok_or("CARGO_MANIFEST_DIR is not set, expected a start by cargo: cargo xtask tidy")?;
    let repo = Repo::read(&PathBuf::from(here).join(".."))?;
    let mut found: Vec<_> = CHECKS.iter().flat_map(|check| check(&repo)).collect();
    found.sort();
    let mut out = std::io::stdout().lock();
    for violation in &found {
        writeln!(out, "{violation}").map_err(|e| format!("cannot print: {e}"))?;
    }
    Ok(if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Says why nothing was checked.
fn fail(message: &str) -> ExitCode {
    // Nothing is left to be done when even this cannot be written.
    let _ = writeln!(std::io::stderr(), "error: {message}");
    ExitCode::from(2)
}
