//! PHP's `serialize` and `unserialize`, limited to what caches written in PHP use.
//!
//! `N;` is null, `b:1;` true, `i:7;` an integer, `s:3:"abc";` a string of three bytes,
//! `a:1:{i:0;s:1:"x";}` an array of keys (integers or strings) and values in order, and
//! `O:1:"C":0:{}` an object of class `C` with its members. Source: `ext/standard/var.c` and
//! `var_unserializer.re` of php-src.

/// Maximum nesting depth of arrays; caches write three levels.
const DEPTH_MAX: usize = 16;

/// A value with borrowed strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Str(&'a [u8]),
    /// An array, or the members of an object if a class is given.
    Array(Option<&'a [u8]>, Vec<(Value<'a>, Value<'a>)>),
}

impl<'a> Value<'a> {
    /// An array with string keys.
    pub(crate) fn named<const N: usize>(entries: [(&'a str, Value<'a>); N]) -> Self {
        let entries = entries.map(|(name, value)| (Value::Str(name.as_bytes()), value));
        Value::Array(None, entries.into())
    }

    /// An array with keys counted from 0.
    pub(crate) fn list(values: impl Iterator<Item = Value<'a>>) -> Self {
        Value::Array(None, (0..).map(Value::Int).zip(values).collect())
    }

    /// A string as an array key: PHP turns decimal integers into numbers.
    pub(crate) fn key(text: &'a str) -> Self {
        match text.parse::<i64>() {
            Ok(number) if number.to_string() == text => Value::Int(number),
            _ => Value::Str(text.as_bytes()),
        }
    }

    /// Array keys as a list.
    pub(crate) fn keys(texts: &[&'a str]) -> Self {
        Value::list(texts.iter().copied().map(Value::key))
    }

    /// The strings of a list of keys; `None` for any other value.
    pub(crate) fn into_keys(self) -> Option<Vec<String>> {
        let Value::Array(None, entries) = self else { return None };
        let key = |(at, (place, key)): (i64, (Value<'_>, Value<'_>))| match key {
            _ if place != Value::Int(at) => None,
            Value::Int(number) => Some(number.to_string()),
            Value::Str(text) => String::from_utf8(text.into()).ok(),
            _ => None,
        };
        (0..).zip(entries).map(key).collect()
    }

    /// Appends the value in the format of `serialize`.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Value::Null => out.extend_from_slice(b"N;"),
            Value::Bool(value) => out.extend_from_slice(if *value { b"b:1;" } else { b"b:0;" }),
            Value::Int(value) => out.extend_from_slice(format!("i:{value};").as_bytes()),
            Value::Str(bytes) => {
                quoted(b's', bytes, out);
                out.push(b';');
            }
            Value::Array(class, entries) => {
                match class {
                    Some(class) => quoted(b'O', class, out),
                    None => out.push(b'a'),
                }
                out.extend_from_slice(format!(":{}:{{", entries.len()).as_bytes());
                for (key, value) in entries {
                    key.write(out);
                    value.write(out);
                }
                out.push(b'}');
            }
        }
    }

    /// Parses the value at the start of `bytes` and ignores what follows, as `unserialize` did
    /// before PHP 8.3. `None` if there is no valid value.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        Reader { rest: bytes }.value(0)
    }

    /// Parses `bytes` as exactly one value; `None` if they are not.
    pub(crate) fn read_whole(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader { rest: bytes };
        let value = reader.value(0)?;
        reader.rest.is_empty().then_some(value)
    }

    /// The array entry with a string key.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        self.entry(|key| *key == Value::Str(name.as_bytes()))
    }

    /// The array entry with a number key.
    pub(crate) fn at(&self, index: i64) -> Option<&Self> {
        self.entry(|key| *key == Value::Int(index))
    }

    fn entry(&self, is: impl Fn(&Self) -> bool) -> Option<&Self> {
        let Value::Array(_, entries) = self else { return None };
        entries.iter().find(|(key, _)| is(key)).map(|(_, value)| value)
    }

    /// The value as an integer, if it is one.
    pub(crate) fn int(&self) -> Option<i64> {
        if let Value::Int(value) = self { Some(*value) } else { None }
    }

    /// The value as bytes, if it is a string.
    pub(crate) fn str(&self) -> Option<&'a [u8]> {
        if let Value::Str(bytes) = self { Some(bytes) } else { None }
    }
}

/// Appends `s:3:"abc"`, or the same with another letter.
fn quoted(letter: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(letter);
    out.extend_from_slice(format!(":{}:\"", bytes.len()).as_bytes());
    out.extend_from_slice(bytes);
    out.push(b'"');
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Option<Value<'a>> {
        let (letter, rest) = self.rest.split_first()?;
        self.rest = rest;
        match letter {
            b'N' => self.take(b";").map(|()| Value::Null),
            b'b' => match self.number(b';')? {
                0 => Some(Value::Bool(false)),
                1 => Some(Value::Bool(true)),
                _ => None,
            },
            b'i' => self.number(b';').map(Value::Int),
            b's' => {
                let bytes = self.quoted()?;
                self.take(b";").map(|()| Value::Str(bytes))
            }
            b'a' => Some(Value::Array(None, self.entries(depth)?)),
            b'O' => {
                let class = self.quoted()?;
                Some(Value::Array(Some(class), self.entries(depth)?))
            }
            _ => None,
        }
    }

    fn entries(&mut self, depth: usize) -> Option<Vec<(Value<'a>, Value<'a>)>> {
        let number = usize::try_from(self.number(b':')?).ok()?;
        self.take(b"{")?;
        // The shortest entry is `i:0;N;`.
        if depth == DEPTH_MAX || number > self.rest.len() / 6 {
            return None;
        }
        let mut entries = Vec::with_capacity(number);
        for _ in 0..number {
            let key = self.value(depth + 1)?;
            if !matches!(key, Value::Int(_) | Value::Str(_)) {
                return None;
            }
            entries.push((key, self.value(depth + 1)?));
        }
        self.take(b"}")?;
        Some(entries)
    }

    /// `:3:"abc"`.
    fn quoted(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number(b':')?).ok()?;
        self.take(b"\"")?;
        let bytes = self.rest.get(..length)?;
        self.rest = &self.rest[length..];
        self.take(b"\"")?;
        Some(bytes)
    }

    /// Parses a colon, an integer and `end`.
    fn number(&mut self, end: u8) -> Option<i64> {
        self.take(b":")?;
        let length = self.rest.iter().position(|byte| *byte == end)?;
        let digits = std::str::from_utf8(&self.rest[..length]).ok()?;
        self.rest = &self.rest[length + 1..];
        digits.parse().ok()
    }

    fn take(&mut self, expected: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Values as written by `serialize` in PHP 8.2.
    #[test]
    fn values_match_php() {
        let tags = [&b"T1"[..], b"T\xff\"2"].map(Value::Str);
        let value = Value::named([
            ("hash", Value::Int(-907_060_870)),
            ("none", Value::Null),
            ("tags", Value::list(tags.into_iter())),
            ("yes", Value::Bool(true)),
        ]);
        let written = b"a:4:{s:4:\"hash\";i:-907060870;s:4:\"none\";N;\
            s:4:\"tags\";a:2:{i:0;s:2:\"T1\";i:1;s:4:\"T\xff\"2\";}s:3:\"yes\";b:1;}";
        let mut out = Vec::new();
        value.write(&mut out);
        assert_eq!(out, written);
        assert_eq!(Value::read(&out), Some(value.clone()));
        out.extend_from_slice(b"behind it");
        assert_eq!(Value::read(&out), Some(value.clone()));
        assert_eq!(value.get("hash").and_then(Value::int), Some(-907_060_870));
        assert_eq!(value.get("tags").and_then(|t| t.at(0)).and_then(Value::str), Some(&b"T1"[..]));
        assert_eq!((value.get("tag"), value.at(0)), (None, None));
    }

    #[test]
    fn an_object_has_a_class() {
        let written = b"O:1:\"\xa9\":1:{s:1:\"a\";i:1;}";
        let value = Value::read(written).unwrap();
        assert!(matches!(value, Value::Array(Some(b"\xa9"), _)));
        let mut out = Vec::new();
        value.write(&mut out);
        assert_eq!(out, written);
    }

    #[test]
    fn invalid_values_are_rejected() {
        for bytes in [
            &b""[..],
            b"x",
            b"i:;",
            b"i:1",
            b"b:2;",
            b"s:5:\"abc\";",
            b"s:-1:\"\";",
            b"s:99999999999999999999:\"\";",
            b"a:1:{i:0;}",
            b"a:1:{N;N;}",
            b"a:4000000000:{",
            b"a:1:{i:0;N;",
        ] {
            assert_eq!(Value::read(bytes), None, "{}", String::from_utf8_lossy(bytes));
        }
        let deep = b"a:1:{i:0;".repeat(100_000);
        assert_eq!(Value::read(&deep), None);
    }

    #[test]
    fn keys_are_written_as_in_php() {
        // serialize(array_keys(['T2' => 1, '17' => 1, '017' => 1, '-0' => 1, 'ü' => 1])) of PHP 8.2
        let keys = ["T2", "17", "017", "-0", "ü"];
        let written = "a:5:{i:0;s:2:\"T2\";i:1;i:17;i:2;s:3:\"017\";i:3;s:2:\"-0\";i:4;s:2:\"ü\";}";
        let mut out = Vec::new();
        Value::keys(&keys).write(&mut out);
        assert_eq!(out, written.as_bytes());
        assert_eq!(keys_of(&out).unwrap(), keys);
    }

    fn keys_of(bytes: &[u8]) -> Option<Vec<String>> {
        Value::read_whole(bytes)?.into_keys()
    }

    #[test]
    fn incomplete_values_are_rejected() {
        for bad in ["", "s:3:\"ab\";", "s:2:\"ab\"", "s:-1:\"\";", "s:2:\"ab\";x", "x"] {
            assert_eq!(Value::read_whole(bad.as_bytes()), None, "{bad}");
        }
        for bad in ["a:1:{}", "a:1:{i:1;i:2;}", "a:1:{i:0;i:2;", "a:0:{}x", "a:-1:{i:0;i:1;}"] {
            assert_eq!(keys_of(bad.as_bytes()), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn texts_and_keys_round_trip(text: Vec<u8>, keys in prop::collection::vec("\\PC*", 0..5)) {
            let mut out = Vec::new();
            Value::Str(&text).write(&mut out);
            prop_assert_eq!(Value::read_whole(&out).and_then(|v| v.str()), Some(text.as_slice()));
            out.clear();
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            Value::keys(&keys).write(&mut out);
            prop_assert_eq!(keys_of(&out).unwrap(), keys);
        }

        #[test]
        fn written_values_parse_back(
            number: i64,
            texts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..9), 0..9),
        ) {
            let list = Value::list(texts.iter().map(|text| Value::Str(text)));
            let value = Value::named([("n", Value::Int(number)), ("l", list)]);
            let mut out = Vec::new();
            value.write(&mut out);
            prop_assert_eq!(Value::read(&out), Some(value));
            for end in 0..out.len() {
                prop_assert_eq!(Value::read(&out[..end]), None);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Value::read(&bytes);
            keys_of(&bytes);
        }
    }
}
