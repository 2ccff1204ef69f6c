//! Imports between the files of a crate: every path is resolved through imports and re-exports to
//! the module that defines the item.
//!
//! An import is an item that another file defines, named in a `use` or by a path in the code.
//! These do not count:
//!
//! - `mod child;`, and a `pub use child::Item` of what a module's own descendants define: both
//!   only hand on a name. When the code of the module uses that name as well, it is one.
//! - `use crate::module;`: what is then reached as `module::item` counts, in the file that
//!   defines it.
//! - Test code.
//!
//! What only the compiler knows is not seen: methods in another file than their type, paths that
//! macros make, and paths in the strings of attributes.

use std::collections::{BTreeMap, BTreeSet};

use crate::repo::{File, Repo};
use crate::rust::{Path, Source};

/// Words before the name of an item.
const ITEMS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

/// Maximum length of a chain of re-exports.
const REEXPORTS: usize = 16;

/// A file that uses an item of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Import<'a> {
    /// Path of the file that uses it.
    pub(crate) by: &'a str,
    /// Path of the file that defines it.
    pub(crate) of: &'a str,
    /// Line of the use, starting at 1.
    pub(crate) line: usize,
}

/// Segments of a path; as a module's name, those from the root of its crate on.
type Names = Vec<String>;

/// A module, in its own file or inline.
struct Module<'a> {
    /// Path of its file.
    file: &'a str,
    /// Names of the items that it defines.
    items: BTreeSet<String>,
    /// Names imported by its `use` declarations.
    uses: Vec<Use>,
    /// Other paths in its code that can refer to an item, with their lines.
    mentions: Vec<(Names, usize)>,
}

/// A name imported by a `use`.
struct Use {
    /// The name; `*` for all names of a module.
    name: String,
    /// The imported path.
    path: Names,
    /// True for `pub use`, of any visibility.
    reexport: bool,
    /// Its line.
    line: usize,
}

/// The target of a path.
struct Place {
    /// The module.
    module: Names,
    /// True for an item of the module, false for the module as such.
    is_item: bool,
}

/// The modules of a crate; the name of the root is empty.
struct Crate<'a>(BTreeMap<Names, Module<'a>>);

/// Imports between the files of each crate.
pub(crate) fn of(repo: &Repo) -> BTreeSet<Import<'_>> {
    let mut crates: BTreeMap<&str, Crate<'_>> = BTreeMap::new();
    for (file, source) in repo.rust().filter(|(file, _)| !file.is_test()) {
        if let Some((directory, inside)) = file.path.rsplit_once("/src/") {
            let of_file = crates.entry(directory).or_insert_with(|| Crate(BTreeMap::new()));
            of_file.read(module_of(inside), file, source);
        }
    }
    crates.values().flat_map(Crate::imports).collect()
}

/// Name of the module whose file has this path from `src` on.
fn module_of(inside: &str) -> Names {
    let path = inside.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    let is_root = matches!(path, "lib" | "main");
    path.split('/').filter(|_| !is_root).map(str::to_owned).collect()
}

impl<'a> Crate<'a> {
    /// Adds the module `name` of a file and its inline modules.
    fn read(&mut self, name: Names, file: &'a File, source: &Source) {
        let bodies = bodies(name, source);
        for (name, start, end) in &bodies {
            let items = items(source, *start, *end);
            let module = Module { file: &file.path, items, uses: vec![], mentions: vec![] };
            self.0.insert(name.clone(), module);
        }
        let paths = source.paths();
        // Index of the token that ends the last `use`, and whether that is a re-export.
        let mut declaration = (0, false);
        for (i, path) in paths.iter().enumerate().filter(|(_, p)| !source.is_test_line(p.line)) {
            if path.text == "use" && !source.reads(path.at + 1, &["<"]) {
                let end = (path.at..source.tokens.len()).find(|at| source.reads(*at, &[";"]));
                declaration = (end.unwrap_or(path.at), is_public(source, path.at));
                continue;
            }
            let inner = bodies.iter().rfind(|(_, start, end)| (*start..*end).contains(&path.at));
            let Some(module) = inner.and_then(|(name, ..)| self.0.get_mut(name)) else { continue };
            if path.at < declaration.0 {
                let before = i.checked_sub(1).and_then(|i| paths.get(i));
                module.uses.extend(imported(before, &paths[i..], declaration.1));
            } else if may_name_an_item(source, path) {
                module.mentions.push((segments(&path.text), path.line));
            }
        }
    }

    /// Imports between the crate's files.
    fn imports(&self) -> Vec<Import<'a>> {
        let mut found = Vec::new();
        for (name, module) in &self.0 {
            let imported = module.uses.iter().map(|u| (&u.path, u.line, u.reexport));
            let mentioned = module.mentions.iter().map(|(path, line)| (path, *line, false));
            for (path, line, reexport) in imported.chain(mentioned) {
                let Some(place) = self.resolve(name, path, REEXPORTS) else { continue };
                let hands_on = reexport && place.module.starts_with(name);
                let Some(of) = self.0.get(&place.module).filter(|_| place.is_item && !hands_on)
                else {
                    continue;
                };
                if of.file != module.file {
                    found.push(Import { by: module.file, of: of.file, line });
                }
            }
        }
        found
    }

    /// Where `path` leads from the module `from`; nowhere when it starts with another crate or a
    /// name of the language.
    fn resolve(&self, from: &[String], path: &[String], steps: usize) -> Option<Place> {
        let steps = steps.checked_sub(1)?;
        match path.first()?.as_str() {
            "crate" => Some(self.walk(&[], &path[1..], steps)),
            "self" | "super" => Some(self.walk(from, path, steps)),
            _ => self.member(from, path, steps),
        }
    }

    /// Where `path` leads from within the module `at`, which defines what is not known to be
    /// elsewhere.
    fn walk(&self, at: &[String], path: &[String], steps: usize) -> Place {
        let here = |is_item| Place { module: at.to_vec(), is_item };
        match path.first().map(String::as_str) {
            None => here(false),
            Some("*") => here(true),
            Some("self") => self.walk(at, &path[1..], steps),
            Some("super") => self.walk(&at[..at.len().saturating_sub(1)], &path[1..], steps),
            Some(_) => self.member(at, path, steps).unwrap_or(here(true)),
        }
    }

    /// Where `path` leads whose first segment is a name that the module `at` has.
    fn member(&self, at: &[String], path: &[String], steps: usize) -> Option<Place> {
        let (first, rest) = path.split_first()?;
        let child = [at, std::slice::from_ref(first)].concat();
        if self.0.contains_key(&child) {
            return Some(self.walk(&child, rest, steps));
        }
        let module = self.0.get(at)?;
        if module.items.contains(first) {
            return Some(Place { module: at.to_vec(), is_item: true });
        }
        if let Some(named) = module.uses.iter().find(|u| u.name == *first) {
            return self.resolve(at, &[&named.path, rest].concat(), steps);
        }
        module.uses.iter().filter(|u| u.name == "*").find_map(|all| {
            let place = self.resolve(at, &all.path, steps)?;
            self.member(&place.module, path, steps.checked_sub(1)?)
        })
    }
}

/// The module of a file and its inline modules, each with its token range (end exclusive); outer
/// modules come first.
fn bodies(name: Names, source: &Source) -> Vec<(Names, usize, usize)> {
    let mut found = vec![(name, 0, source.tokens.len())];
    for (at, token) in source.tokens.iter().enumerate() {
        if token.is("mod") && source.reads(at + 2, &["{"]) && !source.is_test_line(token.first) {
            let outer = found.iter().rfind(|(_, start, end)| (*start..*end).contains(&at));
            let outer = outer.map_or(&[][..], |(name, ..)| name);
            let name = [outer, &[source.tokens[at + 1].text.clone()]].concat();
            found.push((name, at + 3, source.closing(at + 2)));
        }
    }
    found
}

/// Names of the items between two tokens, not counting the contents of brackets.
fn items(source: &Source, start: usize, end: usize) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut at = start;
    while at < end {
        let token = &source.tokens[at];
        if ["(", "[", "{"].iter().any(|bracket| token.is(bracket)) {
            at = source.closing(at);
        } else if ITEMS.iter().any(|word| token.is(word)) {
            found.extend(source.tokens.get(at + 1).map(|name| name.text.clone()));
        } else if source.reads(at, &["macro_rules", "!"]) {
            found.extend(source.tokens.get(at + 2).map(|name| name.text.clone()));
        }
        at += 1;
    }
    found
}

/// True if the item whose keyword is at `at` has a visibility.
fn is_public(source: &Source, at: usize) -> bool {
    // A closing bracket belongs to `pub(crate)`.
    let before = |word| at.checked_sub(1).is_some_and(|before| source.reads(before, &[word]));
    before("pub") || before(")")
}

/// The name that the first of `paths` imports, if it is a path of the `use` and not what follows
/// an `as`.
fn imported(before: Option<&Path>, paths: &[Path], reexport: bool) -> Option<Use> {
    let path = paths.first()?;
    if path.text == "as" || before.is_some_and(|p| p.text == "as") {
        return None;
    }
    let has_alias = paths.get(1).is_some_and(|next| next.text == "as");
    let alias = paths.get(2).filter(|_| has_alias).map(|alias| alias.text.clone());
    let names = segments(&path.text);
    let own = names.iter().rev().find(|name| *name != "self").cloned();
    Some(Use { name: alias.or(own)?, path: names, reexport, line: path.line })
}

/// Segments of a path.
fn segments(path: &str) -> Names {
    path.split("::").filter(|segment| !segment.is_empty()).map(str::to_owned).collect()
}

/// True for a path of several segments, a type name or a function call; false for methods,
/// variables and definitions.
fn may_name_an_item(source: &Source, path: &Path) -> bool {
    let after =
        |words: &[&str]| path.at.checked_sub(words.len()).is_some_and(|at| source.reads(at, words));
    if after(&["."]) || after(&[":", ":"]) || after(&["fn"]) {
        return false;
    }
    let is_type = path.text.starts_with(char::is_uppercase);
    path.text.contains("::") || is_type || source.reads(path.at + 1, &["("])
}
