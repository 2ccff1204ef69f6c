//! Storage layouts of application caches.
//!
//! Layouts on a single product are in that product's folder; those on two products are here.

mod dice;
mod expiry;
mod levels;
mod simple;
mod two_levels;

use model::{Backend, ErrorClass, Failure};
use workloads::app_cache::TaggedCache;
use workloads::store::StoreError;

use crate::memcached::{Symfony, ZendMemcached};
use crate::{CacheOptions, files, mysql, redis};
use simple::SimpleTwoLevels;
use two_levels::TwoLevels;

pub(crate) use dice::Random;
pub(crate) use expiry::{expire_s, now_s};
pub(crate) use levels::SlowLevel;

/// Opens one client of a backend: connects to its servers, logs in and sends one request to each.
pub fn open_tagged_cache(
    backend: Backend,
    options: &CacheOptions,
) -> Result<Box<dyn TaggedCache>, Failure> {
    if options.timeout.is_zero() {
        let message = "`timeout` is 0, so every call would fail (expected more than 0)".into();
        return Err(Failure { class: ErrorClass::Other, message });
    }
    match backend {
        Backend::ZendFile => files::open_zend(options).map(|c| Box::new(c) as _),
        Backend::CmFile => files::open_cm(options).map(|c| Box::new(c) as _),
        Backend::SymfonyFile => files::open_symfony(options).map(|c| Box::new(c) as _),
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
        Backend::SymfonyMemcached => options
            .first_endpoint()
            .and_then(|endpoint| Symfony::connect(endpoint, options.timeout))
            .map(|c| Box::new(c) as _),
    }
    .map_err(Failure::from)
}

/// The fast level, memcached.
fn fast_level(options: &CacheOptions) -> Result<ZendMemcached, StoreError> {
    ZendMemcached::connect(options.first_endpoint()?, options.timeout)
}
