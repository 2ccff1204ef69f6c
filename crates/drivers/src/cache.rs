//! The layouts of application caches: which software's, over which products.
//!
//! Those on one product stand in its folder; those on two are here.

mod dice;
mod levels;
mod simple;
mod two_levels;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use model::{Backend, Endpoint, ErrorClass, Failure};
use workloads::app_cache::TaggedCache;
use workloads::store::StoreError;

use crate::memcached::{Symfony, ZendMemcached};
use crate::{clock, fault, files, mysql, redis};
use simple::SimpleTwoLevels;
use two_levels::TwoLevels;

pub(crate) use dice::Dice;
pub(crate) use levels::SlowLevel;

/// The time, in seconds since 1970, at which records expire that never do (Zend, Magento).
const NEVER: i64 = 9_999_999_999;

/// Seconds since 1970, which these layouts store.
pub(crate) fn now_s() -> i64 {
    clock::now_s().cast_signed()
}

/// When a record expires that is stored now.
pub(crate) fn expire_s(lifetime_s: Option<u64>) -> i64 {
    lifetime_s.map_or(NEVER, |s| now_s().saturating_add(i64::try_from(s).unwrap_or(i64::MAX)))
}

/// What a client of an application cache needs to know.
#[derive(Clone, Debug)]
pub struct CacheOptions {
    /// Where the backend's stores are, in the order of [`Backend::products`].
    pub endpoints: Vec<Endpoint>,
    /// Directory of the backend's files; empty for a backend without files.
    pub directory: PathBuf,
    /// Time after which an unanswered call fails, above zero.
    pub timeout: Duration,
    /// What differs from the defaults of `Cm_Cache_Backend_Redis`, by [`model::CM_SETTINGS`].
    pub cm_settings: BTreeMap<String, String>,
}

/// Opens one client of a backend: servers are connected to, logged in to and asked for one answer.
pub fn open_tagged_cache(
    backend: Backend,
    options: &CacheOptions,
) -> Result<Box<dyn TaggedCache>, Failure> {
    if options.timeout.is_zero() {
        let message = "a time-out of `0` ends every call (expected more: timeout)".into();
        return Err(Failure { class: ErrorClass::Other, message });
    }
    match backend {
        Backend::ZendFile => files::open_zend(options).map(|c| Box::new(c) as _),
        Backend::CmFile => files::open_cm(options).map(|c| Box::new(c) as _),
        Backend::CmRedis | Backend::CmRedisLua | Backend::SymfonyRedis | Backend::LaravelRedis => {
            return redis::open_cache(backend, options);
        }
        Backend::TwoLevelsFile => files::open_zend(options)
            .and_then(|slow| Ok(Box::new(TwoLevels::new(fast_level(options)?, slow)) as _)),
        Backend::TwoLevelsRedis => {
            let slow = redis::open_slow_level(options)?;
            fast_level(options).map(|fast| Box::new(TwoLevels::new(fast, slow)) as _)
        }
        Backend::SimpleTwoLevels => {
            let slow = redis::open_slow_level(options)?;
            fast_level(options).map(|fast| Box::new(SimpleTwoLevels::new(fast, slow)) as _)
        }
        Backend::MagentoMysql => return mysql::open_cache(options),
        Backend::SymfonyMemcached => first_endpoint(options)
            .and_then(|endpoint| Symfony::connect(endpoint, options.timeout))
            .map(|c| Box::new(c) as _),
    }
    .map_err(fault::failure)
}

/// memcached before another store.
fn fast_level(options: &CacheOptions) -> Result<ZendMemcached, StoreError> {
    ZendMemcached::connect(first_endpoint(options)?, options.timeout)
}

fn first_endpoint(options: &CacheOptions) -> Result<&Endpoint, StoreError> {
    options.endpoints.first().ok_or_else(|| {
        let message = "no server was given (expected one for each product: endpoints)";
        StoreError::fatal(ErrorClass::Other, message)
    })
}
