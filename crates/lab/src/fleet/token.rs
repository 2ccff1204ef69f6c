//! The token of a fleet: who has the file may join as a worker, and recognizes the driver.
//!
//! JSON with `fleet` (version, 1), `secret` (64 hexadecimal digits) and `certificate` (PEM, RFC
//! 7468) of the driver, both made for the run.

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::FleetError;

/// Name in the driver's certificate. Its address does not matter, since the certificate itself is
/// known.
pub(super) const DRIVER: &str = "driver.cachedyno.invalid";
/// A token is shorter than this.
const BYTES_MAX: u64 = 65_536;

/// Token of a fleet.
#[derive(Serialize, Deserialize)]
pub struct Token {
    fleet: u32,
    pub(super) secret: String,
    certificate: String,
}

impl Token {
    /// A new token, and the driver's side of TLS.
    pub(super) fn new() -> Result<(Self, Arc<ServerConfig>), FleetError> {
        let made = rcgen::generate_simple_self_signed([DRIVER.to_string()])
            .map_err(|e| FleetError(format!("cannot make a certificate for the fleet: {e}")))?;
        let certificate = made.cert.pem();
        let key = PrivateKeyDer::from_pem_slice(made.signing_key.serialize_pem().as_bytes())
            .map_err(|e| FleetError(format!("cannot use the fleet's key: {e}")))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .map_err(unusable)?;
        let mut bytes = [0_u8; 32];
        ring::default_provider()
            .secure_random
            .fill(&mut bytes)
            .map_err(|_| FleetError("no random numbers for the secret of the fleet".into()))?;
        let parts = bytes.iter().map(|byte| format!("{byte:02x}"));
        Ok((Self { fleet: 1, secret: parts.collect(), certificate }, Arc::new(config)))
    }

    /// The worker's side of TLS: trusts nothing but the driver's certificate.
    pub(super) fn client(&self) -> Result<Arc<ClientConfig>, FleetError> {
        let certificate =
            CertificateDer::from_pem_slice(self.certificate.as_bytes()).map_err(|e| {
                FleetError(format!(
                    "the certificate in the token file is damaged: {e} (expected an unchanged copy \
                     of the file that the other side wrote)"
                ))
            })?;
        let mut roots = RootCertStore::empty();
        roots.add(certificate).map_err(unusable)?;
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Arc::new(config))
    }

    /// Reads the token file that an option names.
    pub fn read(option: &str, path: &Path) -> Result<Self, FleetError> {
        let name = path.display();
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(BYTES_MAX).read_to_string(&mut text));
        read.map_err(|e| FleetError(format!("cannot read {option} `{name}`: {e}")))?;
        let token: Result<Self, _> = serde_json::from_str(&text);
        token.ok().filter(|token| token.fleet == 1).ok_or_else(|| {
            FleetError(format!(
                "{option} `{name}` is not a token (expected the file that the other side wrote, \
                 with its secret and its certificate)"
            ))
        })
    }

    /// Writes it for the current user only. Replaces the token of a process that has ended, but no
    /// other file.
    pub(super) fn write(&self, path: &Path) -> Result<TokenFile, FleetError> {
        let name = path.display();
        let wrong = |what: &str| {
            FleetError(format!("`{name}` exists and {what} (expected another --token-file)"))
        };
        if path.exists() {
            Self::read("--token-file", path).map_err(|_| wrong("is not a token"))?;
            let held = File::open(path).is_ok_and(|file| file.try_lock().is_err());
            if held {
                return Err(wrong("is the token of another cachedyno that still runs"));
            }
            fs::remove_file(path)
                .map_err(|e| FleetError(format!("cannot replace `{name}`: {e}")))?;
        }
        let text = serde_json::to_string(self)
            .map_err(|e| FleetError(format!("cannot write the token: {e}")))?;
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let written = file.and_then(|mut file| {
            file.lock()?;
            file.write_all(text.as_bytes())?;
            Ok(file)
        });
        let file = written.map_err(|e| {
            FleetError(format!(
                "cannot write the token file `{name}`: {e} (--token-file names another)"
            ))
        })?;
        Ok(TokenFile { path: path.into(), file })
    }
}

/// Token file of a running fleet, locked so that no other process replaces it. Dropping this
/// removes the file: nobody can join with it any more.
#[derive(Debug)]
pub(super) struct TokenFile {
    path: PathBuf,
    file: File,
}

impl TokenFile {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        let own = self.file.metadata().map(|own| (own.dev(), own.ino())).ok();
        let there = fs::metadata(&self.path).map(|there| (there.dev(), there.ino())).ok();
        if own == there {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn unusable(e: impl std::fmt::Display) -> FleetError {
    FleetError(format!("cannot set up TLS for the fleet: {e}"))
}

/// Compares secrets in a time that does not depend on where they differ.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    let differ = one.bytes().zip(other.bytes()).fold(0, |differ, (a, b)| differ | (a ^ b));
    one.len() == other.len() && differ == 0
}
