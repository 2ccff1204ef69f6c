//! The layouts of application caches: which software's, over which products.

use std::path::PathBuf;
use std::time::Duration;

use model::{Backend, Endpoint, ErrorClass, Failure};
use workloads::app_cache::TaggedCache;

use crate::{mysql, redis};

/// What a client of an application cache needs to know.
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// Where the backend's stores are, in the order of [`Backend::products`].
    pub endpoints: Vec<Endpoint>,
    /// Directory of the backend's files; empty for a backend without files.
    pub directory: PathBuf,
    /// Time after which an unanswered call fails, above zero.
    pub timeout: Duration,
}

/// Opens one client of a backend: servers are connected to, logged in to and asked for one answer.
pub fn open_tagged_cache(
    backend: Backend,
    options: &CacheOptions,
) -> Result<Box<dyn TaggedCache>, Failure> {
    match backend {
        Backend::CmRedis | Backend::CmRedisLua | Backend::SymfonyRedis | Backend::LaravelRedis => {
            redis::open_cache(backend, options)
        }
        Backend::MagentoMysql => mysql::open_cache(options),
        _ => {
            let message = format!("backend `{backend:?}` is not built");
            Err(Failure { class: ErrorClass::Other, message })
        }
    }
}
