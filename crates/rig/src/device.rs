//! Use of a disk. Source: the kernel's page "Block layer statistics" on
//! `/sys/block/<dev>/stat`.

use model::DeviceUse;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use crate::host::block_device;

/// Bytes of a sector in the statistics, whatever those of the disk are.
const SECTOR_BYTES: u64 = 512;
/// Bytes of the file with some to spare: 17 numbers.
const FILE_BYTES_MAX: usize = 1 << 10;

/// Reads the use of one disk repeatedly.
#[derive(Debug)]
pub struct DeviceReader {
    file: File,
}

impl DeviceReader {
    /// A reader for the whole disk with the files of a directory; `None` if they are on no block
    /// device.
    pub fn of(directory: &Path) -> Option<Self> {
        let number = block_device(directory)?;
        Some(Self { file: File::open(format!("/sys/dev/block/{number}/stat")).ok()? })
    }

    /// Use since the disk was attached; `None` if it was removed.
    pub fn read(&mut self) -> Option<DeviceUse> {
        let mut text = [0; FILE_BYTES_MAX];
        let read = self.file.read_at(&mut text, 0).ok()?;
        parse(std::str::from_utf8(&text[..read]).ok()?)
    }
}

/// Reads, merged reads, sectors read, time; then the same of writes, and more.
fn parse(text: &str) -> Option<DeviceUse> {
    let mut numbers = text.split_ascii_whitespace().map(|number| number.parse::<u64>().ok());
    let mut number = |passed| numbers.nth(passed)?;
    Some(DeviceUse {
        reads: number(0)?,
        read_bytes: number(1)? * SECTOR_BYTES,
        writes: number(1)?,
        written_bytes: number(1)? * SECTOR_BYTES,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn sectors_have_512_bytes() {
        let text = "  100  5  2000  7  300  9  6000  11  0  1  2  0 0 0 0 0 0\n";
        let expected =
            DeviceUse { read_bytes: 1_024_000, written_bytes: 3_072_000, reads: 100, writes: 300 };
        assert_eq!(parse(text), Some(expected));
        assert_eq!(parse("1 2 3"), None);
    }

    #[test]
    fn what_is_written_and_flushed_is_counted() {
        let Ok(directory) = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")) else { return };
        let Some(mut reader) = DeviceReader::of(directory.path()) else {
            eprintln!("skipped: {} is on no block device", directory.path().display());
            return;
        };
        let before = reader.read().unwrap();
        let path = directory.path().join("data");
        fs::write(&path, vec![1; 4 << 20]).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        let after = reader.read().unwrap();
        assert!(after.written_bytes - before.written_bytes >= 4 << 20, "{before:?} {after:?}");
        assert!(after.writes > before.writes);
    }
}
