//! Command-line errors; their messages never contain a password.

use model::target::mask_text;
use std::fmt;

/// An invalid command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ArgumentError {
    Unknown(String),
    Missing(&'static str),
    Unsupported(String),
    InvalidValue { flag: String, text: String, expected: String },
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
            Self::InvalidValue { flag, text, expected } => {
                // Other programs use `-p` for the password.
                let hidden = flag == "-p" && text.parse::<i64>().is_err();
                let text = if hidden { "***".into() } else { mask_text(text) };
                write!(f, "invalid value `{text}` of option `{flag}` (expected {expected})")
            }
            Self::Other(message) => f.write_str(message),
        }
    }
}

/// An unknown flag without text that could be a password appended to `-a`, `-u` or `-p`.
fn shown(flag: &str) -> String {
    let (name, value) = flag.split_once('=').map_or((flag, ""), |(name, _)| (name, "=***"));
    match name.get(..2) {
        Some(short @ ("-a" | "-u" | "-p")) if name.len() > 2 => format!("{short}***"),
        _ => mask_text(name) + value,
    }
}
