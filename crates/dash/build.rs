//! Chooses the live page to embed: web/dist/live.html if `make web` built it, else a plain page.

use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;
use std::{env, fs, io};

/// Built by `make web`.
const BUILT: &str = "../../web/dist/live.html";

/// Fallback page.
const PLAIN: &str = "src/plain.html";

fn main() -> Result<(), Box<dyn Error>> {
    let home = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let (built, plain) = (home.join(BUILT), home.join(PLAIN));
    let page = fs::read(&built).or_else(|_| fs::read(&plain))?;
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("live.html"), page)?;
    for watched in [built, plain] {
        writeln!(io::stdout(), "cargo::rerun-if-changed={}", watched.display())?;
    }
    Ok(())
}
