//! What clients need to know besides the endpoint.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use model::{Connections, Endpoint, ErrorClass, Failure};
use workloads::store::StoreError;

/// What a client of a session store needs to know.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// When connections are made. Matters to the plain layouts of databases only: files have none,
    /// Redis and every page store keep theirs.
    pub connections: Connections,
    /// Lifetime of a session in seconds, at least 1. Files have none.
    pub ttl_s: u64,
    /// Time after which an unanswered call fails, above zero.
    pub timeout: Duration,
    /// Table of a database, a plain identifier that [`Admin::prepare`](crate::Admin::prepare)
    /// created.
    pub table: String,
    /// Directory of the files, which [`Admin::prepare`](crate::Admin::prepare) made; empty for
    /// servers.
    pub directory: PathBuf,
}

/// What a client of an application cache needs to know.
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// Where the backend's stores are, in the order of [`model::Backend::products`].
    pub endpoints: Vec<Endpoint>,
    /// Directory of the backend's files; empty for a backend without files.
    pub directory: PathBuf,
    /// Time after which an unanswered call fails, above zero.
    pub timeout: Duration,
    /// What differs from the defaults of `Cm_Cache_Backend_Redis`, by [`model::CM_SETTINGS`].
    pub cm_settings: BTreeMap<String, String>,
}

impl CacheOptions {
    pub(crate) fn first_endpoint(&self) -> Result<&Endpoint, StoreError> {
        self.endpoints.first().ok_or_else(no_server)
    }

    pub(crate) fn last_endpoint(&self) -> Result<&Endpoint, StoreError> {
        self.endpoints.last().ok_or_else(no_server)
    }

    /// The server of a cache that needs one product alone.
    pub(crate) fn only_endpoint(&self, product: &str) -> Result<&Endpoint, Failure> {
        let [endpoint] = self.endpoints.as_slice() else {
            let number = self.endpoints.len();
            let message = format!("`{number}` endpoints for a cache on {product} (expected 1)");
            return Err(Failure { class: ErrorClass::Other, message });
        };
        Ok(endpoint)
    }
}

fn no_server() -> StoreError {
    let message = "no server was given (expected one for each product: endpoints)";
    StoreError::fatal(ErrorClass::Other, message)
}
