//! Statements as text, as PHP's clients send them: the client quotes the values.

/// Appends a value as a string literal. Text is quoted as by `mysql_real_escape_string`, or only by
/// doubling quotes if the server uses `NO_BACKSLASH_ESCAPES`. The client library does not support
/// bytes that are not UTF-8 in a statement; they become a hexadecimal literal, which the server
/// treats as the same bytes.
pub(super) fn push_value(sql: &mut String, value: &[u8], no_backslash_escapes: bool) {
    let Ok(text) = std::str::from_utf8(value) else {
        sql.push_str("x'");
        for byte in value {
            sql.push(char::from(b"0123456789ABCDEF"[usize::from(byte >> 4)]));
            sql.push(char::from(b"0123456789ABCDEF"[usize::from(byte & 15)]));
        }
        sql.push('\'');
        return;
    };
    sql.push('\'');
    let mut done = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escaped = match byte {
            b'\'' if no_backslash_escapes => "''",
            _ if no_backslash_escapes => continue,
            b'\'' => "\\'",
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\0' => "\\0",
            0x1a => "\\Z",
            _ => continue,
        };
        sql.push_str(&text[done..at]);
        sql.push_str(escaped);
        done = at + 1;
    }
    sql.push_str(&text[done..]);
    sql.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_end_their_quotes() {
        let quoted = |value: &[u8], plain| {
            let mut sql = String::new();
            push_value(&mut sql, value, plain);
            sql
        };
        assert_eq!(quoted(b"abc", false), "'abc'");
        assert_eq!(quoted(b"a'\"\\\n\r\0\x1az", false), "'a\\'\\\"\\\\\\n\\r\\0\\Zz'");
        assert_eq!(quoted("ü'".as_bytes(), false), "'ü\\''");
        assert_eq!(quoted(b"a'\\", true), "'a''\\'");
        assert_eq!(quoted(&[0xff, 0x27], false), "x'FF27'");
    }
}
