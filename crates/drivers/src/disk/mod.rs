//! The disk itself: blocks of one file, read and written with direct I/O (`O_DIRECT`, open(2)),
//! without the page cache. It shows what the disk can do, as a limit for the stores on it.
//!
//! - `blocks`: one client's file; `admin`: administration around a run, as for files.

mod admin;
mod blocks;

use workloads::store::{SessionStore, StoreError};

use crate::SessionOptions;

pub(crate) use admin::open_admin;

/// Opens one client. A value's key ends in its number, its place in the file. Errors: the file
/// system has no direct I/O.
pub(crate) fn open_blocks(options: &SessionOptions) -> Result<Box<dyn SessionStore>, StoreError> {
    Ok(Box::new(blocks::Blocks::open(&options.directory, options.value_bytes)?))
}
