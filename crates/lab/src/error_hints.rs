//! Server errors for the user: without passwords, and with the setting to change.

use model::{ConnectionLimit, Endpoint, Product, Trial};

/// Text before the remedy; an error that contains it already has its hint.
const CURED: &str = " (all allowed connections are in use: ";

/// The server of a trial.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OfServer<'a> {
    /// The endpoint of an existing store; `None` for a private one.
    pub(crate) endpoint: Option<&'a Endpoint>,
    /// The connections that its tier allows.
    pub(crate) connections: Option<u32>,
}

/// Explains the server errors of a trial.
pub(crate) fn explain(trial: &mut Trial, server: OfServer<'_>) {
    for point in &mut trial.points {
        let operations = point.operations.iter_mut();
        let examples = operations.flat_map(|o| o.counts.error_examples.values_mut());
        let message = point.failure.as_mut().map(|failure| &mut failure.message);
        examples.chain(message).for_each(|words| *words = explained(words, server));
    }
    let message = trial.failure.as_mut().map(|failure| &mut failure.message);
    let unread = trial.read_back.as_mut().and_then(|read_back| read_back.unread.as_mut());
    for words in message.into_iter().chain(unread) {
        *words = explained(words, server);
    }
}

/// An error without the endpoint's password, and with a hint at the limit that is too low.
pub(crate) fn explained(words: &str, server: OfServer<'_>) -> String {
    let OfServer { endpoint, connections } = server;
    let masked = endpoint.map_or_else(|| words.to_string(), |endpoint| endpoint.masked(words));
    let plain = masked.to_lowercase();
    let reached = Product::ALL.into_iter().find_map(|product| {
        let limit = product.connections().filter(|limit| plain.contains(limit.limit_error))?;
        Some((product.name(), limit))
    });
    let reached = reached.filter(|_| !masked.contains(CURED));
    let Some((product, ConnectionLimit { option, setting, .. })) = reached else { return masked };
    let cure = match (endpoint, connections) {
        (Some(_), _) => format!("raise `{option}` on that server, or use fewer clients"),
        (None, Some(all)) => {
            format!("the tier has {all}, of which cachedyno uses a few beside those of its clients")
        }
        (None, None) => {
            format!("raise `{option}` with --set {product}.{setting}=NUMBER, or use fewer clients")
        }
    };
    format!("{masked}{CURED}{cure})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_about_too_many_connections_names_the_setting() {
        let endpoint = Endpoint::parse("redis://:hush@127.0.0.1:7000/2").unwrap();
        let there = OfServer { endpoint: Some(&endpoint), connections: None };
        let there = explained("ERR max number of clients reached, hush", there);
        assert_eq!(
            there,
            "ERR max number of clients reached, *** (all allowed connections are in use: raise \
             `maxclients` on that server, or use fewer clients)"
        );
        let private = explained("ERROR Too many open connections", OfServer::default());
        assert!(private.ends_with(
            "raise `-c` with --set memcached.connections=NUMBER, or use fewer clients)"
        ));
        let mysql = explained("Too many connections", OfServer::default());
        assert!(mysql.contains("mysql.max_connections=NUMBER"));
        let tier = OfServer { endpoint: None, connections: Some(256) };
        let tier = explained("ERR max number of clients reached", tier);
        assert!(tier.contains("the tier has 256, of which cachedyno uses a few"), "{tier}");
        let unrelated = "connection refused";
        assert_eq!(explained(unrelated, OfServer::default()), unrelated);
    }
}
