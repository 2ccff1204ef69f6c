//! Administration of the directory around a run, as for files.

use std::path::{Path, PathBuf};

use model::{ErrorClass, Failure, Layout};
use workloads::store::{Found, StoreError};

use super::open_blocks;
use crate::{Admin, CleanupDeadline, Facts, SessionOptions, files};

/// File systems without a disk, which have direct I/O since Linux 6.6.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

struct DiskAdmin {
    files: Box<dyn Admin>,
}

pub(crate) fn open_admin(directory: &Path) -> Result<Box<dyn Admin>, StoreError> {
    Ok(Box::new(DiskAdmin { files: files::open_admin(directory)? }))
}

impl Admin for DiskAdmin {
    fn facts(&mut self) -> Result<Facts, Failure> {
        let of_files = self.files.facts()?;
        let place = of_files.version.strip_prefix("files").unwrap_or_default();
        if IN_MEMORY.iter().any(|kind| place.trim_start_matches(" on ") == *kind) {
            let message = format!(
                "the directory is{place}, in memory, and not on a disk (expected one on a disk: \
                 --disk, or the target with its directory: disk=DIR)"
            );
            return Err(Failure { class: ErrorClass::Other, message });
        }
        let mut configuration = of_files.configuration;
        configuration.retain(|(name, _)| name != "fsync");
        let version = format!("direct I/O{place}");
        Ok(Facts { version, empty: of_files.empty, configuration })
    }

    fn prepare(
        &mut self,
        layout: Layout,
        name: &str,
        value_bytes: usize,
    ) -> Result<PathBuf, Failure> {
        self.files.prepare(layout, name, value_bytes)
    }

    fn verify(&mut self, _: Layout, options: &SessionOptions, _: &str) -> Result<(), Failure> {
        let mut blocks = open_blocks(options)?;
        let (written, mut read) = (vec![b'v'; options.value_bytes], Vec::new());
        blocks.create("0", &written)?;
        let found = blocks.read("0", &mut read)?;
        if found == Found::Yes && read == written {
            return Ok(());
        }
        let message = "the first block does not read back as written".into();
        Err(Failure { class: ErrorClass::Protocol, message })
    }

    fn clean(
        &mut self,
        layout: Layout,
        prefix: &str,
        patience: &mut CleanupDeadline<'_>,
    ) -> Result<(), Failure> {
        self.files.clean(layout, prefix, patience)
    }
}
