//! Limits on the length of functions, files and lines, and on the number of parameters and fields.
//! Test code is exempt, except from the limit on lines.

use crate::repo::{File, Repo, Violation, extension, is_held};
use crate::rust::{Function, Kind, Source, Struct, Token};

/// Lines of a function, from `fn` to the closing brace.
const FUNCTION_LINES: usize = 70;

/// Lines of a file, without test code.
const FILE_LINES: usize = 500;

/// Characters of a line of Rust.
const COLUMNS: usize = 100;

/// Parameters of a function except `self`; each element of a tuple counts.
const PARAMETERS: usize = 6;

/// Named fields of a struct. Structs that derive clap's `Args` or `Parser` are exempt: they are
/// lists of flags, and only clap constructs them.
const FIELDS: usize = 20;

/// Checks all limits.
pub(crate) fn check(repo: &Repo) -> Vec<Violation> {
    let mut found: Vec<_> = repo.files.iter().filter_map(file_length).collect();
    for (file, source) in repo.rust() {
        found.extend(function_lengths(file, source));
        found.extend(line_widths(file, source));
        if is_held(&file.path) {
            found.extend(parameters(file, source));
            found.extend(fields(file, source));
        }
    }
    found
}

/// A file with too many lines, not counting test code.
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

/// Functions with too many parameters.
fn parameters(file: &File, source: &Source) -> Vec<Violation> {
    let many = source.functions().into_iter().filter(|f| f.parameters > PARAMETERS);
    let many = many.filter(|f| !file.is_test_line(f.first));
    let text = |f: &Function| {
        format!(
            "function `{}` has {} parameters with tuples unpacked, the limit is {PARAMETERS}: make \
             a struct of those that belong together",
            f.name, f.parameters
        )
    };
    many.map(|f| file.violation(f.first, text(&f))).collect()
}

/// Structs with too many fields.
fn fields(file: &File, source: &Source) -> Vec<Violation> {
    let many = source.structs().into_iter().filter(|s| s.fields > FIELDS && !s.is_command_line);
    let many = many.filter(|s| !file.is_test_line(s.line));
    let text = |s: &Struct| {
        format!(
            "struct `{}` has {} fields, the limit is {FIELDS}: make structs of those that belong \
             together",
            s.name, s.fields
        )
    };
    many.map(|s| file.violation(s.line, text(&s))).collect()
}

/// Lines that are too wide; test lines with a literal are exempt.
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
    fn a_function_of_7_parameters_fails_however_they_are_written() {
        assert_eq!(
            of("a/src/a.rs", "fn f(&self, (a, b): (u8, u8), c: [u8; 3], d: D, e: E, g: G) {}"),
            [""; 0]
        );
        let seven = "fn f(&self, (a, b): (u8, u8), (c, d): &(u8, u8), e: E, g: G, h: H) {}";
        let expected = "a/src/a.rs:1: function `f` has 7 parameters with tuples unpacked, the \
                        limit is 6: make a struct of those that belong together";
        assert_eq!(of("a/src/a.rs", seven), [expected]);
        assert_eq!(of("a/src/tests.rs", seven), [""; 0]);
    }

    #[test]
    fn a_struct_of_21_fields_fails_unless_it_is_a_command_line() {
        let fields = |number: usize| format!("struct S {{\n{}}}\n", "    a: A,\n".repeat(number));
        assert_eq!(of("a/src/a.rs", &fields(20)), [""; 0]);
        let expected = "a/src/a.rs:1: struct `S` has 21 fields, the limit is 20: make structs of \
                        those that belong together";
        assert_eq!(of("a/src/a.rs", &fields(21)), [expected]);
        for derive in ["#[derive(Debug, Args)]\n", "#[derive(Parser)]\n#[command(x)]\npub "] {
            assert_eq!(of("a/src/a.rs", &(derive.to_owned() + &fields(21))), [""; 0]);
        }
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
