//! Shell quoting of commands that a user copies.

/// Joins words for a POSIX shell. A word with characters other than letters, digits and
/// `-_./:=,@%+` is put in single quotes.
pub fn shell_words<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| shell_word(word.as_ref())).collect();
    quoted.join(" ")
}

fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_parses_quoted_words_unchanged() {
        let words = ["a", "", "b c", "d'e", "$(touch x)", "`x`", "f;g", "h\\", "*", "\"i\"", "~"];
        assert_eq!(
            shell_words(["x=redis://h:1/2", "a b", "d'e"]),
            r"x=redis://h:1/2 'a b' 'd'\''e'"
        );
        let output = std::process::Command::new("sh")
            .args(["-c", &format!("printf '%s\\0' {}", shell_words(words))])
            .output()
            .unwrap();
        let read: Vec<&[u8]> = output.stdout.split(|byte| *byte == 0).collect();
        assert_eq!(read[..words.len()], words.map(str::as_bytes));
    }
}
