//! Parser for the address of `-u`: `redis://[[USER:]PASSWORD@][HOST[:PORT]][/DB]`.
//!
//! Text before `@` without a colon is the password, unlike in other URLs
//! (<https://www.iana.org/assignments/uri-schemes/prov/redis>). `rediss` enables TLS;
//! `valkey` and `valkeys` are synonyms of `redis` and `rediss`.

use model::Secret;

use super::error::ArgumentError;

/// Schemes and whether they enable TLS.
const SCHEMES: [(&str, bool); 4] =
    [("redis://", false), ("rediss://", true), ("valkey://", false), ("valkeys://", true)];

/// The parts of an address; `None` for a missing part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Uri {
    pub(super) is_tls: bool,
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
    pub(super) host: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) database: Option<u32>,
}

/// Parses an address. Errors never quote it, because it can contain a password.
pub(super) fn parse(text: &str) -> Result<Uri, ArgumentError> {
    let (is_tls, credentials, place) = split(text).ok_or_else(|| {
        wrong("has an unknown scheme", "redis://, rediss://, valkey:// or valkeys://")
    })?;
    let (address, database) = place.split_once('/').unwrap_or((place, ""));
    let (user, password) = match credentials.map(|c| c.split_once(':').ok_or(c)) {
        None => (None, None),
        Some(Ok((user, password))) => (Some(decoded(user)?), Some(decoded(password)?)),
        Some(Err(password)) => (None, Some(decoded(password)?)),
    };
    if place.contains('@') {
        return Err(wrong("has more than one `@`", "`%40` instead of `@` in a password"));
    }
    let (host, port) = host_and_port(address)?;
    let database = match database {
        "" => None,
        digits => Some(digits.parse().map_err(|_| {
            wrong("has an invalid database", "a whole number after the last slash")
        })?),
    };
    let password = password.map(Secret::new);
    Ok(Uri { is_tls, user, password, host, port, database })
}

/// The address without credentials, and the user. The user has to be removed as well, since without
/// a password it would be parsed as one.
pub(super) fn without_password(text: &str) -> (String, Option<String>) {
    let Some((_, credentials, place)) = split(text) else { return (text.into(), None) };
    let scheme = &text[..text.find("://").map_or(0, |at| at + 3)];
    let user = credentials.and_then(|c| c.split_once(':')).and_then(|(user, _)| decoded(user).ok());
    (format!("{scheme}{place}"), user)
}

/// Whether TLS is on, the text before `@`, and the text after it.
fn split(text: &str) -> Option<(bool, Option<&str>, &str)> {
    let (scheme, is_tls) = SCHEMES.iter().find(|(scheme, _)| {
        text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })?;
    let rest = &text[scheme.len()..];
    Some(match rest.split_once('@') {
        Some((credentials, place)) => (*is_tls, Some(credentials), place),
        None => (*is_tls, None, rest),
    })
}

fn host_and_port(address: &str) -> Result<(Option<String>, Option<u16>), ArgumentError> {
    let (host, port) = match address.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match address.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (address, None),
        },
    };
    let port = port.map(str::parse).transpose();
    let port = port.map_err(|_| wrong("has an invalid port", "0 to 65535 after the colon"))?;
    Ok((Some(host.to_string()).filter(|host| !host.is_empty()), port))
}

/// Decodes percent-encoding.
fn decoded(text: &str) -> Result<String, ArgumentError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = rest.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let digits = digits.filter(|two| two.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(code.ok_or_else(|| {
            wrong("has an incomplete percent-encoding", "two hexadecimal digits after `%`")
        })?);
        rest = &rest[2..];
    }
    String::from_utf8(bytes)
        .map_err(|_| wrong("has a user or password that is not UTF-8", "UTF-8 text"))
}

fn wrong(problem: &str, expected: &str) -> ArgumentError {
    ArgumentError::Other(format!("the address of option `-u` {problem} (expected {expected})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Uri {
        parse(text).unwrap()
    }

    #[test]
    fn every_part_is_optional() {
        assert_eq!(read("redis://"), Uri::default());
        assert_eq!(read("REDIS://h"), Uri { host: Some("h".into()), ..Uri::default() });
        let uri = read("redis://h:1/2");
        assert_eq!((uri.host.as_deref(), uri.port, uri.database), (Some("h"), Some(1), Some(2)));
        let uri = read("rediss:///7");
        assert_eq!((uri.is_tls, uri.host, uri.database), (true, None, Some(7)));
        let uri = read("valkeys://[::1]:7000");
        assert_eq!((uri.is_tls, uri.host.as_deref(), uri.port), (true, Some("::1"), Some(7000)));
        assert!(!read("valkey://h").is_tls);
    }

    #[test]
    fn credentials_without_a_colon_are_the_password() {
        let uri = read("redis://hush@h");
        assert_eq!((uri.user, uri.password), (None, Some(Secret::new("hush"))));
        let uri = read("redis://me:a%40b%3A@h");
        assert_eq!((uri.user.as_deref(), uri.password), (Some("me"), Some(Secret::new("a@b:"))));
    }

    #[test]
    fn errors_do_not_quote_the_password() {
        for text in [
            "http://hush@h",
            "redis://hush@h:x",
            "redis://hush%4@h",
            "redis://hush@h/x",
            "redis://a@hush@h",
        ] {
            let message = parse(text).unwrap_err().to_string();
            assert!(message.contains("expected") && !message.contains("hush"), "{message}");
        }
    }

    #[test]
    fn the_password_is_removed_and_the_user_kept() {
        assert_eq!(without_password("redis://hush@h:1/2"), ("redis://h:1/2".into(), None));
        let expected = ("rediss://h".to_string(), Some("m@e".to_string()));
        assert_eq!(without_password("rediss://m%40e:hush@h"), expected);
        assert_eq!(without_password("redis://h/1"), ("redis://h/1".into(), None));
    }
}
