//! How long functions, files and lines may be; tests aside.

use crate::repo::{File, Repo, Violation, extension};
use crate::rust::{Kind, Source, Token};

/// Lines of a function, from `fn` to the closing brace.
const FUNCTION_LINES: usize = 70;

/// Lines of a file, without test code.
const FILE_LINES: usize = 500;

/// Characters of a line of Rust.
const COLUMNS: usize = 100;

/// Checks all three limits.
pub(crate) fn check(repo: &Repo) -> Vec<Violation> {
    let mut found: Vec<_> = repo.files.iter().filter_map(file_length).collect();
    for (file, source) in repo.rust() {
        found.extend(function_lengths(file, source));
        found.extend(line_widths(file, source));
    }
    found
}

/// Too many lines that are not test code.
fn file_length(file: &File) -> Option<Violation> {
    let counted = ["rs", "ts", "py"].contains(&extension(&file.path));
    if !counted || file.is_test() {
        return None;
    }
    let lines = file.text.lines().enumerate().filter(|(i, _)| !file.is_test_line(i + 1)).count();
    (lines > FILE_LINES).then(|| {
        let text = format!(
            "the file has {lines} lines without tests, the limit is {FILE_LINES}: split it"
        );
        file.violation(1, text)
    })
}

/// Functions that are too long.
fn function_lengths(file: &File, source: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    for function in source.functions() {
        let lines = function.last - function.first + 1;
        if lines > FUNCTION_LINES && !file.is_test_line(function.first) {
            let text = format!(
                "function `{}` has {lines} lines, the limit is {FUNCTION_LINES}: take a part out",
                function.name
            );
            found.push(file.violation(function.first, text));
        }
    }
    found
}

/// Lines that are too wide; lines of tests that hold a literal may be.
fn line_widths(file: &File, source: &Source) -> Vec<Violation> {
    let holds_literal = |line: usize| {
        let literal = |t: &Token| t.kind == Kind::Literal;
        source.tokens.iter().any(|t| literal(t) && (t.first..=t.last).contains(&line))
    };
    let mut found = Vec::new();
    for (line, text) in (1..).zip(file.text.lines()) {
        let columns = text.chars().count();
        if columns > COLUMNS && !(file.is_test_line(line) && holds_literal(line)) {
            let text = format!("the line has {columns} columns, the limit is {COLUMNS}: break it");
            found.push(file.violation(line, text));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str, text: &str) -> Vec<String> {
        check(&Repo::of(&[(path, text)])).iter().map(ToString::to_string).collect()
    }

    fn function(lines: usize) -> String {
        format!("fn long() {{\n{}}}\n", "    \"}\";\n".repeat(lines - 2))
    }

    #[test]
    fn a_function_of_70_lines_passes_and_one_of_71_fails() {
        assert_eq!(of("crates/rig/src/a.rs", &function(70)), [""; 0]);
        let expected = "crates/rig/src/a.rs:1: function `long` has 71 lines, the limit is 70: \
                        take a part out";
        assert_eq!(of("crates/rig/src/a.rs", &function(71)), [expected]);
        assert_eq!(of("crates/rig/tests/a.rs", &function(71)), [""; 0]);
    }

    #[test]
    fn a_file_of_500_lines_passes_and_one_of_501_fails_tests_aside() {
        let tests = "#[cfg(test)]\nmod tests {\n}\n";
        for (path, comment) in [("a/src/a.rs", "//\n"), ("web/a.ts", "//\n"), ("a.py", "#\n")] {
            assert_eq!(of(path, &comment.repeat(500)), [""; 0]);
            let expected = format!(
                "{path}:1: the file has 501 lines without tests, the limit is 500: split it"
            );
            assert_eq!(of(path, &comment.repeat(501)), [expected]);
        }
        assert_eq!(of("a/src/a.rs", &("//\n".repeat(500) + tests)), [""; 0]);
        assert_eq!(of("a/data.json", &"1\n".repeat(900)), [""; 0]);
        assert_eq!(of("a/src/tests.rs", &"//\n".repeat(900)), [""; 0]);
    }

    #[test]
    fn a_line_of_101_columns_fails_unless_it_is_a_literal_of_a_test() {
        let wide = format!("const S: &str = \"{}\";\n", "ä".repeat(90));
        let expected = "a/src/a.rs:1: the line has 109 columns, the limit is 100: break it";
        assert_eq!(of("a/src/a.rs", &wide), [expected]);
        assert_eq!(of("a/src/tests.rs", &wide), [""; 0]);
        assert_eq!(of("a/src/a.rs", &format!("//{}\n", "ä".repeat(98))), [""; 0]);
        assert_eq!(of("a/src/tests.rs", &format!("//{}\n", "x".repeat(99))).len(), 1);
    }
}
