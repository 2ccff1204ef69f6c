//! Printing a result to standard output, the only place that does.

use std::io::{ErrorKind, Write as _};

use crate::exit::CliError;

/// Words as a shell reads them back, with spaces between.
pub(crate) fn shell_words(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    let quoted = words.iter().map(|word| {
        if !word.is_empty() && word.chars().all(is_plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// Prints `text` as it is; colours are taken out where nobody would see them. A reader that has
/// gone (`| head`) has seen enough; a full disk behind `>` is an error.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    let mut stdout = anstream::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(CliError::failed(format!("the result cannot be printed: {e}")))
        }
        _ => Ok(()),
    }
}

/// Says something on standard error, with a line break behind it.
pub(crate) fn say(text: &str) {
    anstream::eprintln!("{text}");
}

/// Asks the user at the terminal; anything but `y` and `yes` is a no.
pub(crate) fn confirm(question: &str) -> Result<bool, CliError> {
    anstream::eprint!("{question} [y/N] ");
    let mut answer = String::new();
    std::io::stdin()
        .read_line(&mut answer)
        .map_err(|e| CliError::failed(format!("the answer cannot be read: {e}")))?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}
