//! Data files of the original cache benchmark: inspected before a run, read by a trial.

use model::DataFiles;
use std::fs::{self, File};
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use workloads::app_cache::files::{DATA_FILE, FileError, FileReader, operations_file};
use workloads::app_cache::{DataSet, Lists};

/// Why the files of a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataFilesError {
    /// One of them cannot be opened.
    #[error("`{file}` cannot be read: {source}")]
    Unreadable {
        /// Its path.
        file: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// One of them has invalid content.
    #[error(transparent)]
    Content(#[from] FileError),
    /// A client's list is missing, but a later client's exists.
    #[error("`{file}` is missing (expected a list for every client from 0 up to `{later}`)")]
    Missing {
        /// Path of the missing list.
        file: PathBuf,
        /// Name of the later one.
        later: String,
    },
    /// They have changed since the run was planned.
    #[error(
        "the files in `{directory}` have changed since the run was planned (MD5 `{found}`, \
         expected `{expected}`)"
    )]
    Changed {
        /// Their directory.
        directory: String,
        /// Current MD5.
        found: String,
        /// MD5 when the run was planned.
        expected: String,
    },
}

/// Inspects a directory with the original's `data.txt` and `ops-client_N.json` for clients from 0
/// up. Errors: a file cannot be read or has the wrong format.
pub fn look(directory: &Path) -> Result<DataFiles, DataFilesError> {
    Ok(open(directory)?.found(absolute(directory)?))
}

/// Checks that the files have not changed since the run was planned.
pub fn check(files: &DataFiles) -> Result<(), DataFilesError> {
    read(files, 0).map(drop)
}

/// Reads records and operation lists from the planned files. Errors: see [`DataFilesError`].
pub(crate) fn read(files: &DataFiles, seed: u64) -> Result<(DataSet, Lists), DataFilesError> {
    let directory = Path::new(&files.directory);
    let reader = open(directory)?;
    let found = reader.found(files.directory.clone());
    if found.md5 != files.md5 {
        return Err(DataFilesError::Changed {
            directory: found.directory,
            found: found.md5,
            expected: files.md5.clone(),
        });
    }
    Ok(reader.finish(seed))
}

fn open(directory: &Path) -> Result<FileReader, DataFilesError> {
    let unreadable = |file: &Path, source| DataFilesError::Unreadable { file: file.into(), source };
    let path = directory.join(DATA_FILE);
    let file = File::open(&path).map_err(|e| unreadable(&path, e))?;
    let mut reader = FileReader::data(&path.to_string_lossy(), &mut BufReader::new(file))?;
    for client in 0.. {
        let path = directory.join(operations_file(client));
        match File::open(&path) {
            Ok(mut file) => reader.operations(&path.to_string_lossy(), &mut file)?,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                return match later_list(directory, client) {
                    Some(later) => Err(DataFilesError::Missing { file: path, later }),
                    None => Ok(reader),
                };
            }
            Err(e) => return Err(unreadable(&path, e)),
        }
    }
    Ok(reader)
}

/// Name of the next existing list of a client after this one.
fn later_list(directory: &Path, client: u32) -> Option<String> {
    let names = fs::read_dir(directory).ok()?.flatten().map(|entry| entry.file_name());
    let lists = names.filter_map(|name| {
        let name = name.into_string().ok()?;
        let number: u32 = name.strip_prefix("ops-client_")?.strip_suffix(".json")?.parse().ok()?;
        (number > client && name == operations_file(number)).then_some((number, name))
    });
    lists.min().map(|(_, name)| name)
}

fn absolute(directory: &Path) -> Result<String, DataFilesError> {
    let path = directory
        .canonicalize()
        .map_err(|source| DataFilesError::Unreadable { file: directory.into(), source })?;
    Ok(path.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_files_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path();
        let record = r#"{"key":"a","data":"value","tags":["T"],"expires":false}"#;
        fs::write(path.join("data.txt"), format!("1\r\n{record}\r\n")).unwrap();
        let list = path.join("ops-client_0.json");
        fs::write(&list, r#"[["read","a"],["clean","T"]]"#).unwrap();
        let files = look(path).unwrap();
        assert_eq!((files.keys, files.tags, files.lists, files.ops), (1, 1, 1, 2));
        let (data, _) = read(&files, 1).unwrap();
        assert_eq!(data.keys(), 1);
        fs::write(&list, r#"[["read","a"],["clean","T"] ]"#).unwrap();
        let error = read(&files, 1).unwrap_err().to_string();
        assert!(error.contains("have changed since the run was planned"), "{error}");
        fs::copy(&list, path.join("ops-client_3.json")).unwrap();
        fs::copy(&list, path.join("ops-client_2.json")).unwrap();
        let error = look(path).unwrap_err().to_string();
        assert!(error.contains("ops-client_1.json` is missing"), "{error}");
        assert!(error.contains("up to `ops-client_2.json`"), "{error}");
        fs::remove_file(path.join("data.txt")).unwrap();
        assert!(look(path).unwrap_err().to_string().contains("data.txt` cannot be read"));
    }
}
