//! Client-side TLS: trusted authorities and client certificates.
//!
//! Certificates and keys are PEM files (RFC 7468). webpki verifies a chain to a trusted authority
//! and the server's name among the certificate's alternative names; it ignores the common name. By
//! default the system's authorities are trusted (`SSL_CERT_FILE` and `SSL_CERT_DIR` override them).

use std::fs;
use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use load::wire::Tls;
use model::{ErrorClass, NetAddress, TlsFiles};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, CipherSuite, ClientConfig, ClientConnection, DigitallySignedStruct,
    RootCertStore, SignatureScheme, StreamOwned, SupportedProtocolVersion, version,
};
use workloads::store::StoreError;

use crate::bounded::Bounded;
use crate::tls_fault::is_about_name;

/// Verification of a server's certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// Issued by a trusted authority for the server's name.
    #[default]
    Full,
    /// Issued by a trusted authority for any name.
    Authority,
    /// No verification: a man in the middle can read and change everything.
    Nothing,
}

/// A TLS version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// TLS 1.2.
    V12,
    /// TLS 1.3.
    V13,
}

/// TLS options of a connection to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// PEM file of trusted authorities; without this and a directory, the system's authorities are
    /// trusted.
    pub ca_file: Option<PathBuf>,
    /// Directory of PEM files with trusted authorities; other files in it are ignored.
    pub ca_directory: Option<PathBuf>,
    /// Verification of the server's certificate.
    pub check: Check,
    /// PEM file of the client's certificate and any intermediate certificates.
    pub certificate: Option<PathBuf>,
    /// PEM file of its unencrypted private key.
    pub key: Option<PathBuf>,
    /// The server's name, sent as SNI and verified; `None` for the host that is connected to.
    pub name: Option<String>,
    /// Cipher suites for TLS 1.2 by their OpenSSL names, separated by colons, most preferred first.
    pub ciphers: Option<String>,
    /// Cipher suites for TLS 1.3, in the same form.
    pub ciphersuites: Option<String>,
    /// The oldest and the newest allowed version.
    pub versions: (Version, Version),
}

impl Default for Options {
    fn default() -> Self {
        Self {
            ca_file: None,
            ca_directory: None,
            check: Check::default(),
            certificate: None,
            key: None,
            name: None,
            ciphers: None,
            ciphersuites: None,
            versions: (Version::V12, Version::V13),
        }
    }
}

/// Reads the files named in the options and prepares connections to `host`.
///
/// Errors: a readable message. Does not connect.
pub fn client(options: &Options, host: &str) -> Result<Tls, String> {
    let name = options.name.as_deref().unwrap_or(host);
    let name = ServerName::try_from(name.to_string()).map_err(|_| {
        format!("`{name}` is not a server name (expected a host name or an IP address)")
    })?;
    let provider = Arc::new(provider(options)?);
    let verifier = verifier(options, &provider)?;
    let other = |e: rustls::Error| format!("TLS cannot be set up: {e}");
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions(options)?)
        .map_err(other)?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match identity(options)? {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(|e| {
            let path = options.certificate.as_deref().unwrap_or(Path::new(""));
            let path = path.display();
            format!(
                "the client's certificate `{path}` and its key do not match or cannot be \
                 used: {e}"
            )
        })?,
    };
    // A new process of a shop has no session to resume, so each connection is a whole handshake.
    config.resumption = Resumption::disabled();
    Ok(Tls { config: Arc::new(config), name })
}

/// TLS for a target at an address; `None` if it is off or the address is a unix socket.
pub(crate) fn of_target(
    files: Option<&TlsFiles>,
    address: &NetAddress,
) -> Result<Option<Tls>, StoreError> {
    let (Some(files), NetAddress::Tcp(host, _)) = (files, address) else { return Ok(None) };
    let options = Options {
        ca_file: files.ca_file.clone(),
        check: if files.is_insecure { Check::Nothing } else { Check::Full },
        certificate: files.certificate.clone(),
        key: files.key.clone(),
        name: files.name.clone(),
        ..Options::default()
    };
    let tls = client(&options, host);
    tls.map(Some).map_err(|e| StoreError::fatal(ErrorClass::Other, e))
}

fn versions(options: &Options) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    let (oldest, newest) = options.versions;
    let all = [(Version::V13, &version::TLS13), (Version::V12, &version::TLS12)];
    let wanted = all.into_iter().filter(|(v, _)| (oldest..=newest).contains(v));
    let wanted: Vec<_> = wanted.map(|(_, version)| version).collect();
    if wanted.is_empty() {
        let problem = "the range of TLS versions is empty";
        return Err(format!("{problem} (expected the oldest to be at most the newest)"));
    }
    Ok(wanted)
}

/// Cipher suites by their OpenSSL names.
const SUITES_12: [(&str, CipherSuite); 6] = [
    ("ECDHE-ECDSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-AES256-GCM-SHA384", CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-AES128-GCM-SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-CHACHA20-POLY1305", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];
const SUITES_13: [(&str, CipherSuite); 3] = [
    ("TLS_AES_256_GCM_SHA384", CipherSuite::TLS13_AES_256_GCM_SHA384),
    ("TLS_AES_128_GCM_SHA256", CipherSuite::TLS13_AES_128_GCM_SHA256),
    ("TLS_CHACHA20_POLY1305_SHA256", CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
];

/// The crypto provider with the requested cipher suites.
fn provider(options: &Options) -> Result<CryptoProvider, String> {
    let whole = ring::default_provider();
    let wanted_13 = listed(options.ciphersuites.as_deref(), &SUITES_13)?;
    let wanted_12 = listed(options.ciphers.as_deref(), &SUITES_12)?;
    let wanted = wanted_13.into_iter().chain(wanted_12);
    let find = |id| whole.cipher_suites.iter().find(|suite| suite.suite() == id).copied();
    Ok(CryptoProvider { cipher_suites: wanted.filter_map(find).collect(), ..whole.clone() })
}

/// The suites of a list, in its order. Unknown names are ignored, as in OpenSSL.
fn listed(list: Option<&str>, known: &[(&str, CipherSuite)]) -> Result<Vec<CipherSuite>, String> {
    let Some(list) = list else { return Ok(known.iter().map(|(_, suite)| *suite).collect()) };
    let find = |name: &str| known.iter().find(|(own, _)| *own == name).map(|(_, suite)| *suite);
    let found: Vec<_> = list.split([':', ',', ' ']).filter_map(find).collect();
    if found.is_empty() {
        let known = known.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(":");
        return Err(format!("`{list}` contains no known cipher suite (expected some of {known})"));
    }
    Ok(found)
}

/// The client's certificate chain and private key.
type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn identity(options: &Options) -> Result<Option<Identity>, String> {
    let (certificate, key) = match (&options.certificate, &options.key) {
        (None, None) => return Ok(None),
        (Some(_), None) => return Err(missing_half("key")),
        (None, Some(_)) => return Err(missing_half("certificate")),
        (Some(certificate), Some(key)) => (certificate, key),
    };
    let chain = certificates(certificate, "certificates")?;
    let key =
        PrivateKeyDer::from_pem_file(key).map_err(|e| wrong_file("a private key", key, &e))?;
    Ok(Some((chain, key)))
}

fn missing_half(missing: &str) -> String {
    format!("a client's certificate needs its key and vice versa (expected the {missing} too)")
}

/// All certificates in a file, at least one.
fn certificates(path: &Path, what: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |e: pem::Error| wrong_file(what, path, &e);
    let found = CertificateDer::pem_file_iter(path).map_err(wrong)?;
    let found = found.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    if found.is_empty() { Err(wrong(pem::Error::NoItemsFound)) } else { Ok(found) }
}

fn wrong_file(what: &str, path: &Path, e: &pem::Error) -> String {
    let problem = match e {
        pem::Error::Io(e) => crate::fault::text(e),
        pem::Error::NoItemsFound => "it contains none".into(),
        other => other.to_string().to_lowercase(),
    };
    format!("`{}` is not a file of {what}: {problem} (expected PEM)", path.display())
}

fn verifier(
    options: &Options,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let mut verifier =
        Verifier { provider: provider.clone(), full: None, any_name: false, trusted: Vec::new() };
    if options.check != Check::Nothing {
        verifier.any_name = options.check == Check::Authority;
        verifier.trusted = authorities(options)?;
        let mut store = RootCertStore::empty();
        store.add_parsable_certificates(verifier.trusted.iter().cloned());
        let builder =
            WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone());
        verifier.full = Some(builder.build().map_err(|e| format!("TLS cannot be set up: {e}"))?);
    }
    Ok(Arc::new(verifier))
}

/// Certificates of all trusted authorities, at least one of them usable.
fn authorities(options: &Options) -> Result<Vec<CertificateDer<'static>>, String> {
    let mut found = Vec::new();
    if let Some(file) = &options.ca_file {
        found.extend(certificates(file, "authorities")?);
    }
    if let Some(directory) = &options.ca_directory {
        let unreadable = |e: io::Error| wrong_file("authorities", directory, &pem::Error::Io(e));
        for entry in fs::read_dir(directory).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.is_file() {
                found.extend(certificates(&path, "authorities").unwrap_or_default());
            }
        }
    }
    let named = options.ca_file.as_deref().or(options.ca_directory.as_deref());
    if named.is_none() {
        // Unreadable system certificates do not matter while others can be read.
        found.extend(rustls_native_certs::load_native_certs().certs);
    }
    found.retain(|certificate| RootCertStore::empty().add(certificate.clone()).is_ok());
    match named {
        _ if !found.is_empty() => Ok(found),
        Some(path) => Err(wrong_file("authorities", path, &pem::Error::NoItemsFound)),
        None => {
            Err("the system has no trusted authorities (expected a file or directory of them)"
                .into())
        }
    }
}

/// Runs the requested checks, and always verifies that the server has the private key of its
/// certificate.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// `None` to trust every certificate.
    full: Option<Arc<WebPkiServerVerifier>>,
    /// True to accept a certificate for another name.
    any_name: bool,
    /// Certificates that are trusted directly.
    trusted: Vec<CertificateDer<'static>>,
}

type Signed = Result<HandshakeSignatureValid, rustls::Error>;

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(full) = &self.full else { return Ok(ServerCertVerified::assertion()) };
        let mut verdict =
            full.verify_server_cert(end_entity, intermediates, name, ocsp_response, now);
        // The server presents exactly a trusted certificate, such as a self-signed one. webpki
        // rejects an authority's certificate in that role, but only after checking its dates.
        if let Err(rustls::Error::InvalidCertificate(CertificateError::Other(_))) = &verdict
            && self.trusted.iter().any(|trusted| trusted == end_entity)
        {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            verdict =
                verify_server_name(&certificate, name).map(|()| ServerCertVerified::assertion());
        }
        // webpki checks the name last, so everything else is valid if only the name is wrong.
        match verdict {
            Err(e) if self.any_name && is_about_name(&e) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Signed {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Signed {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// A blocking connection after the TLS handshake.
pub(crate) type Blocking = StreamOwned<ClientConnection, Bounded<TcpStream>>;

/// The alert that a server sent before it closed the connection.
fn alert(session: &mut ClientConnection, socket: &mut Bounded<TcpStream>) -> Option<io::Error> {
    session.read_tls(socket).ok()?;
    session.process_new_packets().err().map(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

fn is_closed(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// Performs the TLS handshake on a blocking connection.
pub(crate) fn handshake(mut socket: Bounded<TcpStream>, tls: &Tls) -> io::Result<Blocking> {
    let session = ClientConnection::new(tls.config.clone(), tls.name.clone());
    let mut session = session.map_err(io::Error::other)?;
    while session.is_handshaking() {
        if let Err(e) = session.complete_io(&mut socket) {
            return Err(alert(&mut session, &mut socket).filter(|_| is_closed(&e)).unwrap_or(e));
        }
    }
    Ok(StreamOwned::new(session, socket))
}
