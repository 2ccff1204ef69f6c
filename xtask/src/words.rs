//! Text that no file may contain: paths of one developer's machine, markers of unfinished work,
//! debugging aids, and hosts of package registries (except in lock files).

use crate::repo::{File, Repo, Violation};
use crate::rust::is_word;

/// Forbidden words and their fix. They are concatenated, so that this file does not contain them.
const WORDS: [(&str, &str); 5] = [
    (concat!("TO", "DO"), "do it, or open an issue"),
    (concat!("FIX", "ME"), "fix it, or open an issue"),
    (concat!("to", "do!("), "write the code"),
    (concat!("unimpl", "emented!("), "write the code"),
    (concat!("db", "g!("), "remove it"),
];

/// Hosts of package registries.
const REGISTRIES: [&str; 7] = [
    concat!("registry.", "npmjs.org"),
    concat!("registry.", "yarnpkg.com"),
    concat!("index.", "crates.io"),
    concat!("static.", "crates.io"),
    concat!("files.", "pythonhosted.org"),
    concat!("pypi", ".org"),
    concat!("proxy.", "golang.org"),
];

/// Directories that exist only on one machine.
const WORK: &str = concat!("/wo", "rk/");
const HOME: &str = concat!("/ho", "me/");

/// Checks every line of every text file.
pub(crate) fn check(repo: &Repo) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in &repo.files {
        for (line, text) in (1..).zip(file.text.lines()) {
            found.extend(faults(file, text).into_iter().map(|f| file.violation(line, f)));
        }
    }
    found
}

/// Problems of one line.
fn faults(file: &File, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (word, cure) in WORDS {
        if stands_alone(text, word) {
            found.push(format!("`{word}` in the text: {cure}"));
        }
    }
    if let Some(path) = machine_path(text) {
        found.push(format!("`{path}` is a path of one machine: write it relative or from a flag"));
    }
    let host = REGISTRIES.iter().find(|host| text.contains(**host));
    if let Some(host) = host.filter(|_| !is_lock(file.name())) {
        found.push(format!("`{host}` is a package registry: leave the choice to the user's tools"));
    }
    found
}

/// True if `word` occurs and is not part of a longer word.
fn stands_alone(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let longer = word.ends_with(is_word) && after.is_some_and(is_word);
        !before.is_some_and(is_word) && !longer
    })
}

/// A path into a home directory or a working directory, from its first slash.
fn machine_path(text: &str) -> Option<&str> {
    let starts = |word| text.match_indices(word).map(|(at, _)| at);
    let absolute = |at: &usize| {
        let before = text[..*at].chars().next_back();
        !before.is_some_and(|c| is_word(c) || "./-*}>)".contains(c))
    };
    let end = |at: usize| {
        let ends = |c: char| c.is_whitespace() || "\"'`<>()[]{},;".contains(c);
        text[at..].find(ends).map_or(text.len(), |n| at + n)
    };
    let homes = starts(HOME).filter(|at| {
        let user = text[at + HOME.len()..end(*at)].split_once('/');
        user.is_some_and(|(name, _)| !name.is_empty())
    });
    starts(WORK).chain(homes).find(absolute).map(|at| &text[at..end(at)])
}

/// True for lock files, which record the sources of packages.
fn is_lock(name: &str) -> bool {
    let ends = |end| name.to_ascii_lowercase().ends_with(end);
    ends(".lock") || ends("-lock.json") || ends("-lock.yaml")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, text: &str) -> Vec<String> {
        check(&Repo::of(&[(path, text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn forbidden_words_fail_in_every_file() {
        for (word, cure) in WORDS {
            for path in ["README.md", "web/src/a.ts", "crates/a/src/tests.rs", "Makefile"] {
                let expected = format!("{path}:2: `{word}` in the text: {cure}");
                assert_eq!(of(path, &format!("a\n b ({word} c\n")), [expected]);
            }
        }
    }

    #[test]
    fn longer_words_and_other_paths_pass() {
        for text in [
            concat!("MASTO", "DON"),
            concat!("a_to", "do!(x)"),
            concat!("https://example.org/wo", "rk/x"),
            concat!("src/wo", "rk/x.rs"),
            concat!("/ho", "me/"),
            concat!("the folder /wo", "rk"),
            concat!("$HOME/x, ~/ho", "me/x"),
            "/homework/ and /usr/bin/redis-server",
            "crates.io",
        ] {
            assert_eq!(of("a.md", text), [""; 0], "{text}");
        }
    }

    #[test]
    fn machine_paths_fail() {
        for (text, path) in [
            (concat!("see `/wo", "rk/main/a.rs`."), concat!("/wo", "rk/main/a.rs")),
            (concat!("dir=/ho", "me/ann/x y"), concat!("/ho", "me/ann/x")),
            (concat!("\"/ho", "me/ann/\""), concat!("/ho", "me/ann/")),
        ] {
            let expected = format!(
                "a.md:1: `{path}` is a path of one machine: write it relative or from a flag"
            );
            assert_eq!(of("a.md", text), [expected]);
        }
    }

    #[test]
    fn registries_are_allowed_in_lock_files_only() {
        for host in REGISTRIES {
            let text = format!("https://{host}/left-pad");
            assert_eq!(of("web/package-lock.json", &text), [""; 0]);
            assert_eq!(of("Cargo.lock", &text), [""; 0]);
            assert_eq!(of("web/.npmrc", &text).len(), 1, "{host}");
        }
    }
}
