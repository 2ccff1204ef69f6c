//! Allowed forms of setting values.

/// Replicas, or Sentinels, that may be started with a server: more of them tell nothing else.
pub(crate) const SERVERS_MAX: usize = 9;

/// Allowed form of a setting's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A number, with a unit where the server knows one: `-1`, `0.5`, `64mb`.
    Number,
    /// A whole number from 1.
    Count,
    /// How many servers are started: 1 to [`SERVERS_MAX`].
    Servers,
    /// `yes` or `no`.
    YesNo,
    /// Keywords and numbers: `allkeys-lru`, `900 1 300 10`, `mrr=on,mrr_sort_keys=off`, or nothing.
    Words,
}

impl Form {
    /// Whether a value has this form. None has a byte with which a value could end, begin another
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
            Self::Words => {
                value.chars().all(|c| c.is_ascii_alphanumeric() || " .,_=+-".contains(c))
            }
        }
    }

    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::Number => "a number, with a unit where the server takes one",
            Self::Count => "a whole number, 1 or more",
            Self::Servers => "a whole number from 1 to 9",
            Self::YesNo => "`yes` or `no`",
            Self::Words => "words of letters, digits and ` .,_=+-`",
        }
    }
}

/// A line of a list: names, separated by spaces, and what their values look like.
pub(crate) type Names = (Form, &'static str);
