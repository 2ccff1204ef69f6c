//! Server errors for the user: without passwords, and with the setting to change.

use model::{ConnectionLimit, Endpoint, Product, Trial};

/// Text before the remedy; an error that contains it already has its hint.
const CURED: &str = " (all allowed connections are in use: ";

/// Explains the server errors of a trial. `endpoint` is that of an existing store; `None` for a
/// private one.
pub(crate) fn explain(trial: &mut Trial, endpoint: Option<&Endpoint>) {
    for point in &mut trial.points {
        let operations = point.operations.iter_mut();
        let examples = operations.flat_map(|o| o.counts.error_examples.values_mut());
        let message = point.failure.as_mut().map(|failure| &mut failure.message);
        examples.chain(message).for_each(|words| *words = explained(words, endpoint));
    }
    let message = trial.failure.as_mut().map(|failure| &mut failure.message);
    let unread = trial.read_back.as_mut().and_then(|read_back| read_back.unread.as_mut());
    for words in message.into_iter().chain(unread) {
        *words = explained(words, endpoint);
    }
}

/// An error without the endpoint's password, and with a hint at the setting that is too low.
pub(crate) fn explained(words: &str, endpoint: Option<&Endpoint>) -> String {
    let masked = endpoint.map_or_else(|| words.to_string(), |endpoint| endpoint.masked(words));
    let plain = masked.to_lowercase();
    let reached = Product::ALL.into_iter().find_map(|product| {
        let limit = product.connections().filter(|limit| plain.contains(limit.limit_error))?;
        Some((product.name(), limit))
    });
    let reached = reached.filter(|_| !masked.contains(CURED));
    let Some((product, ConnectionLimit { option, setting, .. })) = reached else { return masked };
    let how = match endpoint {
        Some(_) => "on that server".into(),
        None => format!("with --set {product}.{setting}=NUMBER"),
    };
    let cure = format!("raise `{option}` {how}, or use fewer clients");
    format!("{masked}{CURED}{cure})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_about_too_many_connections_names_the_setting() {
        let endpoint = Endpoint::parse("redis://:hush@127.0.0.1:7000/2").unwrap();
        let there = explained("ERR max number of clients reached, hush", Some(&endpoint));
        assert_eq!(
            there,
            "ERR max number of clients reached, *** (all allowed connections are in use: raise \
             `maxclients` on that server, or use fewer clients)"
        );
        let private = explained("ERROR Too many open connections", None);
        assert!(private.ends_with(
            "raise `-c` with --set memcached.connections=NUMBER, or use fewer clients)"
        ));
        assert!(explained("Too many connections", None).contains("mysql.max_connections=NUMBER"));
        let unrelated = "connection refused";
        assert_eq!(explained(unrelated, None), unrelated);
    }
}
