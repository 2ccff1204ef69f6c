//! Masks passwords in text, for errors, records and the process list.
//!
//! A mistyped URL still contains its password, but at an unknown position. So only parts that
//! cannot be a password are shown: the scheme, the text after the last `@`, and the values of
//! harmless keys. When in doubt, a part is masked.

use super::percent::decode;
use crate::product::Product;
use crate::program::Program;

/// Replacement for masked text.
const MASK: &str = "***";

/// Keys of a query whose values may be shown.
const HARMLESS: [&str; 5] = ["cluster", "database", "db", "protocol", "user"];

/// Masks everything that could be a password: in a URL, even a mistyped one or one after `NAME=`
/// or `--flag=`, and the value of a key such as `password`. Other text is unchanged.
pub fn mask_text(text: &str) -> String {
    let mut rest = text;
    // Names before a URL, as in `--target=NAME=URL`.
    while let Some((key, value)) =
        rest.split_once('=').filter(|(key, value)| is_name(key) || is_labelled(key, value))
    {
        if is_secret(key) {
            return [&text[..text.len() - value.len()], MASK].concat();
        }
        rest = value;
    }
    let masked = if is_path(rest) || !may_be_url(rest) { mask_pairs(rest) } else { mask_url(rest) };
    [&text[..text.len() - rest.len()], &masked].concat()
}

/// Removes the password from a valid URL: `redis://user:password@host` becomes `redis://user@host`,
/// and `password` is removed from a query.
pub fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_at(url.find("://").map_or(0, |at| at + 3));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    let authority = match authority.rsplit_once('@') {
        None => authority.to_string(),
        Some((login, hosts)) => match login.split(':').next().unwrap_or_default() {
            "" => hosts.to_string(),
            user => format!("{user}@{hosts}"),
        },
    };
    let Some((path, query)) = tail.split_once('?') else {
        return [scheme, &authority, tail].concat();
    };
    let pairs = query.split('&').filter(|pair| !is_secret(pair.split('=').next().unwrap_or("")));
    let query = pairs.collect::<Vec<_>>().join("&");
    let mark = if query.is_empty() { "" } else { "?" };
    [scheme, &authority, path, mark, &query].concat()
}

/// True if a key, in any encoding, names a password.
fn is_secret(key: &str) -> bool {
    let key: String = decode(key).chars().filter(char::is_ascii_alphanumeric).collect();
    let key = key.to_ascii_lowercase();
    let parts = ["pass", "pwd", "secret", "token", "credential"];
    ["auth", "pw"].contains(&key.as_str())
        || parts.iter().any(|part| key.contains(part)) && !key.ends_with("file")
}

fn is_name(text: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '%' | ' ');
    !text.is_empty() && text.chars().all(good)
}

/// True for `LABEL:NAME` before a proper URL or a path. Before anything else, the text could be a
/// mistyped URL whose password contains a `=`.
fn is_labelled(key: &str, value: &str) -> bool {
    let is_place = value.contains("://") || is_path(value) && !value.contains('@');
    key.split_once(':').is_some_and(|(label, name)| {
        is_place && is_name(label) && is_name(name) && !is_store_scheme(label)
    })
}

/// True if the text is a file path, which may contain an `@`.
fn is_path(text: &str) -> bool {
    (text.starts_with(['/', '.']) && !text.starts_with("//")) && !text.contains(':')
}

fn may_be_url(text: &str) -> bool {
    text.contains("://")
        || text.contains('@')
        || text.trim_start().starts_with(':')
        || text.trim_start().starts_with("//")
        || misspelled_scheme(text).is_some()
}

/// Length of a store's scheme at the start, including a partial `://`.
fn misspelled_scheme(text: &str) -> Option<usize> {
    let lower = text.trim_start().to_ascii_lowercase();
    let blank = text.len() - text.trim_start().len();
    let end = lower.find([':', ';', '/'])?;
    let (scheme, after) = lower.split_at(end);
    let is_left = !after.starts_with('/') || after.contains(':');
    (is_left && is_store(scheme.split('+').next()?)).then_some(blank + end)
}

/// True for the scheme of a store's URL in any spelling, or one that is easily mistaken for it.
pub(crate) fn is_store_scheme(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    is_store(&lower)
        || matches!(lower.as_str(), "file" | "sqlite" | "postgresql" | "http" | "https")
}

/// True for the scheme of a store's URL in lower case, or one that is easily mistaken for it.
fn is_store(scheme: &str) -> bool {
    let serves = |program: Program| matches!(scheme.strip_prefix(program.target), Some("" | "s"));
    let mut products = Product::ALL.into_iter().filter_map(Product::url);
    products.any(|form| scheme == form.scheme || scheme == form.with_tls)
        || Program::ALL.into_iter().any(serves)
        || matches!(scheme, "mariadb" | "unix")
}

fn mask_url(text: &str) -> String {
    let is_scheme = |scheme: &str| {
        scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    };
    let proper = text.find("://").filter(|at| is_scheme(text[..*at].trim_start()));
    let (scheme, rest) = match proper {
        Some(at) => text.split_at(at + 3),
        None => text.split_at(misspelled_scheme(text).unwrap_or(0)),
    };
    if scheme.eq_ignore_ascii_case("file://") && rest.starts_with('/') {
        return [scheme, &mask_pairs(rest)].concat();
    }
    let (place, query) = match rest.split_once('?') {
        // The question mark may be part of the password, or the `@` part of a password in the
        // query.
        Some((_, query)) if query.contains('@') => return [scheme, MASK].concat(),
        Some((place, query)) => (place, Some(query)),
        None => (rest, None),
    };
    let is_socket = scheme.to_ascii_lowercase().contains("unix");
    let place = match place.rsplit_once('@') {
        Some((_, after)) => format!("{MASK}@{}", shown_place(after, is_socket)),
        None if proper.is_none() => MASK.into(),
        None => shown_place(place, is_socket),
    };
    match query {
        Some(query) => format!("{scheme}{place}?{}", shown_query(query)),
        None => [scheme, &place].concat(),
    }
}

/// Hosts with ports and a path, or the path of a socket; anything else is masked.
fn shown_place(text: &str, is_socket: bool) -> String {
    let text = text.trim_end();
    let (hosts, path) = text.split_at(text.find('/').unwrap_or(text.len()));
    let are_hosts = match hosts {
        "" => is_socket || path.len() > 1,
        _ => is_socket || hosts.split(',').all(is_host),
    };
    let is_odd = |c: char| c.is_control() || ":#@=&?".contains(c);
    match (are_hosts, path.contains(is_odd)) {
        (false, _) => MASK.into(),
        (true, true) => format!("{hosts}/{MASK}"),
        (true, false) => text.into(),
    }
}

/// True for a host with an optional port.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').and_then(|t| t.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, after)) => (host, Some(after.strip_prefix(':').unwrap_or("none"))),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_port = |port: &str| port.len() <= 5 && port.bytes().all(|b| b.is_ascii_digit());
    let is_address = text.starts_with('[') && host.chars().all(|c| good(c) || ":%".contains(c));
    !host.is_empty() && (is_address || host.chars().all(good)) && port.is_none_or(is_port)
}

fn shown_query(query: &str) -> String {
    let plain = |value: &str| {
        value.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '$'))
    };
    let shown = query.split('&').map(|pair| match pair.split_once('=') {
        Some((key, value)) if HARMLESS.contains(&key) && plain(value) => pair.to_string(),
        Some((key, _)) if is_secret(key) && is_name(key) => format!("{key}={MASK}"),
        _ => MASK.into(),
    });
    shown.collect::<Vec<_>>().join("&")
}

/// Cuts text that is not a URL at the first value of a secret key, and masks that value.
fn mask_pairs(text: &str) -> String {
    let ends = |c: char| c.is_whitespace() || "?&;,\"'`".contains(c);
    let secret = text.match_indices('=').map(|(at, _)| at).find(|at| {
        let start = text[..*at].rfind(ends).map_or(0, |end| end + 1);
        is_secret(text.get(start..*at).unwrap_or_default())
    });
    match secret {
        Some(at) => format!("{}={MASK}", &text[..at]),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Endpoint;
    use super::*;

    #[test]
    fn passwords_are_masked_in_any_syntax() {
        for text in [
            "redis//:hush@h",
            "redis:hush@h",
            "redis:/:hush@h",
            "redis/:hush@h",
            "redis;//:hush@h",
            "redis:hush",
            "redis//:hush",
            "redis:/:hush",
            "redis://:hush",
            "redis://user:hush",
            "redis://h:6379:hush",
            "://:hush@h",
            ":hush@h",
            "//:hush@h",
            "user:hush@h",
            "hush@h",
            "x=redis:hush@h",
            "x= redis://:hush@h ",
            "--target=x=redis//:hush@h",
            "--target=hush@h",
            "  REDIS://:hush@h",
            "Redis:hush@h",
            "redis://u:a@hush@h/1",
            "redis://u:a/hush@h/1",
            "redis://u:a?hush@h/1",
            "redis://u:a#hush@h/1",
            "redis://u:a b hush@h/1",
            "redis://h/1?x=a@hush",
            "redis://h/1#hush",
            "redis://h/:hush",
            "redis://h?hush",
            "redis://h?auth=hush",
            "redis://h?PASSWORD=hush",
            "redis://h?pwd=hush&db=1",
            "redis+unix:///s?password=hush",
            "redis+unix:///s?pass%77ord=hush",
            "redis+unix:///s?db=1&password=a&password=hush",
            "redis+unix:///s?password=a&hush",
            "redis+unix:///s?password=a@hush",
            "redis+unix:///s?db=a:hush",
            "mysql+unix:///s?database=d&passwd=hush",
            "memcached://u:hush@a:1,b:2",
            "memcached://a:1,u:hush@b:2",
            "memcached://a:1,hush:x",
            "memcached://a, u:hush",
            "http://u:hush@h",
            "password=hush",
            "--password=hush",
            "host=h password=hush",
            "h:1?password=hush",
            "/run/s?password=hush",
            "u:hush@redis://h",
            "x:redis=redis://:hush@h",
            "--target=x:redis=redis://u:hush@h/1",
            "redis:hush=redis://h",
            "http:hush=/x@h",
        ] {
            let masked = mask_text(text);
            assert!(!masked.contains("hush") && masked.contains("***"), "{text} -> {masked}");
        }
    }

    #[test]
    fn text_without_passwords_is_unchanged() {
        for text in [
            "",
            "run",
            "sessions",
            "--scale",
            "redis",
            "cm-redis",
            "a.b_c=redis",
            "--out=/a@b/records",
            "/opt/tool@1/bin/cachedyno",
            "./studies/mine@home.toml",
            "get=0.9,set=0.1",
            "p99<1ms,errors<0.1%",
            "redis.save=900 1",
            "mysql.sql_mode=A,B",
            "12:30",
            "x=/run/password",
            "--password-file=x=/run/secret",
            "SET __key__ __value__",
            "x=redis://h:6379/1",
            "rediss+cluster://h.example:7000?protocol=3",
            "redis://[::1]:7000/1",
            "redis+unix:///run/redis.sock?db=2&user=me",
            "memcached://a:1,[::1]:2?protocol=meta",
            "mysql+unix:///s?database=shop&user=shop",
            "file:///mnt/a%20disk",
            "file:///a@b/c",
            "http://h",
            "redis//localhost",
            "nvme:zend-file",
            "nvme:zend-file=/mnt/nvme",
            "--target=nvme:cm-redis=redis://h:6379/1",
        ] {
            assert_eq!(mask_text(text), text);
        }
        assert_eq!(mask_text("redis://u:hu/sh@h/1"), "redis://***@h/1");
        assert_eq!(mask_text("x=mysql://u:hush@h:1/d"), "x=mysql://***@h:1/d");
        assert_eq!(mask_text("redis:hush@h:1/2"), "redis***@h:1/2");
        let socket = "mysql+unix:///s?password=hush&user=u";
        assert_eq!(mask_text(socket), "mysql+unix:///s?password=***&user=u");
    }

    #[test]
    fn removing_the_password_keeps_the_address() {
        for (url, expected) in [
            ("redis://:hush@h:1/2", "redis://h:1/2"),
            ("redis://me:hu%40sh@h", "redis://me@h"),
            ("memcached://me:hu%2Csh@h:1,h:2", "memcached://me@h:1,h:2"),
            ("mysql://me:hu@sh@h/d", "mysql://me@h/d"),
            ("redis+unix:///s?password=hush", "redis+unix:///s"),
            ("redis+unix:///s?pass%77ord=hush&db=1", "redis+unix:///s?db=1"),
            ("redis+unix:///s?password=hush&password=hush&db=1", "redis+unix:///s?db=1"),
            (
                "mysql+unix:///s?user=u&password=hush&database=d",
                "mysql+unix:///s?user=u&database=d",
            ),
        ] {
            assert_eq!(without_password(url), expected);
            let (before, after) =
                (Endpoint::parse(url).unwrap(), Endpoint::parse(expected).unwrap());
            assert!(before.password().is_some() && after.password().is_none(), "{url}");
            assert_eq!(before.to_string(), after.to_string());
        }
    }

    #[test]
    fn errors_never_contain_a_password() {
        for text in [
            "redis//:hush@h",
            "redis:hush@h",
            "redis:/:hush@h",
            "user:hush@h",
            "redis://u:12/hush@h",
            "redis://h/1?hush",
            "redis+unix:///s?db=1&hush",
            "redis+unix:///s?password=a&hush=1",
            "redis+unix:///s?db=hush@x",
            "memcached://u:12/hush@h:1",
            "memcached://a:1,u:hush@b:2/3",
            "memcached://a:1?u=hush@x",
            "mysql://u:12/hush@h",
            "mysql://u:p@h/hush@x",
            "REDIS:hush@h",
            "://u:hush@h",
        ] {
            for target in [text.to_string(), format!("x={text}"), format!(" {text}")] {
                let Err(error) = crate::TargetChoice::parse(&target) else { continue };
                assert!(!error.to_string().contains("hush"), "{target}: {error}");
            }
        }
    }
}
