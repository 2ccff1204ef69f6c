//! Administrative connections to servers that may use TLS, or not, unlike their URL says.

use drivers::Admin;
use model::{Endpoint, ErrorClass, Failure};
use std::time::Duration;

/// How long to wait for the server by the other scheme.
const PROBE_WITHIN: Duration = Duration::from_secs(2);

/// Opens an administrative connection; the error names the other scheme if the server answers with
/// TLS where the URL has none, or the reverse.
pub(crate) fn admin(endpoint: &Endpoint, timeout: Duration) -> Result<Box<dyn Admin>, Failure> {
    drivers::admin(endpoint, timeout).map_err(|failure| {
        let is_garbled = matches!(
            failure.class,
            ErrorClass::Timeout | ErrorClass::Closed | ErrorClass::Protocol | ErrorClass::Refused
        );
        let other = endpoint.other_transport().filter(|_| is_garbled);
        let Some(other) = other.filter(|other| answers(other, timeout)) else { return failure };
        let state = if other.tls().is_some() { "requires" } else { "does not use" };
        let (own, other) = (endpoint.scheme(), other.scheme());
        let message = format!(
            "{endpoint}: the server {state} TLS on this port (expected a URL with {other} in place \
             of {own})"
        );
        Failure { class: ErrorClass::Refused, message }
    })
}

/// True if a server speaks its protocol at this endpoint, even if it does not admit us.
fn answers(endpoint: &Endpoint, timeout: Duration) -> bool {
    match drivers::admin(endpoint, timeout.min(PROBE_WITHIN)) {
        Ok(_) => true,
        Err(failure) => {
            failure.class == ErrorClass::Denied || failure.message.contains("client's certificate")
        }
    }
}
