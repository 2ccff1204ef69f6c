//! URLs of servers with the Redis protocol, and connection settings other than the login.

use url::Url;

use super::address::{NetAddress, TlsFiles};
use super::parts::{UrlError, part, query, tcp};

/// Connection settings of a server with the Redis protocol, without the login. The default is a
/// single server with RESP2 and without TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedisOptions {
    /// TLS settings; `None` without TLS.
    pub tls: Option<TlsFiles>,
    /// True for a cluster; the address is that of any member.
    pub is_cluster: bool,
    /// True for RESP3.
    pub is_resp3: bool,
    /// Servers to ask for the current primary, with its password: Sentinels, or the primary and its
    /// replicas themselves; empty for a fixed server.
    pub seeds: Vec<NetAddress>,
    /// The servers with the data if the address is that of a proxy; empty without one. They answer
    /// what a proxy refuses, with the same login and TLS.
    pub behind: Vec<NetAddress>,
}

impl RedisOptions {
    /// The primary's name in Sentinel.
    pub const SENTINEL_NAME: &str = "primary";

    /// Parses the settings in a URL.
    pub(super) fn of(url: &Url) -> Result<Self, UrlError> {
        let scheme = url.scheme();
        let options = Self {
            tls: scheme.starts_with("rediss").then(TlsFiles::default),
            is_cluster: scheme.ends_with("+cluster") || is_cluster(url)?,
            is_resp3: is_resp3(url)?,
            seeds: Vec::new(),
            behind: behind(url)?,
        };
        if options.is_cluster && !options.behind.is_empty() {
            let expected = "none, as clients of a cluster reach its servers directly";
            return Err(part(url, "behind", "given for a cluster", expected));
        }
        Ok(options)
    }

    /// Describes non-default settings, each after a comma.
    pub(super) fn words(&self) -> String {
        let tls = self.tls.as_ref().map_or("", TlsFiles::words);
        let cluster = if self.is_cluster { ", cluster" } else { "" };
        let resp3 = if self.is_resp3 { ", RESP3" } else { "" };
        let servers: Vec<String> = self.behind.iter().map(ToString::to_string).collect();
        let behind = if servers.is_empty() {
            String::new()
        } else {
            format!(", a proxy of {}", servers.join(" and "))
        };
        format!("{tls}{cluster}{resp3}{behind}")
    }
}

fn is_cluster(url: &Url) -> Result<bool, UrlError> {
    match query(url, "cluster").as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => Err(part(url, "cluster", &format!("`{other}`"), "`true` or `false`")),
    }
}

fn is_resp3(url: &Url) -> Result<bool, UrlError> {
    match query(url, "protocol").as_deref() {
        None | Some("2") => Ok(false),
        Some("3") => Ok(true),
        Some(other) => {
            Err(part(url, "protocol", &format!("`{other}`"), "2 or 3, the version of RESP"))
        }
    }
}

/// Addresses of the servers behind a proxy, separated by commas.
fn behind(url: &Url) -> Result<Vec<NetAddress>, UrlError> {
    let Some(text) = query(url, "behind") else { return Ok(Vec::new()) };
    let address = |one: &str| {
        let of_one = Url::parse(&format!("redis://{one}")).ok();
        let of_one = of_one.filter(|url| url.username().is_empty() && url.password().is_none());
        let address = of_one.and_then(|url| tcp(&url, 6379).ok());
        let expected = "HOST:PORT of each server of the proxy, separated by commas";
        address.ok_or_else(|| part(url, "behind", &format!("`{one}`"), expected))
    };
    text.split(',').map(address).collect()
}

/// Parses the database number in a part of a URL; 0 if the part is empty.
pub(super) fn database(url: &Url, text: &str) -> Result<u32, UrlError> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse()
        .map_err(|_| part(url, "database", &format!("`{text}`"), "a number, 0 to 15 by default"))
}

#[cfg(test)]
mod tests {
    use super::super::Endpoint;
    use super::*;

    fn options(text: &str) -> RedisOptions {
        match Endpoint::parse(text) {
            Ok(Endpoint::Redis { options, .. }) => options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn settings_are_parsed_and_displayed() {
        assert_eq!(options("redis://h/1"), RedisOptions::default());
        assert_eq!(options("redis://h?cluster=false&protocol=2"), RedisOptions::default());
        let tls = Some(TlsFiles::default());
        assert_eq!(
            options("rediss://h"),
            RedisOptions { tls: tls.clone(), ..RedisOptions::default() }
        );
        let all = RedisOptions { tls, is_cluster: true, is_resp3: true, ..RedisOptions::default() };
        assert_eq!(options("rediss://h?cluster=true&protocol=3"), all);
        assert_eq!(options("rediss+cluster://h?protocol=3"), all);
        assert!(options("redis+cluster://h:7000/0").is_cluster);
        let behind = [("a", 1), ("b", 6379)].map(|(host, port)| NetAddress::Tcp(host.into(), port));
        assert_eq!(options("redis://h?behind=a:1,b").behind, behind);
        let shown = Endpoint::parse("redis://h:5?behind=a:1,b").unwrap().to_string();
        assert_eq!(shown, "h:5 database 0, a proxy of a:1 and b:6379");
        assert!(options("redis+unix:///s?protocol=3").is_resp3);
        let shown = Endpoint::parse("rediss+cluster://u:hush@h?protocol=3").unwrap().to_string();
        assert_eq!(shown, "h:6379 database 0, TLS, cluster, RESP3");
    }

    #[test]
    fn errors_name_the_wrong_part() {
        let message = |text: &str| Endpoint::parse(text).unwrap_err().to_string();
        assert!(message("redis://h?protocol=4").contains("protocol of `redis://h?protocol=4`"));
        assert!(message("redis://h?cluster=yes").contains("is `yes` (expected `true` or"));
        assert!(message("redis+cluster://h/3").contains("`3` (expected 0, as a cluster"));
        assert!(message("redis://h?db=3").contains("`db`, which is unknown (expected cluster, "));
        assert!(message("redis+unix:///s?cluster=true").contains("`cluster`"));
        let empty = message("redis://h?behind=");
        assert!(empty.contains("behind of `redis://h?***`"), "{empty}");
        let with_login = message("redis://h?behind=u:hush@a");
        let names = with_login.contains("HOST:PORT of each server");
        assert!(names && !with_login.contains("hush"), "{with_login}");
        assert!(message("redis+cluster://h?behind=a").contains("given for a cluster"));
        assert!(!message("redis://h?password=hush").contains("hush"));
    }
}
