//! TLS options of every command that reaches servers by URLs.

use clap::Args;
use model::{Condition, Endpoint, TargetChoice};
use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::exit::CliError;

/// TLS options for targets with a TLS URL.
#[derive(Debug, Args)]
pub(crate) struct TlsFlags {
    /// Trust the authorities of this PEM file instead of the system's (rediss://, memcacheds://)
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Client certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Private key of the client certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Expected name in the server's certificate [default: the host]
    #[arg(long, value_name = "NAME")]
    sni: Option<String>,
    /// Do not verify the server's certificate; a man in the middle can read everything
    #[arg(long, conflicts_with = "cacert")]
    tls_insecure: bool,
}

impl TlsFlags {
    fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--cacert", self.cacert.is_some()),
            ("--cert", self.cert.is_some()),
            ("--sni", self.sni.is_some()),
            ("--tls-insecure", self.tls_insecure),
        ];
        flags.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag))
    }

    /// Applies the flags to every target that uses TLS. Errors: no target uses TLS.
    pub(crate) fn apply(&self, choices: &mut [TargetChoice]) -> Result<(), CliError> {
        let Some(flag) = self.given() else { return Ok(()) };
        let mut applied = 0;
        for tls in choices.iter_mut().filter_map(|c| c.endpoint.as_mut()?.tls_mut()) {
            tls.ca_file.clone_from(&self.cacert);
            tls.certificate.clone_from(&self.cert);
            tls.key.clone_from(&self.key);
            tls.name.clone_from(&self.sni);
            tls.is_insecure = self.tls_insecure;
            applied += 1;
        }
        if applied > 0 {
            return Ok(());
        }
        Err(CliError::usage(format!(
            "{flag} has no effect: no target uses TLS (expected NAME=rediss://host:port)"
        )))
    }
}

/// Warnings about targets whose certificate is not verified.
pub(crate) fn warnings(endpoints: &BTreeMap<String, Endpoint>) -> Vec<Condition> {
    let is_unverified = |endpoint: &Endpoint| endpoint.tls().is_some_and(|tls| tls.is_insecure);
    let unverified = endpoints.iter().filter(|(_, endpoint)| is_unverified(endpoint));
    let warning = |(name, _): (&String, &Endpoint)| Condition {
        group: "targets".into(),
        name: format!("TLS of {name}"),
        value: "not verified (--tls-insecure)".into(),
        warning: Some("the server's identity is unknown".into()),
    };
    unverified.map(warning).collect()
}
