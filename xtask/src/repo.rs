//! The files of the repository: those that git tracks or would track.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::process::Command;

use crate::modules;
use crate::rust::Source;

/// Directories with generated files, skipped where git is not available.
const GENERATED: [&str; 6] =
    [".git", "target", "node_modules", "dist", "__pycache__", "cachedyno-records"];

/// Path prefixes exempt from the rules on import cycles, parameters and fields. Must stay empty.
const EXEMPT: [&str; 0] = [];

/// True unless [`EXEMPT`] covers the file at `path`.
pub(crate) fn is_held(path: &str) -> bool {
    !EXEMPT.iter().any(|start| path.starts_with(start))
}

/// A violation of a rule, sorted by location.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    /// Path from the repository's root.
    pub(crate) path: String,
    /// Line, starting at 1.
    pub(crate) line: usize,
    /// The problem and its fix.
    pub(crate) text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.text)
    }
}

/// A text file.
pub(crate) struct File {
    /// Path from the repository's root, with slashes.
    pub(crate) path: String,
    /// Its text.
    pub(crate) text: String,
    /// Its tokens, if it is Rust.
    pub(crate) source: Option<Source>,
    /// True if it is declared under `#[cfg(test)]`.
    declared_as_test: bool,
}

impl File {
    /// A file of this path and text.
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let source = (extension(path) == "rs").then(|| Source::read(text));
        Self { path: path.to_owned(), text: text.to_owned(), source, declared_as_test: false }
    }

    /// A violation in this file.
    pub(crate) fn violation(&self, line: usize, text: String) -> Violation {
        Violation { path: self.path.clone(), line, text }
    }

    /// Name without directories.
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// True if the whole file is test code, judging by its location, name or declaration.
    pub(crate) fn is_test(&self) -> bool {
        let in_directory = |names: &[&str]| {
            self.path.split('/').rev().skip(1).any(|directory| names.contains(&directory))
        };
        let name = self.name();
        self.declared_as_test
            || in_directory(&["tests", "benches", "fuzz"])
            || matches!(name, "tests.rs" | "conftest.py")
            || name.ends_with(".test.ts")
            || name.ends_with(".spec.ts")
            || (name.starts_with("test_") && extension(name) == "py")
    }

    /// True if `line` is test code: in a test file, or in an item under `#[cfg(test)]`.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.is_test() || self.source.as_ref().is_some_and(|s| s.is_test_line(line))
    }

    /// The crate under `crates/` that it belongs to.
    pub(crate) fn room(&self) -> Option<&str> {
        self.path.strip_prefix("crates/")?.split_once('/').map(|(room, _)| room)
    }
}

/// The file name's extension; empty if there is none.
pub(crate) fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// All files.
pub(crate) struct Repo {
    /// Text files by path.
    pub(crate) files: Vec<File>,
    /// Paths of all files, binary ones too.
    pub(crate) paths: BTreeSet<String>,
}

impl Repo {
    /// Reads the files that git lists below `root`; skips those missing on disk.
    pub(crate) fn read(root: &Path) -> Result<Self, String> {
        let mut repo = Self { files: Vec::new(), paths: BTreeSet::new() };
        for path in listed(root)? {
            let Ok(bytes) = std::fs::read(root.join(&path)) else { continue };
            if let Some(text) = String::from_utf8(bytes).ok().filter(|t| !t.contains('\0')) {
                repo.files.push(File::new(&path, &text));
            }
            repo.paths.insert(path);
        }
        repo.mark_declared_tests();
        if repo.files.is_empty() {
            return Err(format!("no files in `{}`, expected a repository", root.display()));
        }
        Ok(repo)
    }

    /// True if `path` is a file or a directory with files; the root is the empty path.
    pub(crate) fn has(&self, path: &str) -> bool {
        let directory = format!("{path}/");
        path.is_empty()
            || self.paths.contains(path)
            || self.paths.iter().any(|p| p.starts_with(&directory))
    }

    /// Marks files declared by test code, including transitive declarations.
    fn mark_declared_tests(&mut self) {
        loop {
            let declared: BTreeSet<String> = self
                .rust()
                .flat_map(|(file, source)| {
                    let all = modules::declared(&file.path, source).into_iter();
                    all.filter(|m| file.is_test_line(m.line)).map(|m| m.path)
                })
                .collect();
            let before = self.files.iter().filter(|f| f.declared_as_test).count();
            for file in &mut self.files {
                file.declared_as_test |= declared.contains(&file.path);
            }
            if before == self.files.iter().filter(|f| f.declared_as_test).count() {
                return;
            }
        }
    }

    /// Rust files.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&File, &Source)> {
        self.files.iter().filter_map(|f| Some((f, f.source.as_ref()?)))
    }

    /// A repository of text files that exist only in memory.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let mut repo = Self {
            files: files.iter().map(|(path, text)| File::new(path, text)).collect(),
            paths: files.iter().map(|(path, _)| (*path).to_owned()).collect(),
        };
        repo.mark_declared_tests();
        repo
    }
}

/// Paths relative to `root` that git tracks or would track; without git, all files on disk outside
/// of [`GENERATED`].
fn listed(root: &Path) -> Result<BTreeSet<String>, String> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"])
        .current_dir(root)
        .output();
    if let Some(output) = output.ok().filter(|o| o.status.success()) {
        let names = String::from_utf8_lossy(&output.stdout).into_owned();
        return Ok(names.split('\0').filter(|n| !n.is_empty()).map(str::to_owned).collect());
    }
    let mut found = BTreeSet::new();
    walk(root, "", &mut found).map_err(|e| format!("cannot list `{}`: {e}", root.display()))?;
    Ok(found)
}

/// Adds the files in `directory`, a path relative to `root`, recursively.
fn walk(root: &Path, directory: &str, found: &mut BTreeSet<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(root.join(directory))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if directory.is_empty() { name.clone() } else { format!("{directory}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_file() {
            found.insert(path);
        } else if kind.is_dir() && !GENERATED.contains(&name.as_str()) {
            walk(root, &path, found)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_lists_this_file_and_nothing_ignored() {
        let repo = Repo::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
        assert!(repo.has("xtask/src/repo.rs") && repo.has("xtask") && repo.has(""));
        assert!(!repo.has("xtask/sr") && !repo.has("target"));
    }

    #[test]
    fn without_git_the_disk_is_listed() {
        let mut found = BTreeSet::new();
        walk(Path::new(env!("CARGO_MANIFEST_DIR")), "", &mut found).unwrap();
        assert!(found.contains("Cargo.toml") && found.contains("src/repo.rs"), "{found:?}");
        assert!(walk(Path::new("/nowhere"), "", &mut found).is_err());
    }

    #[test]
    fn tests_are_recognised_by_location_and_name() {
        for (path, expected) in [
            ("crates/stats/src/units/tests.rs", true),
            ("crates/rig/tests/redis.rs", true),
            ("web/src/view.test.ts", true),
            ("python/test_records.py", true),
            ("crates/stats/src/units.rs", false),
            ("crates/stats/src/contests.rs", false),
        ] {
            assert_eq!(File::new(path, "").is_test(), expected, "{path}");
        }
        let file = File::new("crates/rig/src/lib.rs", "fn a() {}\n#[cfg(test)]\nmod tests {\n}\n");
        assert_eq!((file.is_test_line(1), file.is_test_line(3)), (false, true));
        assert_eq!(file.room(), Some("rig"));
    }

    #[test]
    fn tests_are_recognised_by_their_declaration() {
        let repo = Repo::of(&[
            ("crates/a/src/lib.rs", "mod b;\n#[cfg(test)]\n#[path = \"b_tests.rs\"]\nmod tests;"),
            ("crates/a/src/b.rs", "#[cfg(test)]\nmod checks;"),
            ("crates/a/src/b/checks.rs", "mod deeper;"),
            ("crates/a/src/b/checks/deeper.rs", ""),
            ("crates/a/src/b_tests.rs", ""),
        ]);
        let tests: Vec<_> = repo.files.iter().map(File::is_test).collect();
        assert_eq!(tests, [false, false, true, true, true]);
    }
}
