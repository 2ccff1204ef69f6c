//! Detects import cycles between the files of a crate. Files in a cycle cannot be read, tested or
//! moved separately. [`imports`] defines what counts as an import.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::imports::{self, Import};
use crate::repo::{Repo, Violation, is_held};

/// The files that each file imports, with the line of the first import.
type Graph<'a> = BTreeMap<&'a str, BTreeMap<&'a str, usize>>;

/// Finds sets of files that use each other directly or indirectly.
pub(crate) fn check(repo: &Repo) -> Vec<Violation> {
    let mut graph = Graph::new();
    for Import { by, of, line } in imports::of(repo).into_iter().filter(|i| is_held(i.by)) {
        graph.entry(by).or_default().entry(of).or_insert(line);
    }
    let predecessors_of: BTreeMap<_, _> =
        graph.keys().map(|file| (*file, predecessors(&graph, file))).collect();
    let reaches =
        |from: &str, to: &str| predecessors_of.get(from).is_some_and(|all| all.contains_key(to));
    let circles: BTreeSet<Vec<&str>> = graph
        .keys()
        .filter(|file| reaches(file, file))
        .map(|file| {
            graph.keys().copied().filter(|o| reaches(file, o) && reaches(o, file)).collect()
        })
        .collect();
    circles.iter().map(|files| violation(&graph, files)).collect()
}

/// Files that `from` imports directly or indirectly, each with its predecessor on the shortest
/// path. Contains `from` itself only if it is in a cycle.
fn predecessors<'a>(graph: &Graph<'a>, from: &'a str) -> BTreeMap<&'a str, &'a str> {
    let mut before = BTreeMap::new();
    let mut queue = VecDeque::from([from]);
    while let Some(file) = queue.pop_front() {
        for next in graph.get(file).into_iter().flat_map(BTreeMap::keys) {
            if !before.contains_key(next) {
                before.insert(*next, file);
                queue.push_back(next);
            }
        }
    }
    before
}

/// The violation for a set of files that use each other; lists the imports of the shortest cycle.
fn violation(graph: &Graph<'_>, files: &[&str]) -> Violation {
    let circles = files.iter().map(|file| imports_of_cycle(graph, file));
    let imports = circles.min_by_key(Vec::len).unwrap_or_default();
    let shown = imports.iter().map(|i| format!("{}:{} uses {}", i.by, i.line, i.of));
    let shown: Vec<_> = shown.collect();
    let text = format!(
        "{} files use each other ({}), as in {}: move what two of them need to a module of its \
         own, or a function to its data",
        files.len(),
        files.join(", "),
        shown.join(", ")
    );
    let (path, line) = imports.first().map_or(("", 1), |i| (i.by, i.line));
    Violation { path: path.to_owned(), line, text }
}

/// Imports on the shortest cycle through `file`.
fn imports_of_cycle<'a>(graph: &Graph<'a>, file: &'a str) -> Vec<Import<'a>> {
    let before = predecessors(graph, file);
    let mut imports = Vec::new();
    let mut of = file;
    while let Some(by) = before.get(of).copied().filter(|_| of != file || imports.is_empty()) {
        imports.push(Import { by, of, line: graph[by][of] });
        of = by;
    }
    imports.reverse();
    imports
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cycles of a crate with these files below `src/`, each as `file:line, file:line`.
    fn of(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> =
            files.iter().map(|(path, text)| (format!("crates/a/src/{path}"), *text)).collect();
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let found = check(&Repo::of(&files)).into_iter();
        let shown = |text: &str| text.split_once("as in ").unwrap().1.replace("crates/a/src/", "");
        found.map(|v| shown(&v.text).split(": move").next().unwrap().to_owned()).collect()
    }

    #[test]
    fn two_files_that_use_each_other_are_a_cycle_and_both_are_named() {
        let files = [
            ("crates/a/src/lib.rs", "mod b;\nmod c;"),
            ("crates/a/src/b.rs", "use crate::c::C;\npub struct B;"),
            ("crates/a/src/c.rs", "pub struct C;\nfn c() { crate::b::B::new() }"),
        ];
        let found: Vec<_> = check(&Repo::of(&files)).iter().map(ToString::to_string).collect();
        let expected = "crates/a/src/b.rs:1: 2 files use each other (crates/a/src/b.rs, \
                        crates/a/src/c.rs), as in crates/a/src/b.rs:1 uses crates/a/src/c.rs, \
                        crates/a/src/c.rs:2 uses crates/a/src/b.rs: move what two of them need \
                        to a module of its own, or a function to its data";
        assert_eq!(found, [expected]);
    }

    #[test]
    fn separate_cycles_are_reported_separately() {
        let three = [
            ("main.rs", "mod b; mod c; mod d; mod e; mod f; use b::B;"),
            ("b.rs", "use crate::{c::C, e::E};"),
            ("c/mod.rs", "use crate::d;\nfn c() { d::f() }"),
            ("d.rs", "use super::b::*;"),
            ("e.rs", "use super::f::F;"),
            ("f.rs", "use crate::e::E as G;"),
        ];
        let expected = [
            "b.rs:1 uses c/mod.rs, c/mod.rs:2 uses d.rs, d.rs:1 uses b.rs",
            "e.rs:1 uses f.rs, f.rs:1 uses e.rs",
        ];
        assert_eq!(of(&three), expected);
    }

    #[test]
    fn a_parent_and_a_child_that_use_each_other_are_a_cycle() {
        let child = ("b/c.rs", "use super::{B, d::D};\npub fn run() {}\npub struct C;");
        for parent in [
            "mod c;\nfn b() { c::run() }",
            "mod c;\nuse c::run;",
            "mod c;\npub(crate) use c::{self, run as start};\nfn b() { start() }",
            "mod c;\npub use self::c::*;\nstruct B(Vec<C>);",
            "mod c { pub use crate::other; }\nfn b() { c::other::f() }",
        ] {
            let files = [("lib.rs", "mod b;"), ("b.rs", parent), child, ("b/d.rs", "")];
            let files = [&files[..], &[("other.rs", "use crate::b::B;\nfn f() {}")]].concat();
            assert_eq!(of(&files).len(), 1, "{parent}");
        }
    }

    #[test]
    fn reexports_are_not_imports() {
        let child = ("b/c.rs", "use super::B;\npub fn run() {}\npub struct C;");
        for parent in [
            "mod c;\npub struct B;",
            "mod c;\npub use c::C;\npub(crate) use self::c::run as start;\npub struct B;",
            "pub mod c;\npub use c::*;\npub struct B { run: u8 }\nfn f(b: B) { b.run() }",
            "mod d;\npub struct B;",
        ] {
            let user = ("d.rs", "use crate::b::C;");
            let files = [("lib.rs", "mod b; pub use b::B;"), ("b.rs", parent), child, user];
            assert_eq!(of(&files), [""; 0], "{parent}");
        }
    }

    #[test]
    fn paths_through_reexports_resolve_to_the_defining_file() {
        let files = [
            ("lib.rs", "mod b;\nmod e;\nuse std::fmt;"),
            ("b/mod.rs", "mod c;\nmod d;\npub use c::C;\npub use d::*;\nuse crate::e::E;"),
            ("b/c.rs", "use super::D;"),
            ("b/d.rs", "pub struct D;\nfn f() -> fmt::Result { crate::b::c::C }"),
            ("e.rs", "use crate::b::C;"),
        ];
        assert_eq!(of(&files), ["b/c.rs:1 uses b/d.rs, b/d.rs:2 uses b/c.rs"]);
    }

    #[test]
    fn test_code_and_other_crates_are_ignored() {
        let files = [
            ("lib.rs", "mod b;\nmod c;\n#[cfg(test)]\nmod fixture;"),
            ("b.rs", "pub fn b() {}\n#[cfg(test)]\nmod tests { use crate::c::c; }"),
            ("c.rs", "use super::b::b;\n#[cfg(test)]\n#[path = \"c_tests.rs\"]\nmod tests;"),
            ("c_tests.rs", "use super::*;\nuse crate::fixture::f;"),
            ("fixture.rs", "use crate::c::c;"),
            ("b/tests.rs", "use crate::c::c;"),
            ("model.rs", "use c::c; use stats::b; fn f() { stats::c::c() }"),
        ];
        assert_eq!(of(&files), [""; 0]);
    }
}
