//! A Rust tokenizer, sufficient to measure functions, follow modules and read paths.
//!
//! Comments are dropped. A string, raw string or character is a single token, so that its contents
//! are not mistaken for code.

use std::ops::Range;

/// Kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Name, keyword or number.
    Word,
    /// One character of punctuation.
    Punct,
    /// Content of a string or character literal, as written.
    Literal,
}

/// A token and its lines, starting at 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    /// Its kind.
    pub(crate) kind: Kind,
    /// Its text; for literals without quotes.
    pub(crate) text: String,
    /// First line.
    pub(crate) first: usize,
    /// Last line; differs from the first for multi-line literals.
    pub(crate) last: usize,
}

impl Token {
    /// True for this word or punctuation; a literal is never equal to code.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.kind != Kind::Literal && self.text == text
    }
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Its name.
    pub(crate) name: String,
    /// Line of the keyword `fn`.
    pub(crate) first: usize,
    /// Line of the closing brace.
    pub(crate) last: usize,
    /// Number of parameters except `self`; each element of a tuple counts.
    pub(crate) parameters: usize,
}

/// A struct with named fields.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Struct {
    /// Its name.
    pub(crate) name: String,
    /// Line of the keyword `struct`.
    pub(crate) line: usize,
    /// Number of its fields.
    pub(crate) fields: usize,
    /// True when it derives `Args` or `Parser` of clap.
    pub(crate) is_command_line: bool,
}

/// A path `a::b::c` in the source; the groups of a `use` are expanded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// Its segments with `::` between them; the last is `*` when all names are imported, and empty
    /// before generic arguments.
    pub(crate) text: String,
    /// Line of its first segment; in a group, of the first segment after the prefix.
    pub(crate) line: usize,
    /// Token index of that segment.
    pub(crate) at: usize,
}

/// A source file as tokens.
pub(crate) struct Source {
    /// All tokens in order.
    pub(crate) tokens: Vec<Token>,
    /// First and last lines of the items under `#[cfg(test)]`.
    test_spans: Vec<(usize, usize)>,
}

impl Source {
    /// Tokenizes source and finds test code.
    pub(crate) fn read(text: &str) -> Self {
        let tokens = Lexer { chars: text.chars().collect(), at: 0, line: 1 }.tokens();
        let mut source = Self { tokens, test_spans: Vec::new() };
        source.test_spans = source.find_test_spans();
        source
    }

    /// True inside an item under `#[cfg(test)]`.
    pub(crate) fn is_test_line(&self, line: usize) -> bool {
        self.test_spans.iter().any(|(first, last)| (*first..=*last).contains(&line))
    }

    /// True when the token at `at` and those after it read as `texts`.
    pub(crate) fn reads(&self, at: usize, texts: &[&str]) -> bool {
        let Some(tokens) = self.tokens.get(at..at + texts.len()) else { return false };
        tokens.iter().zip(texts).all(|(token, text)| token.is(text))
    }

    /// Index of the bracket that closes the one at `open`; the last token when none does.
    pub(crate) fn closing(&self, open: usize) -> usize {
        let mut depth = 0usize;
        for (i, token) in self.tokens.iter().enumerate().skip(open) {
            if ["(", "[", "{"].iter().any(|b| token.is(b)) {
                depth += 1;
            } else if [")", "]", "}"].iter().any(|b| token.is(b)) {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return i;
                }
            }
        }
        self.tokens.len().saturating_sub(1)
    }

    /// From `at`, the index of the brace that opens an item's body, or of the semicolon that ends
    /// an item without one; contents of round and square brackets are skipped.
    fn body_or_end(&self, mut at: usize) -> Option<usize> {
        while let Some(token) = self.tokens.get(at) {
            if token.is("{") || token.is(";") {
                return Some(at);
            }
            at = if token.is("(") || token.is("[") { self.closing(at) + 1 } else { at + 1 };
        }
        None
    }

    /// Functions with a body, nested ones too.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let mut found = Vec::new();
        for (i, pair) in self.tokens.windows(2).enumerate() {
            if !pair[0].is("fn") || pair[1].kind != Kind::Word {
                continue;
            }
            let Some(body) = self.body_or_end(i + 2) else { continue };
            if self.tokens[body].is("{") {
                let last = self.tokens[self.closing(body)].last;
                let (name, first) = (pair[1].text.clone(), pair[0].first);
                found.push(Function { name, first, last, parameters: self.parameters(i + 2) });
            }
        }
        found
    }

    /// Structs with named fields.
    pub(crate) fn structs(&self) -> Vec<Struct> {
        let mut found = Vec::new();
        for (i, pair) in self.tokens.windows(2).enumerate() {
            let body = self.body_or_end(i + 2).filter(|_| pair[0].is("struct"));
            let Some(body) = body.filter(|body| self.tokens[*body].is("{")) else { continue };
            let before = self.tokens[..i].iter().rev();
            let mut own = before.take_while(|t| !["{", "}", ";"].iter().any(|end| t.is(end)));
            found.push(Struct {
                name: pair[1].text.clone(),
                line: pair[0].first,
                fields: self.parts(body + 1..self.closing(body)).len(),
                is_command_line: own.any(|t| t.is("Args") || t.is("Parser")),
            });
        }
        found
    }

    /// Number of parameters of the function whose generics, or else parameters, open at `at`.
    fn parameters(&self, at: usize) -> usize {
        let open = if self.reads(at, &["<"]) { self.after(at) } else { at };
        let types = self.parts(open + 1..self.after(open) - 1).into_iter();
        types.filter_map(|part| self.type_of(part)).map(|of| self.width(of)).sum()
    }

    /// The tokens after the colon of a parameter; `None` for `self`.
    fn type_of(&self, part: Range<usize>) -> Option<Range<usize>> {
        let mut at = part.start;
        while at < part.end && !self.reads(at, &["self"]) {
            if self.reads(at, &[":", ":"]) {
                at += 2;
            } else if self.reads(at, &[":"]) {
                return Some(at + 1..part.end);
            } else {
                at = self.after(at);
            }
        }
        None
    }

    /// 1 for a type; for a tuple or a reference to one, the sum over its elements.
    fn width(&self, mut of: Range<usize>) -> usize {
        while ["&", "mut", "'"].iter().any(|word| self.reads(of.start, &[word])) {
            of.start += if self.reads(of.start, &["'"]) { 2 } else { 1 };
        }
        if !self.reads(of.start, &["("]) || self.after(of.start) != of.end {
            return 1;
        }
        let parts = self.parts(of.start + 1..of.end - 1);
        parts.into_iter().map(|part| self.width(part)).sum::<usize>().max(1)
    }

    /// The parts between commas; commas in brackets do not separate.
    fn parts(&self, of: Range<usize>) -> Vec<Range<usize>> {
        let (mut found, mut start, mut at) = (Vec::new(), of.start, of.start);
        while at < of.end {
            let after = self.after(at);
            if self.reads(at, &[","]) {
                found.push(start..at);
                start = after;
            }
            at = after;
        }
        found.push(start..of.end);
        found.retain(|part| !part.is_empty());
        found
    }

    /// Index after the token at `at`, or after its closing bracket if it opens one, including angle
    /// brackets of types.
    fn after(&self, at: usize) -> usize {
        if ["(", "[", "{"].iter().any(|open| self.reads(at, &[open])) {
            return self.closing(at) + 1;
        }
        if !self.reads(at, &["<"]) {
            return at + 1;
        }
        let mut inside = at + 1;
        while inside < self.tokens.len() && !self.reads(inside, &[">"]) {
            let is_arrow = self.reads(inside, &["-", ">"]);
            inside = if is_arrow { inside + 2 } else { self.after(inside) };
        }
        inside + 1
    }

    /// Spans of items whose `#[cfg(…)]` requires `test`.
    fn find_test_spans(&self) -> Vec<(usize, usize)> {
        let mut spans = Vec::new();
        for i in 0..self.tokens.len() {
            if !self.reads(i, &["#", "[", "cfg", "("]) {
                continue;
            }
            let end = self.closing(i + 1);
            let asks = |word| self.tokens[i + 4..end].iter().any(|t| t.is(word));
            if !asks("test") || asks("not") {
                continue;
            }
            let Some(body) = self.body_or_end(end + 1) else { continue };
            let last = if self.tokens[body].is("{") { self.closing(body) } else { body };
            spans.push((self.tokens[i].first, self.tokens[last].last));
        }
        spans
    }

    /// All paths, including single segments, in token order.
    pub(crate) fn paths(&self) -> Vec<Path> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            at = if self.tokens[at].kind == Kind::Word {
                self.path(at, "", &mut found)
            } else {
                at + 1
            };
        }
        found
    }

    /// Reads the path at `at`, whose group's prefix is `prefix`; returns the index after it.
    fn path(&self, mut at: usize, prefix: &str, found: &mut Vec<Path>) -> usize {
        let mut text = prefix.to_owned();
        let (first, line) = (at, self.tokens[at].first);
        loop {
            text.push_str(&self.tokens[at].text);
            at += 1;
            if !self.reads(at, &[":", ":"]) {
                break;
            }
            text.push_str("::");
            at += 2;
            let Some(next) = self.tokens.get(at) else { break };
            if next.is("{") {
                return self.group(at, &text, found);
            }
            if next.kind != Kind::Word {
                text.push_str(if next.is("*") { "*" } else { "" });
                break;
            }
        }
        found.push(Path { text, line, at: first });
        at
    }

    /// Reads the group that opens at `open`; returns the index after its closing brace.
    fn group(&self, open: usize, prefix: &str, found: &mut Vec<Path>) -> usize {
        let end = self.closing(open);
        let mut at = open + 1;
        while at < end {
            if self.tokens[at].kind == Kind::Word {
                at = self.path(at, prefix, found);
                continue;
            }
            if self.tokens[at].is("*") {
                found.push(Path { text: format!("{prefix}*"), line: self.tokens[at].first, at });
            }
            at += 1;
        }
        end + 1
    }
}

/// Reads characters into tokens.
struct Lexer {
    chars: Vec<char>,
    at: usize,
    line: usize,
}

impl Lexer {
    fn tokens(mut self) -> Vec<Token> {
        let mut tokens = Vec::new();
        while let Some(c) = self.peek(0) {
            let first = self.line;
            let (kind, text) = match c {
                '/' if self.peek(1) == Some('/') => {
                    self.skip_while(|c| c != '\n');
                    continue;
                }
                '/' if self.peek(1) == Some('*') => {
                    self.block_comment();
                    continue;
                }
                '"' => (Kind::Literal, self.quoted('"')),
                '\'' if self.peek(1) == Some('\\') || self.peek(2) == Some('\'') => {
                    (Kind::Literal, self.quoted('\''))
                }
                c if is_word(c) => match self.raw_string() {
                    Some(text) => (Kind::Literal, text),
                    None => (Kind::Word, self.take_while(is_word)),
                },
                _ => {
                    self.bump();
                    if c.is_whitespace() {
                        continue;
                    }
                    (Kind::Punct, c.to_string())
                }
            };
            tokens.push(Token { kind, text, first, last: self.line });
        }
        tokens
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.at += 1;
        self.line += usize::from(c == '\n');
        Some(c)
    }

    fn bump_by(&mut self, count: usize) {
        for _ in 0..count {
            self.bump();
        }
    }

    fn take_while(&mut self, holds: impl Fn(char) -> bool) -> String {
        let start = self.at;
        self.skip_while(holds);
        self.chars[start..self.at].iter().collect()
    }

    fn skip_while(&mut self, holds: impl Fn(char) -> bool) {
        while self.peek(0).is_some_and(&holds) {
            self.bump();
        }
    }

    /// Block comments nest.
    fn block_comment(&mut self) {
        let mut depth = 0usize;
        while let Some(c) = self.bump() {
            match (c, self.peek(0)) {
                ('/', Some('*')) => depth += 1,
                ('*', Some('/')) => depth -= 1,
                _ => continue,
            }
            self.bump();
            if depth == 0 {
                return;
            }
        }
    }

    /// A literal between two `quote`s; a backslash escapes the next character.
    fn quoted(&mut self, quote: char) -> String {
        self.bump();
        let start = self.at;
        while let Some(c) = self.peek(0).filter(|c| *c != quote) {
            self.bump();
            if c == '\\' {
                self.bump();
            }
        }
        let text = self.chars[start..self.at].iter().collect();
        self.bump();
        text
    }

    /// A raw string with its prefix (`r`, `br`, `cr`), if one starts here.
    fn raw_string(&mut self) -> Option<String> {
        let prefix = match (self.peek(0)?, self.peek(1)) {
            ('r', _) => 1,
            ('b' | 'c', Some('r')) => 2,
            _ => return None,
        };
        let rest = self.chars.get(self.at + prefix..).unwrap_or_default();
        let hashes = rest.iter().take_while(|c| **c == '#').count();
        if self.peek(prefix + hashes) != Some('"') {
            return None;
        }
        self.bump_by(prefix + hashes + 1);
        let start = self.at;
        let closes = |lexer: &Self| {
            lexer.peek(0) == Some('"') && (1..=hashes).all(|i| lexer.peek(i) == Some('#'))
        };
        while !closes(self) && self.bump().is_some() {}
        let text = self.chars[start..self.at].iter().collect();
        self.bump_by(hashes + 1);
        Some(text)
    }
}

/// A character of a name, keyword or number.
pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let tokens = Source::read(text).tokens;
        tokens.into_iter().filter(|t| t.kind == Kind::Word).map(|t| t.text).collect()
    }

    #[test]
    fn comments_strings_and_characters_are_no_code() {
        let text = r###"a "x } \" y" b r#" " { "# c 'z' d '\'' e /* f /* g */ h */ i // j
            b"k" l br"\" m cr##"n"# "## o '{' p <'static> q"###;
        assert_eq!(words(text).join(" "), "a b c d e i b l m o p static q");
        let strings = Source::read(text).tokens.into_iter().filter(|t| t.kind == Kind::Literal);
        assert_eq!(strings.count(), 8);
    }

    #[test]
    fn raw_names_are_words_and_lines_are_counted_through_literals() {
        let source = Source::read("r#fn\n\"a\nb\" c");
        let lines: Vec<_> = source.tokens.iter().map(|t| (t.first, t.last)).collect();
        assert_eq!(words("r#fn"), ["r", "fn"]);
        assert_eq!(lines, [(1, 1), (1, 1), (1, 1), (2, 3), (3, 3)]);
    }

    #[test]
    fn functions_are_found_with_their_ends() {
        let text = "trait T {\n fn no_body(&self);\n}\nfn one(x: [u8; {3}]) -> fn() {\n \
                    let s = \"}\";\n fn two() {}\n}\ntype F = fn(u8);\n";
        let found: Vec<_> =
            Source::read(text).functions().into_iter().map(|f| (f.name, f.first, f.last)).collect();
        assert_eq!(found, [("one".to_owned(), 4, 7), ("two".to_owned(), 6, 6)]);
    }

    #[test]
    fn parameters_are_counted_with_tuples_unpacked() {
        for (parameters, number) in [
            ("()", 0),
            ("(&mut self, a: u8,)", 1),
            ("(self: Box<Self>, a: u8)", 1),
            ("<F: Fn(u8, u8) -> Vec<(u8, u8)>, const N: usize>(a: F, b: [u8; N])", 2),
            ("((a, b): (u8, u8), c: ())", 3),
            ("(pair: &'a mut (u8, (u8, Option<(u8, u8)>)))", 3),
            ("(f: impl Fn(u8) -> (u8, u8), a::P { x, y }: a::P<u8, u8>)", 2),
            ("(a: &(dyn Fn(u8, u8) + Send), b: &[(u8, u8)])", 2),
        ] {
            let text = format!("fn f{parameters} -> (u8, u8, u8) {{}}");
            assert_eq!(Source::read(&text).functions()[0].parameters, number, "{text}");
        }
    }

    #[test]
    fn structs_are_found_with_their_fields() {
        let text = "struct A;\nstruct B(u8, u8);\n#[derive(Args)]\n#[x]\npub(crate) struct C<T> {\n \
                    #[arg(a, b)]\n pub a: Vec<(T, T)>,\n b: u8,\n}\nstruct D where A: B { a: A }\n";
        let found = Source::read(text).structs();
        let found: Vec<_> =
            found.iter().map(|s| (&*s.name, s.line, s.fields, s.is_command_line)).collect();
        assert_eq!(found, [("C", 5, 2, true), ("D", 10, 1, false)]);
    }

    #[test]
    fn test_items_are_found_and_others_are_not() {
        let text = "#[cfg(test)]\nuse a::b;\nfn c() {}\n#[cfg(not(test))]\nfn d() {}\n\
                    #[cfg(all(test, unix))]\n#[x(y)]\nmod tests {\n fn e() {}\n}\nfn f() {}\n";
        let source = Source::read(text);
        let lines: Vec<_> = (1..=11).filter(|l| source.is_test_line(*l)).collect();
        assert_eq!(lines, [1, 2, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn paths_of_a_use_are_spelled_out() {
        let text = "use std::{fs, net::{TcpStream, self, *}};\nx::y(z); use a::*;";
        let paths = Source::read(text).paths();
        let got: Vec<_> = paths.iter().map(|p| (p.text.as_str(), p.line)).collect();
        let expected = ["use", "std::fs", "std::net::TcpStream", "std::net::self", "std::net::*"]
            .map(|path| (path, 1));
        assert_eq!(got[..5], expected);
        assert_eq!(got[5..], [("x::y", 2), ("z", 2), ("use", 2), ("a::*", 2)]);
    }
}
