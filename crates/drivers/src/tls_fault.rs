//! Words for TLS errors of a connection.

use std::io;

use rustls::{AlertDescription, CertificateError};

/// Describes a TLS error, with its cure; `None` for other errors. The flags are those of all
/// commands that connect.
pub(crate) fn problem(e: &io::Error) -> Option<String> {
    use AlertDescription as A;
    use CertificateError as C;
    let e = e.get_ref()?.downcast_ref::<rustls::Error>()?;
    let message = match e {
        _ if is_about_name(e) => {
            "the server's certificate is for another name (expected the host of the URL: connect \
             by a name in the certificate, or give one with --sni NAME)"
        }
        // Authorities of the same name have different keys.
        rustls::Error::InvalidCertificate(C::UnknownIssuer | C::BadSignature) => {
            "the server's certificate is not issued by a trusted authority (expected --cacert FILE \
             with its authority)"
        }
        rustls::Error::InvalidCertificate(C::Expired | C::ExpiredContext { .. }) => {
            "the server's certificate has expired (expected a valid one: renew it on the server)"
        }
        rustls::Error::InvalidCertificate(C::NotValidYet | C::NotValidYetContext { .. }) => {
            "the server's certificate is not valid yet (expected a valid one: check the clocks)"
        }
        rustls::Error::InvalidCertificate(C::Other(why))
            if why.to_string().contains("CaUsedAsEndEntity") =>
        {
            "the server's certificate is self-signed and not among the trusted ones (expected \
             --cacert FILE with it)"
        }
        rustls::Error::AlertReceived(A::CertificateRequired) => {
            "the server requires a client's certificate (expected --cert FILE and --key FILE)"
        }
        // Before TLS 1.3 the alert for both.
        rustls::Error::AlertReceived(A::HandshakeFailure) => {
            "the server requires a client's certificate (expected --cert FILE and --key FILE), or \
             has no cipher suite in common"
        }
        rustls::Error::AlertReceived(
            A::UnknownCA | A::BadCertificate | A::CertificateExpired | A::CertificateUnknown,
        ) => {
            "the server rejects the client's certificate (expected one that it trusts, with \
             --cert FILE and --key FILE)"
        }
        rustls::Error::InvalidMessage(_) => "the server does not use TLS on this port",
        other => return Some(format!("TLS failed: {other}")),
    };
    Some(message.into())
}

/// True if a certificate is not for the server's name.
pub(crate) fn is_about_name(e: &rustls::Error) -> bool {
    use CertificateError as C;
    let rustls::Error::InvalidCertificate(why) = e else { return false };
    matches!(why, C::NotValidForName | C::NotValidForNameContext { .. })
}
