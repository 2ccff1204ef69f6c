//! The shipped studies, embedded as data.

use model::Study;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::exit::CliError;
use crate::server_names::private_server_names;

/// Version and commit, as `--version` prints and records carry.
pub(crate) const TOOL_VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), " (", env!("CACHEDYNO_COMMIT"), ")");

/// Name and text of each shipped study.
pub(crate) const SHIPPED: [(&str, &str); 7] = [
    ("sessions", include_str!("../../../studies/sessions.toml")),
    ("app-cache", include_str!("../../../studies/app-cache.toml")),
    ("ramp", include_str!("../../../studies/ramp.toml")),
    ("beyond-ram", include_str!("../../../studies/beyond-ram.toml")),
    ("failover", include_str!("../../../studies/failover.toml")),
    ("sizing", include_str!("../../../studies/sizing.toml")),
    ("cache-aside", include_str!("../../../studies/cache-aside.toml")),
];

/// Names of the shipped studies.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SHIPPED.iter().map(|(name, _)| *name)
}

/// Names of the targets of all shipped studies, each once, and of other private servers.
pub(crate) fn target_names() -> Result<BTreeSet<String>, CliError> {
    let mut names: BTreeSet<String> = private_server_names().map(String::from).collect();
    for (name, text) in SHIPPED {
        names.extend(Study::parse(name, text)?.target_names().map(String::from));
    }
    Ok(names)
}

/// Reads a shipped study by name, or a study file by path.
pub(crate) fn load(wanted: &str) -> Result<Study, CliError> {
    if let Some((name, text)) = SHIPPED.iter().find(|(name, _)| *name == wanted) {
        return Ok(Study::parse(name, text)?);
    }
    let looks_like_a_file = wanted.contains('/') || Path::new(wanted).extension().is_some();
    if !looks_like_a_file {
        let known: Vec<String> = names().map(|name| format!("`{name}`")).collect();
        return Err(CliError::usage(format!(
            "unknown study `{wanted}` (known: {}; or give the path of a study file)",
            known.join(", ")
        )));
    }
    let text = fs::read_to_string(wanted)
        .map_err(|e| CliError::usage(format!("study file `{wanted}` cannot be read: {e}")))?;
    Ok(Study::parse(wanted, &text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_study_parses_under_its_own_name() {
        for (name, _) in SHIPPED {
            assert_eq!(load(name).unwrap().name, name);
        }
    }

    #[test]
    fn an_unknown_study_names_the_known_ones() {
        let text = load("session").unwrap_err().to_string();
        assert_eq!(
            text,
            "unknown study `session` (known: `sessions`, `app-cache`, `ramp`, `beyond-ram`, \
             `failover`, `sizing`, `cache-aside`; or give the path of a study file)"
        );
        assert!(load("no/such.toml").unwrap_err().to_string().contains("cannot be read"));
    }
}
