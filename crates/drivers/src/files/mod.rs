//! Files: one per session in a flat directory, or those of an application cache.
//!
//! - `plain`, `page`: sessions.
//! - `zend`, `cm`, `symfony`: application caches; `tree` and `stream` access files as PHP does.
//! - `directory`: file access for all of them; `admin`: administration around a run.
//!
//! Every file is opened relative to a descriptor of its directory, without following links, so that
//! no ID leads outside. Nothing is synced: neither PHP nor the 2019 script does.

mod admin;
mod cm;
mod directory;
mod lock;
mod page;
mod plain;
mod stream;
mod symfony;
mod tree;
mod zend;

use workloads::store::{PageStore, SessionStore, StoreError};

use crate::{CacheOptions, SessionOptions};
use directory::Directory;

pub(crate) use admin::open_admin;
pub(crate) use cm::CmFile;
pub(crate) use symfony::SymfonyFile;
pub(crate) use zend::ZendFile;

pub(crate) fn open_plain(options: &SessionOptions) -> Result<Box<dyn SessionStore>, StoreError> {
    let directory = Directory::open(&options.directory)?;
    Ok(Box::new(plain::Plain::new(directory, options.connections)))
}

/// A file per key, which several clients write.
pub(crate) fn open_entries(options: &SessionOptions) -> Result<Box<dyn SessionStore>, StoreError> {
    Ok(Box::new(plain::Plain::renaming(Directory::open(&options.directory)?)))
}

pub(crate) fn open_page(options: &SessionOptions) -> Result<Box<dyn PageStore>, StoreError> {
    let directory = Directory::open(&options.directory)?;
    Ok(Box::new(page::Page::new(directory, options.timeout, options.ttl_s)))
}

pub(crate) fn open_zend(options: &CacheOptions) -> Result<ZendFile, StoreError> {
    Ok(ZendFile::new(Directory::open(&options.directory)?, options.timeout))
}

pub(crate) fn open_cm(options: &CacheOptions) -> Result<CmFile, StoreError> {
    let layout = cm::Layout::of(options.magento);
    Ok(CmFile::new(Directory::open(&options.directory)?, options.timeout, layout))
}

pub(crate) fn open_symfony(options: &CacheOptions) -> Result<SymfonyFile, StoreError> {
    SymfonyFile::open(&options.directory)
}

/// Whether a cache layout creates a directory with that path, relative to the cache's.
fn is_cache_dir(path: &str) -> bool {
    zend::is_cache_dir(path) || cm::is_cache_dir(path) || symfony::is_cache_dir(path)
}
