//! URLs of memcached servers, one or several.

use url::Url;

use super::address::{NetAddress, Secret, TlsFiles};
use super::mask::mask_text;
use super::parts::{UrlError, known_queries, part, password, query, tcp, unix, user};

/// Default port.
const PORT: u16 = 11211;

/// Protocol of requests to memcached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MemcachedProtocol {
    /// Classic text protocol: `get`, `set` and so on.
    #[default]
    Text,
    /// Meta protocol: `mg`, `ms` and so on, from memcached 1.6.
    Meta,
}

/// memcached servers that share the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memcached {
    /// Addresses, at least one, in the user's order.
    pub servers: Vec<NetAddress>,
    /// Protocol of requests.
    pub protocol: MemcachedProtocol,
    /// User, the same for all servers; `None` without login.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<Secret>,
    /// TLS settings; `None` without TLS.
    pub tls: Option<TlsFiles>,
}

impl std::fmt::Display for Memcached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let servers: Vec<String> = self.servers.iter().map(ToString::to_string).collect();
        f.write_str(&servers.join(" and "))?;
        f.write_str(self.tls.as_ref().map_or("", TlsFiles::words))?;
        f.write_str(if self.protocol == MemcachedProtocol::Meta { ", meta commands" } else { "" })
    }
}

/// Parses `memcached://` and `memcacheds://` with hosts separated by commas, and
/// `memcached+unix://`; `None` for another scheme.
pub(super) fn parse(text: &str) -> Option<Result<Memcached, UrlError>> {
    let (scheme, rest) = text.split_once("://")?;
    match scheme {
        "memcached" | "memcacheds" => Some(network(scheme, rest)),
        "memcached+unix" => Some(socket(text)),
        _ => None,
    }
}

fn network(scheme: &str, rest: &str) -> Result<Memcached, UrlError> {
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(end);
    let (login, hosts) = match authority.rsplit_once('@') {
        Some((login, hosts)) => (format!("{login}@"), hosts),
        None => (String::new(), authority),
    };
    let mut endpoints = Vec::new();
    for host in hosts.split(',') {
        let one = format!("{scheme}://{login}{host}{tail}");
        let url = Url::parse(&one).map_err(|_| UrlError::NotUrl(mask_text(&one)))?;
        if !url.path().trim_matches('/').is_empty() {
            let found = format!("`{}`", url.path());
            return Err(part(&url, "path", &found, "none, as memcached has no databases"));
        }
        known_queries(&url, "protocol")?;
        let mut endpoint = settings(&url)?;
        endpoint.servers.push(tcp(&url, PORT)?);
        endpoints.push(endpoint);
    }
    let mut all = endpoints.remove(0);
    for other in endpoints {
        if all.servers.contains(&other.servers[0]) {
            return Err(UrlError::Part {
                url: mask_text(&format!("{scheme}://{rest}")),
                part: "host",
                problem: format!("a duplicate: `{}`", other.servers[0]),
                expected: "each server once",
            });
        }
        all.servers.extend(other.servers);
    }
    Ok(all)
}

fn socket(text: &str) -> Result<Memcached, UrlError> {
    let url = Url::parse(text).map_err(|_| UrlError::NotUrl(mask_text(text)))?;
    known_queries(&url, "protocol")?;
    let mut endpoint = settings(&url)?;
    endpoint.servers.push(unix(&url)?);
    Ok(endpoint)
}

/// Parses everything except the servers.
fn settings(url: &Url) -> Result<Memcached, UrlError> {
    let protocol = match query(url, "protocol").as_deref() {
        None | Some("text") => MemcachedProtocol::Text,
        Some("meta") => MemcachedProtocol::Meta,
        Some(other) => {
            return Err(part(url, "protocol", &format!("`{other}`"), "`text` or `meta`"));
        }
    };
    let (user, password) = (user(url), password(url));
    if user.is_none() && password.is_some() {
        return Err(part(url, "user", "missing", "user:password@host"));
    }
    let tls = (url.scheme() == "memcacheds").then(TlsFiles::default);
    Ok(Memcached { servers: Vec::new(), protocol, user, password, tls })
}

#[cfg(test)]
mod tests {
    use super::super::Endpoint;
    use super::*;

    fn read(text: &str) -> Memcached {
        match Endpoint::parse(text) {
            Ok(Endpoint::Memcached(memcached)) => memcached,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_or_several_servers_are_parsed() {
        let at = |host: &str, port| NetAddress::Tcp(host.into(), port);
        assert_eq!(read("memcached://a").servers, [at("a", 11211)]);
        let two = read("memcached://u:p%2C@a:1,[::1]:2?protocol=meta");
        assert_eq!(two.servers, [at("a", 1), at("::1", 2)]);
        assert_eq!(two.to_string(), "a:1 and ::1:2, meta commands");
        assert_eq!((two.user, two.password), (Some("u".into()), Some(Secret::new("p,"))));
        assert_eq!(two.protocol, MemcachedProtocol::Meta);
        let socket = read("memcached+unix:///run/m.sock");
        assert_eq!(socket.servers, [NetAddress::Unix("/run/m.sock".into())]);
        assert!(read("memcacheds://a").tls.is_some());
    }

    #[test]
    fn errors_name_the_wrong_part() {
        let message = |text: &str| Endpoint::parse(text).unwrap_err().to_string();
        assert!(message("memcached://a/1").contains("`/1` (expected none"));
        assert!(message("memcached://a:1,a:1").contains("duplicate: `a:1`"));
        assert!(message("memcached://a,").contains("host of"));
        assert!(message("memcached://a:x").contains("is not a URL"));
        assert!(message("memcached://a?protocol=binary").contains("`text` or `meta`"));
        assert!(message("memcached://a?ttl=1").contains("`ttl`"));
        assert!(message("memcached+unix://").contains("socket path"));
        let masked = message("memcached://:hush@a");
        assert!(masked.contains("user of") && !masked.contains("hush"), "{masked}");
    }
}
