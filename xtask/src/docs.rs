//! Consistency of the documentation: links to files resolve, every study is mentioned, and every
//! test named by a promise exists.

use crate::repo::{File, Repo, Violation, extension};
use crate::rust::is_word;

/// Checks the Markdown under `docs/` and at the root, and the studies against it.
pub(crate) fn check(repo: &Repo) -> Vec<Violation> {
    let pages: Vec<_> = repo.files.iter().filter(|f| is_page(&f.path)).collect();
    let mut found: Vec<_> = pages.iter().flat_map(|page| broken_links(repo, page)).collect();
    for file in repo.files.iter().filter(|f| f.path.starts_with("studies/")) {
        let Some(name) = file.name().strip_suffix(".toml") else { continue };
        if !pages.iter().any(|page| mentions(&page.text, name)) {
            let text =
                format!("study `{name}` is not mentioned: describe it in docs/ or README.md");
            found.push(file.violation(1, text));
        }
    }
    found.extend(missing_tests(repo));
    found
}

/// The page whose promises name the tests that verify them.
const PROMISES: &str = "docs/SAFETY.md";

/// Tests that the page of promises names after a link, as in ``[a.rs](../a.rs): `test` ``, but
/// that the linked file does not contain.
fn missing_tests(repo: &Repo) -> Vec<Violation> {
    let mut found = Vec::new();
    let Some(page) = repo.files.iter().find(|file| file.path == PROMISES) else { return found };
    for (line, text) in (1..).zip(page.text.lines()) {
        for (path, names) in text.split("](").skip(1).filter_map(|rest| rest.split_once("): ")) {
            let place = resolve(&page.path, path);
            let file = repo.files.iter().find(|file| Some(&file.path) == place.as_ref());
            let source = file.map_or("", |file| &file.text);
            let names = names.split(';').next().unwrap_or_default().split('`').skip(1).step_by(2);
            for name in names.filter(|name| !source.contains(&format!("fn {name}("))) {
                let text = format!("test `{name}` is not in {path}: correct it, or write it");
                found.push(page.violation(line, text));
            }
        }
    }
    found
}

/// Markdown under `docs/` or at the root.
fn is_page(path: &str) -> bool {
    extension(path) == "md" && (path.starts_with("docs/") || !path.contains('/'))
}

/// True if `text` contains `name` as a whole word; hyphens are part of a name.
fn mentions(text: &str, name: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| is_word(c) || c == '-');
    text.match_indices(name).any(|(at, _)| {
        !part(text[..at].chars().next_back()) && !part(text[at + name.len()..].chars().next())
    })
}

/// Links to files that are not in the repository.
fn broken_links(repo: &Repo, page: &File) -> Vec<Violation> {
    let mut found = Vec::new();
    for (line, target) in links(&page.text) {
        let Some(path) = local(&target) else { continue };
        let place = resolve(&page.path, path);
        if !place.is_some_and(|p| repo.has(&p)) {
            let text = format!("link to `{target}`, which is not in the repository: correct it");
            found.push(page.violation(line, text));
        }
    }
    found
}

/// Targets of links and images with their lines; code is skipped.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut fenced = false;
    for (line, text) in (1..).zip(text.lines()) {
        let fence = text.trim_start().starts_with("```") || text.trim_start().starts_with("~~~");
        fenced ^= fence;
        if fenced || fence {
            continue;
        }
        // Every second part between backticks is code.
        let prose: String = text.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let inline = prose.match_indices("](").map(|(at, _)| &prose[at + 2..]);
        let inline = inline.filter_map(|rest| Some(&rest[..rest.find(')')?]));
        let named = prose.strip_prefix('[').and_then(|rest| Some(rest.split_once("]:")?.1));
        found.extend(inline.chain(named).map(|target| (line, bare(target).to_owned())));
    }
    found
}

/// A target without title and angle brackets.
fn bare(target: &str) -> &str {
    let target = target.trim();
    match target.strip_prefix('<').and_then(|t| t.split_once('>')) {
        Some((inside, _)) => inside,
        None => target.split_whitespace().next().unwrap_or_default(),
    }
}

/// The path of a target; `None` for another site or an anchor on the same page.
fn local(target: &str) -> Option<&str> {
    let scheme = target.split(['/', '#']).next().is_some_and(|start| start.contains(':'));
    let path = target.split(['#', '?']).next().unwrap_or_default();
    (!scheme && !path.is_empty()).then_some(path)
}

/// `target` relative to `page`, as a path from the root; `None` if it is outside the repository.
fn resolve(page: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        parts.clear();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Vec<String> {
        check(&Repo::of(files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn promises_name_existing_tests() {
        let page =
            "| a | [t.rs](../t.rs): `one`, `two`; [u.rs](../u.rs): `one` |\n`three` (four)\n";
        let files = [
            ("docs/SAFETY.md", page),
            ("t.rs", "fn one() {}"),
            ("u.rs", "fn one() {}\nfn two() {}"),
        ];
        let expected = "docs/SAFETY.md:1: test `two` is not in ../t.rs: correct it, or write it";
        assert_eq!(of(&files), [expected]);
    }

    #[test]
    fn links_that_resolve_pass() {
        let page = "[a](GLOSSARY.md), [b](./journal/one.md#top) ![c](../web/a.svg \"t\")\n\
                    [d](https://example.org/x) [e](#here) [f](../studies/) [g](<GLOSSARY.md>)\n\
                    [h]: ../README.md\n[i](mailto:x@example.org) `[no](code.md)`\n\
                    ```\n[no](fenced.md)\n```\n";
        let files = [
            ("docs/ARCHITECTURE.md", page),
            ("docs/GLOSSARY.md", ""),
            ("docs/journal/one.md", "[up](../GLOSSARY.md)"),
            ("web/a.svg", ""),
            ("studies/one.toml", ""),
            ("README.md", "[root](docs/GLOSSARY.md) studies/one.toml"),
        ];
        assert_eq!(of(&files), [""; 0]);
    }

    #[test]
    fn links_that_do_not_resolve_fail() {
        for target in ["gone.md", "../docs/gone.md#x", "journal", "../../outside.md", "<a b.md>"] {
            let page = format!("first\nsee [x]({target})\n");
            let inside = target.trim_matches(['<', '>']);
            let expected = format!(
                "docs/a.md:2: link to `{inside}`, which is not in the repository: correct it"
            );
            assert_eq!(of(&[("docs/a.md", &page)]), [expected]);
        }
        assert_eq!(of(&[("README.md", "[x]: docs/gone.md")]).len(), 1);
        assert_eq!(of(&[("web/notes.md", "[x](gone.md)")]), [""; 0]);
    }

    #[test]
    fn every_study_is_mentioned() {
        let study = ("studies/sessions.toml", "");
        assert_eq!(of(&[study, ("docs/a.md", "run `cachedyno run sessions`")]), [""; 0]);
        for text in ["sessions-2019", "obsessions", ""] {
            let expected = "studies/sessions.toml:1: study `sessions` is not mentioned: describe it \
                            in docs/ or README.md";
            assert_eq!(of(&[study, ("README.md", text)]), [expected]);
        }
    }
}
