//! What is wrong with a command line, in words that repeat no password.

use model::target::mask_text;
use std::fmt;

/// A command line that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ArgumentError {
    Unknown(String),
    Missing(&'static str),
    Unsupported(String),
    NoNumber { flag: String, text: String, expected: String },
    Other(String),
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(flag) => write!(
                f,
                "invalid option `{}` (expected one that `cachedyno redis-benchmark --help` lists)",
                shown(flag)
            ),
            Self::Missing(flag) => {
                write!(f, "the argument of option `{flag}` is missing (expected `{flag} VALUE`)")
            }
            Self::Unsupported(flag) => write!(
                f,
                "option `{flag}` of valkey-benchmark is not supported (leave it out, or use \
                 valkey-benchmark)"
            ),
            Self::NoNumber { flag, text, expected } => {
                // Other programs take passwords by `-p`.
                let hidden = flag == "-p" && text.parse::<i64>().is_err();
                let text = if hidden { "***".into() } else { mask_text(text) };
                write!(f, "`{text}` of option `{flag}` cannot be used (expected {expected})")
            }
            Self::Other(message) => f.write_str(message),
        }
    }
}

/// A flag that nobody knows, without what may be the password of `-a` or `-u` right behind it.
fn shown(flag: &str) -> String {
    let (name, value) = flag.split_once('=').map_or((flag, ""), |(name, _)| (name, "=***"));
    match name.get(..2) {
        Some(short @ ("-a" | "-u" | "-p")) if name.len() > 2 => format!("{short}***"),
        _ => mask_text(name) + value,
    }
}
