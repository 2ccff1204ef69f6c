//! Every source file is reachable by `mod` declarations from the root of its crate.

use std::collections::BTreeSet;

use crate::modules::{self, is_root};
use crate::repo::{Repo, Violation};

/// Finds files under `src/` that no `mod` reaches.
pub(crate) fn check(repo: &Repo) -> Vec<Violation> {
    let mut reached = BTreeSet::new();
    let mut to_read: Vec<&str> =
        repo.rust().map(|(f, _)| f.path.as_str()).filter(|p| is_root(p)).collect();
    while let Some(path) = to_read.pop() {
        if !reached.insert(path) {
            continue;
        }
        let file = repo.rust().find(|(f, _)| f.path == path);
        let declared = file.map_or_else(Vec::new, |(_, source)| modules::declared(path, source));
        for module in declared {
            to_read.extend(repo.paths.get(&module.path).map(String::as_str));
        }
    }
    let in_src = |path: &str| path.split('/').rev().skip(1).any(|d| d == "src");
    repo.rust()
        .filter(|(f, _)| in_src(&f.path) && !reached.contains(f.path.as_str()))
        .map(|(f, _)| f.violation(1, "no `mod` reaches this file: declare it or remove it".into()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Vec<String> {
        check(&Repo::of(files)).into_iter().map(|v| v.path).collect()
    }

    #[test]
    fn declared_files_pass() {
        let files = [
            (
                "crates/a/src/lib.rs",
                "mod b; pub mod c; mod d { mod e; }\n#[path = \"x.rs\"]\nmod y;",
            ),
            ("crates/a/src/b.rs", "#[cfg(test)]\nmod tests;"),
            ("crates/a/src/b/tests.rs", ""),
            ("crates/a/src/c/mod.rs", "pub(crate) mod f;"),
            ("crates/a/src/c/f.rs", "mod g;"),
            ("crates/a/src/c/f/g.rs", ""),
            ("crates/a/src/d/e.rs", ""),
            ("crates/a/src/x.rs", ""),
            ("crates/a/src/bin/tool.rs", ""),
            ("crates/a/tests/redis.rs", ""),
            ("crates/a/build.rs", ""),
            ("xtask/src/main.rs", "mod b;"),
            ("xtask/src/b.rs", ""),
        ];
        assert_eq!(of(&files), [""; 0]);
    }

    #[test]
    fn files_that_nothing_declares_fail() {
        let files = [
            ("crates/a/src/lib.rs", "// mod b;\nconst S: &str = \"mod b;\";\nmod c;"),
            ("crates/a/src/b.rs", "mod d;"),
            ("crates/a/src/b/d.rs", ""),
            ("crates/a/src/c.rs", ""),
            ("crates/a/src/d.rs", ""),
            ("crates/b/src/main.rs", "mod b;"),
        ];
        let dead = ["crates/a/src/b.rs", "crates/a/src/b/d.rs", "crates/a/src/d.rs"];
        assert_eq!(of(&files), dead);
    }
}
