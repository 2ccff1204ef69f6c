//! Allowed dependencies between crates, as drawn in docs/ARCHITECTURE.md, checked against their
//! `[dependencies]`.
//!
//! Dev-dependencies are not restricted. Only `drivers` may use client libraries of the products
//! under test.

use crate::repo::{File, Repo, Violation};

/// Each crate under `crates/` and its allowed dependencies.
const ARROWS: [(&str, &[&str]); 11] = [
    ("stats", &[]),
    ("model", &["stats"]),
    ("workloads", &["model", "stats"]),
    ("load", &["workloads", "model", "stats"]),
    ("drivers", &["load", "workloads", "model", "stats"]),
    ("rig", &["model", "stats"]),
    ("archive", &["model", "stats"]),
    ("lab", &["archive", "drivers", "rig", "load", "workloads", "model", "stats"]),
    ("report", &["model", "stats"]),
    ("dash", &["report", "model", "stats"]),
    (
        "cli",
        &[
            "dash",
            "lab",
            "report",
            "archive",
            "drivers",
            "rig",
            "load",
            "workloads",
            "model",
            "stats",
        ],
    ),
];

/// Client libraries of the products under test.
const CLIENTS: [&str; 12] = [
    "diesel",
    "libsqlite3-sys",
    "memcache",
    "mysql",
    "mysql_async",
    "postgres",
    "postgres-protocol",
    "redis",
    "rusqlite",
    "sqlite",
    "sqlx",
    "tokio-postgres",
];

/// A dependency in a manifest.
struct Dependency {
    /// Crate name; for crates of this workspace the name of the directory.
    name: String,
    /// Line, starting at 1.
    line: usize,
}

/// Checks every manifest.
pub(crate) fn check(repo: &Repo) -> Vec<Violation> {
    let manifests = repo.files.iter().filter(|f| f.name() == "Cargo.toml");
    let mut found = Vec::new();
    for file in manifests {
        let dependencies = dependencies(&file.text);
        let room = file.room();
        found.extend(clients(file, room, &dependencies));
        match room {
            Some(room) => found.extend(arrows(file, room, &dependencies)),
            None if file.path == "xtask/Cargo.toml" => {
                found.extend(beyond(file, "xtask", &[], &dependencies));
            }
            None => {}
        }
    }
    found
}

/// Disallowed dependencies of one crate under `crates/`.
fn arrows(file: &File, room: &str, dependencies: &[Dependency]) -> Vec<Violation> {
    if let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == room) {
        return beyond(file, room, allowed, dependencies);
    }
    let text = format!(
        "crate `{room}` has no arrows: draw it in docs/ARCHITECTURE.md and add it to \
         xtask/src/arrows.rs"
    );
    vec![file.violation(1, text)]
}

/// Dependencies on workspace crates that are not `allowed`.
fn beyond(file: &File, room: &str, allowed: &[&str], all: &[Dependency]) -> Vec<Violation> {
    let ours = |d: &&Dependency| ARROWS.iter().any(|(name, _)| *name == d.name);
    let forbidden = all.iter().filter(ours).filter(|d| !allowed.contains(&d.name.as_str()));
    let text = |name: &str| match allowed {
        [] => format!("`{room}` may not use `{name}`, it uses no crate of ours: move the code"),
        _ => format!(
            "`{room}` may not use `{name}`, only {}: move the code or turn the arrow round by a \
             trait",
            allowed.join(", ")
        ),
    };
    forbidden.map(|d| file.violation(d.line, text(&d.name))).collect()
}

/// Client libraries outside `drivers`.
fn clients(file: &File, room: Option<&str>, all: &[Dependency]) -> Vec<Violation> {
    if room == Some("drivers") {
        return Vec::new();
    }
    let clients = all.iter().filter(|d| CLIENTS.contains(&d.name.as_str()));
    let text = |name| format!("client library `{name}` outside of drivers: offer it from there");
    clients.map(|d| file.violation(d.line, text(&d.name))).collect()
}

/// Entries of `[dependencies]`, including those of single targets. `[workspace.dependencies]` and
/// dev-dependencies do not count.
fn dependencies(manifest: &str) -> Vec<Dependency> {
    let mut found: Vec<Dependency> = Vec::new();
    let mut inside = false;
    for (line, text) in (1..).zip(manifest.lines()) {
        let text = text.split('#').next().unwrap_or_default().trim();
        if let Some(header) = text.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            let (table, name) = match header.rsplit_once("dependencies.") {
                Some((before, name)) => (format!("{before}dependencies"), Some(name)),
                None => (header.to_owned(), None),
            };
            let counts = table == "dependencies"
                || (table.starts_with("target.") && table.ends_with(".dependencies"));
            inside = counts && name.is_none();
            found.extend(name.filter(|_| counts).map(|name| named(name, "", line)));
        } else if let Some((key, value)) = text.split_once('=').filter(|_| inside) {
            found.push(named(key, value, line));
        }
    }
    found
}

/// The dependency of a line; `package` and `path` take precedence over the key.
fn named(key: &str, value: &str, line: usize) -> Dependency {
    let quoted_after = |word: &str| value.split_once(word)?.1.split('"').nth(1);
    let key = key.split('.').next().unwrap_or(key).trim().trim_matches('"');
    let real = quoted_after("package").or_else(|| quoted_after("path")?.rsplit('/').next());
    let name = real.unwrap_or(key);
    Dependency { name: name.strip_prefix("cachedyno-").unwrap_or(name).to_owned(), line }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, text: &str) -> Vec<String> {
        check(&Repo::of(&[(path, text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn arrows_as_drawn_pass_and_dev_dependencies_are_free() {
        let manifest = "[package]\nname = \"cachedyno-model\"\n[dependencies]\n\
                        stats.workspace = true\nserde = \"1\"\n\
                        [dev-dependencies]\nlab.workspace = true\nmysql = \"28\"\n";
        assert_eq!(of("crates/model/Cargo.toml", manifest), [""; 0]);
        let root = "[workspace.dependencies]\nmysql = \"28\"\nlab = { path = \"crates/lab\" }\n";
        assert_eq!(of("Cargo.toml", root), [""; 0]);
    }

    #[test]
    fn an_arrow_against_the_drawing_fails_however_it_is_written() {
        for line in [
            "report.workspace = true",
            "report = { workspace = true }",
            "r = { path = \"../report\" }",
            "r = { package = \"cachedyno-report\", version = \"1\" }",
        ] {
            let got = of("crates/stats/Cargo.toml", &format!("[dependencies]\n{line}\n"));
            let expected = "crates/stats/Cargo.toml:2: `stats` may not use `report`, it uses no \
                            crate of ours: move the code";
            assert_eq!(got, [expected], "{line}");
        }
        for table in ["dependencies.lab", "target.'cfg(unix)'.dependencies.lab"] {
            let got = of("crates/rig/Cargo.toml", &format!("[{table}]\nworkspace = true\n"));
            let expected = "crates/rig/Cargo.toml:1: `rig` may not use `lab`, only model, stats: \
                            move the code or turn the arrow round by a trait";
            assert_eq!(got, [expected]);
        }
        assert_eq!(of("xtask/Cargo.toml", "[dependencies]\nmodel.workspace = true\n").len(), 1);
    }

    #[test]
    fn every_crate_has_its_arrows() {
        let got = of("crates/cellar/Cargo.toml", "[package]\n");
        assert!(got[0].contains("crate `cellar` has no arrows"), "{got:?}");
        for (room, _) in ARROWS {
            assert_eq!(of(&format!("crates/{room}/Cargo.toml"), "[package]\n"), [""; 0]);
        }
    }

    #[test]
    fn client_libraries_stay_in_drivers() {
        let manifest = "[dependencies]\nmysql.workspace = true\n";
        assert_eq!(of("crates/drivers/Cargo.toml", manifest), [""; 0]);
        let expected = "crates/lab/Cargo.toml:2: client library `mysql` outside of drivers: \
                        offer it from there";
        assert_eq!(of("crates/lab/Cargo.toml", manifest), [expected]);
    }

    #[test]
    fn arrows_have_no_cycle() {
        for (room, uses) in ARROWS {
            for used in uses {
                let (_, back) = ARROWS.iter().find(|(name, _)| name == used).unwrap();
                assert!(!back.contains(&room), "{room} and {used} use each other");
            }
        }
    }
}
