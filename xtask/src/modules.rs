//! Resolves the `mod` declarations of a source file to files.

use crate::rust::{Kind, Source, Token};

/// True for crate roots that cargo discovers automatically.
pub(crate) fn is_root(path: &str) -> bool {
    let Some((_, inside)) = path.rsplit_once("src/") else { return false };
    let program = |p: &str| !p.contains('/') || p.ends_with("/main.rs");
    matches!(inside, "lib.rs" | "main.rs") || inside.strip_prefix("bin/").is_some_and(program)
}

/// A possible location of a declared module's file.
pub(crate) struct Declared {
    /// Path from the repository's root; the file need not exist.
    pub(crate) path: String,
    /// Line of the declaration.
    pub(crate) line: usize,
}

/// Possible locations of the modules that the source file at `path` declares in other files.
pub(crate) fn declared(path: &str, source: &Source) -> Vec<Declared> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.trim_end_matches(".rs");
    let own = if is_root(path) || stem == "mod" {
        directory.to_owned()
    } else {
        format!("{directory}/{stem}")
    };
    let mut found = Vec::new();
    // Inline modules, each with the index of its closing brace.
    let mut inline: Vec<(String, usize)> = Vec::new();
    for (i, token) in source.tokens.iter().enumerate() {
        inline.retain(|(_, end)| i < *end);
        let Some(module) = source.tokens.get(i + 1).filter(|_| token.is("mod")) else { continue };
        if source.reads(i + 2, &["{"]) {
            inline.push((module.text.clone(), source.closing(i + 2)));
        } else if source.reads(i + 2, &[";"]) {
            let mut place = vec![own.as_str()];
            place.extend(inline.iter().map(|(name, _)| name.as_str()));
            place.push(&module.text);
            let place = place.join("/");
            for path in [format!("{place}.rs"), format!("{place}/mod.rs")] {
                found.push(Declared { path, line: token.first });
            }
        }
    }
    let place = |file: &str| format!("{directory}/{file}");
    found.extend(path_attributes(source).map(|t| Declared { path: place(&t.text), line: t.first }));
    found
}

/// Values of `#[path = "…"]`.
fn path_attributes(source: &Source) -> impl Iterator<Item = &Token> {
    let starts = (0..source.tokens.len()).filter(|i| source.reads(*i, &["#", "[", "path", "="]));
    starts.filter_map(|i| source.tokens.get(i + 4).filter(|t| t.kind == Kind::Literal))
}
