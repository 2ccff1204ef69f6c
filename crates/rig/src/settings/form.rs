//! Allowed forms of setting values.

/// Maximum number of replicas or Sentinels per server; more of them would show nothing new.
const SERVERS_MAX: usize = 9;

/// Allowed form of a setting's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A number, with a unit if the server accepts one: `-1`, `0.5`, `64mb`.
    Number,
    /// A whole number, 1 or more.
    Count,
    /// Number of servers to start: 1 to [`SERVERS_MAX`].
    Servers,
    /// `yes` or `no`.
    YesNo,
    /// Where the server listens: `unix`, `tcp`, `tls` or `stunnel`.
    Listen,
    /// The program before several servers: `nutcracker`.
    Proxy,
    /// Keywords and numbers: `allkeys-lru`, `900 1 300 10`, `mrr=on,mrr_sort_keys=off`, or nothing.
    Words,
}

impl Form {
    /// Whether a value has this form. No form allows bytes that could end the value, start another
    /// setting, or name a file.
    pub(super) fn fits(self, value: &str) -> bool {
        let digits = value.strip_prefix('-').unwrap_or(value);
        match self {
            Self::Number => {
                digits.starts_with(|c: char| c.is_ascii_digit())
                    && digits.chars().all(|c| c.is_ascii_alphanumeric() || c == '.')
            }
            Self::Count => value.parse::<u32>().is_ok_and(|number| number > 0),
            Self::Servers => value.parse().is_ok_and(|number| (1..=SERVERS_MAX).contains(&number)),
            Self::YesNo => matches!(value, "yes" | "no"),
            Self::Listen => matches!(value, "unix" | "tcp" | "tls" | "stunnel"),
            Self::Proxy => value == "nutcracker",
            Self::Words => {
                value.chars().all(|c| c.is_ascii_alphanumeric() || " .,_=+-".contains(c))
            }
        }
    }

    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::Number => "a number, with a unit if the server accepts one",
            Self::Count => "a whole number, 1 or more",
            Self::Servers => "a whole number from 1 to 9",
            Self::YesNo => "`yes` or `no`",
            Self::Listen => "`unix`, `tcp`, `tls` or `stunnel`",
            Self::Proxy => "`nutcracker`",
            Self::Words => "words of letters, digits and ` .,_=+-`",
        }
    }
}

/// A line of a list: the form of the values, and the names, separated by spaces.
pub(crate) type Names = (Form, &'static str);
