//! Terminal output; no other module prints.
//!
//! A server's version, an error reply, a key, a file name or a field of a record may contain escape
//! sequences that clear the screen, set a title or hide text. So all output is filtered. To let our
//! own colours pass, each text is also rendered without colours: if that version is plain, all
//! escape sequences of the coloured version are ours.

use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use terminal_size::{terminal_size, terminal_size_of};

use crate::exit::CliError;

/// Replacement for filtered characters.
const REPLACED: &str = "\u{fffd}";

/// Prints a text.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    write(&plain(text))
}

/// Prints the text that `make` returns for with (`true`) or without colours. Colours are omitted if
/// the data contains escape sequences or the output does not support colours.
pub(crate) fn print_coloured(make: impl Fn(bool) -> String) -> Result<(), CliError> {
    let uncoloured = make(false);
    match plain(&uncoloured) {
        Cow::Borrowed(_) => write(&make(true)),
        Cow::Owned(text) => write(&text),
    }
}

/// Prints JSON with hostile characters escaped.
pub(crate) fn print_json(text: &str) -> Result<(), CliError> {
    let escape = |c: char| format!("\\u{:04x}", u32::from(c));
    write(&filtered(text, is_hostile, escape))
}

/// Prints text in which carriage returns are allowed, unlike in [`plain`].
pub(crate) fn print_with_carriage_returns(text: &str) -> Result<(), CliError> {
    write(&filtered(text, |c| c != '\r' && is_hostile(c), |_| REPLACED.into()))
}

/// Prints a line to standard error, wrapped at words if that is a terminal.
pub(crate) fn say(text: &str) {
    match terminal_size_of(io::stderr()) {
        Some((width, _)) => say_more(&(report::text::wrapped(text, width.0.into()) + "\n")),
        None => say_more(&format!("{text}\n")),
    }
}

/// Prints to standard error without a line break.
pub(crate) fn say_more(text: &str) {
    // If standard error is closed, there is nowhere to report it.
    let _ = anstream::stderr().lock().write_all(plain(text).as_bytes());
}

/// Prints clap's message in its colours: help to standard output, errors to standard error.
pub(crate) fn print_clap(error: &clap::Error) -> Result<(), CliError> {
    let render = |colour| {
        let text = error.render();
        let text = if colour { text.ansi().to_string() } else { text.to_string() };
        crate::secrets::masked(&text)
    };
    if !error.use_stderr() {
        return print_coloured(render);
    }
    match plain(&render(false)) {
        Cow::Borrowed(_) => {
            let _ = anstream::stderr().lock().write_all(render(true).as_bytes());
        }
        Cow::Owned(text) => say_more(&text),
    }
    Ok(())
}

/// Asks a yes-or-no question at the terminal; any answer except `y` and `yes` means no.
pub(crate) fn confirm(question: &str) -> Result<bool, CliError> {
    say_more(&format!("{question} [y/N] "));
    let mut answer = String::new();
    io::stdin()
        .read_line(&mut answer)
        .map_err(|e| CliError::failed(format!("cannot read the answer: {e}")))?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}

/// Replaces control characters, except line breaks and tabs, and characters that change the
/// direction of text.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    // The carriage return in CSV's line ends is harmless.
    if !text.replace("\r\n", "").contains(is_hostile) {
        return text.into();
    }
    let lines = text.split("\r\n").map(|line| filtered(line, is_hostile, |_| REPLACED.into()));
    lines.collect::<Vec<_>>().join("\r\n").into()
}

/// True if standard error is a terminal.
pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Columns of standard output's terminal; `None` for a pipe or a file.
pub(crate) fn columns() -> Option<usize> {
    terminal_size_of(io::stdout()).map(|(width, _)| width.0.into())
}

/// Columns of any terminal of this process.
pub(crate) fn any_terminal_columns() -> Option<usize> {
    terminal_size().map(|(width, _)| width.0.into())
}

/// Writes to standard output, without colours unless it shows them. A closed pipe (`| head`) is not
/// an error; a full disk behind `>` is.
fn write(text: &str) -> Result<(), CliError> {
    let mut stdout = anstream::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(CliError::failed(format!("cannot print the result: {e}")))
        }
        _ => Ok(()),
    }
}

fn filtered(
    text: &str,
    is_bad: impl Fn(char) -> bool + Copy,
    replace: impl Fn(char) -> String,
) -> Cow<'_, str> {
    if !text.contains(is_bad) {
        return text.into();
    }
    let replaced = text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if is_bad(c) {
            out.push_str(&replace(c));
        } else {
            out.push(c);
        }
        out
    });
    replaced.into()
}

/// True for control characters (C0, DEL and C1) except line breaks and tabs, line and paragraph
/// separators, bidirectional controls (Unicode's UAX #9), and invisible characters
/// (`Default_Ignorable_Code_Point`), which hide text or make different names look equal.
fn is_hostile(c: char) -> bool {
    let is_unseen = matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    is_unseen || c.is_control() && c != '\n' && c != '\t'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        assert!(matches!(plain("a\tb\nü – µs"), Cow::Borrowed(_)));
        for hostile in [
            "\u{1b}[2J",
            "\u{1b}]0;x\u{7}",
            "\u{1b}[31m",
            "\r",
            "\u{8}",
            "\0",
            "\u{7f}",
            "\u{85}",
            "\u{9b}2J",
            "\u{202e}",
            "\u{2066}",
            "\u{200b}",
            "\u{feff}",
            "\u{e0041}",
            "\u{200f}",
            "\u{61c}",
            "\u{2028}",
        ] {
            let text = plain(hostile);
            assert!(!text.chars().any(is_hostile), "{hostile:?}");
            assert!(text.contains(REPLACED), "{hostile:?}");
        }
        let json =
            filtered("\"a\u{9b}\u{202e}\"", is_hostile, |c| format!("\\u{:04x}", u32::from(c)));
        assert_eq!(json, "\"a\\u009b\\u202e\"");
    }
}
