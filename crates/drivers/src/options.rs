//! Client options in addition to the endpoint.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use model::{Connections, Endpoint, ErrorClass, Failure, Magento};
use serde::{Deserialize, Serialize};
use workloads::store::StoreError;

/// Options for a client of a session store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionOptions {
    /// When connections are opened. Applies only to the plain layouts of databases: files have no
    /// connections, and Redis and all page stores keep theirs open.
    pub connections: Connections,
    /// Lifetime of a session in seconds, at least 1. Files have none; it decides which of them a
    /// collection removes.
    pub ttl_s: u64,
    /// Length of the longest value, bytes; 0 if it is unknown. Used by the disk itself, whose
    /// values all have this length.
    pub value_bytes: usize,
    /// Timeout of a call, above zero.
    pub timeout: Duration,
    /// Table in a database, a plain identifier created by
    /// [`Admin::prepare`](crate::Admin::prepare).
    pub table: String,
    /// Directory of the files, created by [`Admin::prepare`](crate::Admin::prepare); empty for
    /// servers.
    pub directory: PathBuf,
}

/// Options for a client of an application cache.
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// The backend's stores, in the order of [`model::Backend::products`].
    pub endpoints: Vec<Endpoint>,
    /// Directory of the backend's files; empty for a backend without files.
    pub directory: PathBuf,
    /// Timeout of a call, above zero.
    pub timeout: Duration,
    /// Settings that differ from the defaults of `Cm_Cache_Backend_Redis`, by
    /// [`model::CM_SETTINGS`].
    pub cm_settings: BTreeMap<String, String>,
    /// The layer above the backend, whose factory configures `Cm_Cache_Backend_File`.
    pub magento: Magento,
}

impl CacheOptions {
    pub(crate) fn first_endpoint(&self) -> Result<&Endpoint, StoreError> {
        self.endpoints.first().ok_or_else(no_server)
    }

    pub(crate) fn last_endpoint(&self) -> Result<&Endpoint, StoreError> {
        self.endpoints.last().ok_or_else(no_server)
    }

    /// The server of a cache that uses only one product.
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
    let message = "no server was given (expected one per product in `endpoints`)";
    StoreError::fatal(ErrorClass::Other, message)
}
