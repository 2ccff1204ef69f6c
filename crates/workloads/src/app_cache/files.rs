//! The file formats of Colin Mollenhour's cache benchmark for a data set and its operations.
//!
//! `data.txt`: the number of records, then one JSON object per line,
//! `{"key":…,"data":…,"tags":[…],"expires":false}`, where `expires` may also be a number of
//! seconds. Lines end in CR LF. `ops-client_N.json`, with clients numbered from 0: a JSON array of
//! `["read",key]`, `["write",key,length,[tags]]` and `["clean",tag]`. Output is formatted like
//! PHP's `json_encode`: no spaces, `/` as `\/`, and only ASCII.

use md5::{Digest, Md5};
use model::DataFiles;
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;
use std::io::{self, BufRead, Read, Write};

use super::data_set::{DataSet, ReadRecord, TagNames, hex_into};
use super::operations::{Lists, Operation};

/// Name of the file with the records.
pub const DATA_FILE: &str = "data.txt";

/// Name of the file with a client's operations.
pub fn operations_file(client: u32) -> String {
    format!("ops-client_{client}.json")
}

/// A file that cannot be read or has invalid content.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It could not be read.
    #[error("`{file}` cannot be read: {source}")]
    Unreadable {
        /// Name of the file.
        file: String,
        /// The system's error.
        source: io::Error,
    },
    /// Part of the file has invalid content.
    #[error("`{file}`{place}: {found}; expected {expected}")]
    Content {
        /// Name of the file.
        file: String,
        /// `, line N` or `, operation N`, from 1; empty for the file as a whole.
        place: String,
        /// The content at that place.
        found: String,
        /// The expected content.
        expected: &'static str,
    },
}

impl FileError {
    fn content(file: &str, place: String, (found, expected): Mismatch) -> Self {
        Self::Content { file: file.into(), place, found, expected }
    }
}

/// The found and the expected content.
type Mismatch = (String, &'static str);

const RECORD: &str =
    "`{\"key\":TEXT,\"data\":TEXT,\"tags\":[TEXT,…],\"expires\":false or SECONDS}`";
const OPERATION: &str = "`[\"read\",KEY]`, `[\"write\",KEY,LENGTH,[TAG,…]]` or `[\"clean\",TAG]`";

/// A line with a record.
#[derive(Deserialize)]
#[serde(expecting = "an object with key, data, tags and expires")]
struct RecordLine {
    key: String,
    data: String,
    tags: Vec<String>,
    expires: Expires,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expires is neither false nor a number of seconds")]
enum Expires {
    Flag(bool),
    Seconds(u64),
}

/// Writes all records.
pub fn write_data(out: &mut dyn Write, data: &DataSet) -> io::Result<()> {
    let (mut key, mut tags, mut value) = (String::new(), Vec::new(), Vec::new());
    write!(out, "{}\r\n", data.keys())?;
    for record in 0..data.keys() {
        key.clear();
        data.key_into(&mut key, record);
        data.tags_of_into(&mut tags, record);
        data.value_into(&mut value, record, 0);
        let (key, value) = (text(&key), text(&String::from_utf8_lossy(&value)));
        write!(out, "{{\"key\":{key},\"data\":{value},\"tags\":{}", tag_list(data, &tags))?;
        match data.expires_s(record) {
            Some(seconds) => write!(out, ",\"expires\":{seconds}}}\r\n")?,
            None => write!(out, ",\"expires\":false}}\r\n")?,
        }
    }
    Ok(())
}

/// Writes the first `count` operations of a client, or all of a shorter list.
pub fn write_operations(
    out: &mut dyn Write,
    data: &DataSet,
    lists: &Lists,
    client: u32,
    count: u64,
) -> io::Result<()> {
    let mut tags = Vec::new();
    let key_of = |record| {
        let mut key = String::new();
        data.key_into(&mut key, record);
        text(&key)
    };
    let count = match lists {
        Lists::Drawn { .. } => count,
        Lists::Read(lists) => count.min(lists.get(client as usize).map_or(0, Vec::len) as u64),
    };
    out.write_all(b"[")?;
    for n in 0..count {
        let Some(operation) = lists.operation(data, client, n) else { break };
        if n > 0 {
            out.write_all(b",")?;
        }
        match operation {
            Operation::Read(record) => write!(out, "[\"read\",{}]", key_of(record))?,
            Operation::Write(record) => {
                data.tags_of_into(&mut tags, record);
                let (key, bytes) = (key_of(record), data.bytes(record));
                write!(out, "[\"write\",{key},{bytes},{}]", tag_list(data, &tags))?;
            }
            Operation::Clean(tag) => {
                let mut name = String::new();
                data.tag_into(&mut name, tag);
                write!(out, "[\"clean\",{}]", text(&name))?;
            }
        }
    }
    out.write_all(b"]")
}

/// A JSON array of the tags' names.
fn tag_list(data: &DataSet, tags: &[u64]) -> String {
    let named = tags.iter().map(|tag| {
        let mut name = String::new();
        data.tag_into(&mut name, *tag);
        text(&name)
    });
    format!("[{}]", named.collect::<Vec<_>>().join(","))
}

/// A JSON string as written by `json_encode` without flags.
fn text(plain: &str) -> String {
    let mut out = String::with_capacity(plain.len() + 2);
    out.push('"');
    for character in plain.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '/' => out.push_str("\\/"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='\u{7f}' => out.push(character),
            other => {
                let mut units = [0; 2];
                let units = other.encode_utf16(&mut units);
                out.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
            }
        }
    }
    out.push('"');
    out
}

/// Reads a data set and its clients' operations.
#[derive(Debug, Default)]
pub struct FileReader {
    records: Vec<ReadRecord>,
    numbers: HashMap<String, u64>,
    tags: TagNames,
    lists: Vec<Vec<Operation>>,
    digest: Md5,
}

impl FileReader {
    /// Reads the records of a `data.txt`; `file` is its name for errors.
    pub fn data(file: &str, input: &mut dyn BufRead) -> Result<Self, FileError> {
        let mut reader = Self::default();
        let mut line = String::new();
        let mut digest = Md5::new();
        let mut next = |line: &mut String| {
            line.clear();
            let read = input.read_line(line);
            digest.update(line.as_bytes());
            line.truncate(line.trim_end_matches(['\r', '\n']).len());
            read.map_err(|source| FileError::Unreadable { file: file.into(), source })
        };
        let fault = |line, mismatch| FileError::content(file, format!(", line {line}"), mismatch);
        next(&mut line)?;
        let no_count = || fault(1, (quoted(&line), "the number of records"));
        let count: u64 = line.parse().map_err(|_| no_count())?;
        while next(&mut line)? > 0 {
            let number = reader.records.len() as u64 + 2;
            reader.record(&line).map_err(|mismatch| fault(number, mismatch))?;
        }
        let read = reader.records.len() as u64;
        if read != count || read == 0 {
            let found = format!("`{count}` before {read} records");
            return Err(fault(1, (found, "the number of lines that follow, at least 1")));
        }
        reader.digest = digest;
        Ok(reader)
    }

    /// Adds the record on a line.
    fn record(&mut self, line: &str) -> Result<(), Mismatch> {
        let mismatch = |problem: &str| (format!("{} ({problem})", quoted(line)), RECORD);
        let read: RecordLine =
            serde_json::from_str(line).map_err(|e| mismatch(&describe_json_error(&e)))?;
        let expires_s = match read.expires {
            Expires::Flag(false) => None,
            Expires::Seconds(seconds) => Some(seconds),
            Expires::Flag(true) => return Err(mismatch("expires is true")),
        };
        let number = self.records.len() as u64;
        if self.numbers.insert(read.key.clone(), number).is_some() {
            return Err((format!("duplicate key `{}`", read.key), "each key once"));
        }
        let tags = read.tags.iter().map(|tag| self.tags.number(tag)).collect();
        self.records.push(ReadRecord { key: read.key, data: read.data, tags, expires_s });
        Ok(())
    }

    /// Reads the operations of the next client, starting with client 0; `file` is the file's name
    /// for errors.
    pub fn operations(&mut self, file: &str, input: &mut dyn Read) -> Result<(), FileError> {
        let fault = |place, mismatch| FileError::content(file, place, mismatch);
        let mut text = String::new();
        input
            .read_to_string(&mut text)
            .map_err(|source| FileError::Unreadable { file: file.into(), source })?;
        self.digest.update(text.as_bytes());
        let values: Vec<Value> = serde_json::from_str(&text).map_err(|e| {
            let found = format!("{} ({})", quoted(&text), describe_json_error(&e));
            fault(String::new(), (found, "a JSON array of operations"))
        })?;
        if values.is_empty() {
            return Err(fault(String::new(), (quoted(&text), "at least one operation")));
        }
        let mut list = Vec::with_capacity(values.len());
        for (value, number) in values.iter().zip(1..) {
            let operation = self.operation(value);
            list.push(operation.map_err(|e| fault(format!(", operation {number}"), e))?);
        }
        self.lists.push(list);
        Ok(())
    }

    /// Parses an element of the array of operations.
    fn operation(&mut self, value: &Value) -> Result<Operation, Mismatch> {
        let unknown = || (quoted(&value.to_string()), OPERATION);
        let parts = value.as_array().ok_or_else(unknown)?;
        let texts = |at: usize| parts.get(at).and_then(Value::as_str);
        let key = texts(1).ok_or_else(unknown)?;
        let record = || {
            let number = self.numbers.get(key).copied();
            number.ok_or_else(|| (format!("the key `{key}`"), "a key of the data set"))
        };
        match (texts(0), parts.len()) {
            (Some("read"), 2) => record().map(Operation::Read),
            (Some("clean"), 2) => Ok(Operation::Clean(self.tags.number(key))),
            (Some("write"), 4) => {
                let record = record()?;
                let own = &self.records[record as usize];
                let bytes = parts[2].as_u64().ok_or_else(unknown)?;
                let tags = parts[3].as_array().ok_or_else(unknown)?;
                let names = own.tags.iter().map(|tag| self.tags.name(*tag));
                let same = tags.iter().map(Value::as_str).eq(names.map(Some));
                if bytes != own.data.len() as u64 || !same {
                    let found = quoted(&value.to_string());
                    return Err((found, "the record's length and tags"));
                }
                Ok(Operation::Write(record))
            }
            _ => Err(unknown()),
        }
    }

    /// Summary of the files read from `directory`.
    pub fn found(&self, directory: String) -> DataFiles {
        let lengths = || self.lists.iter().map(|list| list.len() as u64);
        let mut md5 = String::new();
        hex_into(&mut md5, &self.digest.clone().finalize());
        DataFiles {
            directory,
            md5,
            keys: self.records.len() as u64,
            tags: self.tags.count(),
            lists: self.lists.len() as u32,
            ops: lengths().min().unwrap_or_default(),
            ops_of_longest: lengths().max().unwrap_or_default(),
        }
    }

    /// Returns the data set and lists. `seed` determines the values of later versions and, in
    /// phases without lists, the weights of records, which the files do not contain.
    pub fn finish(self, seed: u64) -> (DataSet, Lists) {
        (DataSet::read(self.records, self.tags, seed), Lists::Read(self.lists))
    }
}

/// The first characters of a text on a single line, for an error.
fn quoted(text: &str) -> String {
    const SHOWN: usize = 60;
    let (shown, more) = match text.char_indices().nth(SHOWN) {
        Some((end, _)) => (&text[..end], "…"),
        None => (text, ""),
    };
    let mut safe = String::with_capacity(shown.len());
    for c in shown.chars() {
        if c.is_control() { safe.extend(c.escape_default()) } else { safe.push(c) }
    }
    format!("`{safe}{more}`")
}

/// A JSON error with its position.
fn describe_json_error(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    // The line number is omitted for a single line.
    let line = error.line();
    let line = if line > 1 { format!("line {line}, ") } else { String::new() };
    format!("{message}, {line}column {}", error.column())
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
