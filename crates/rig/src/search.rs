//! The search path for programs.

use nix::unistd::{AccessFlags, access};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Directories that contain servers but are often not in a user's PATH.
const SYSTEM: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// Directories in which Debian keeps each version of a server separately, as in `15/bin`.
const VERSIONS: [&str; 1] = ["/usr/lib/postgresql"];

/// Directories that are searched for programs, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchPath(Vec<PathBuf>);

impl SearchPath {
    /// Exactly these directories.
    pub fn new(directories: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(directories.into_iter().collect())
    }

    /// The directories in the environment variable PATH, then the system's directories for servers,
    /// newest versions first.
    pub fn of_process() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
        let mut directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
        for system in
            SYSTEM.map(PathBuf::from).into_iter().chain(VERSIONS.iter().flat_map(versions))
        {
            if !directories.contains(&system) {
                directories.push(system);
            }
        }
        Self(directories)
    }

    /// The first executable file with one of these names; earlier names take precedence.
    pub fn find(&self, names: &[&str]) -> Option<PathBuf> {
        names.iter().find_map(|name| {
            let mut paths = self.0.iter().filter(|d| d.is_absolute()).map(|d| d.join(name));
            paths.find(|p| is_program(p))
        })
    }

    /// Value of PATH for child processes.
    pub(crate) fn to_variable(&self) -> OsString {
        std::env::join_paths(&self.0).unwrap_or_default()
    }
}

/// The `bin` directories of all versions, newest first.
fn versions(directory: &&str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect();
    versions.sort();
    versions.into_iter().rev().map(|(_, path)| path.join("bin")).collect()
}

fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, AccessFlags::X_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_executable_files_are_found_and_earlier_names_take_precedence() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        fs::write(at("plain"), "").unwrap();
        fs::create_dir(at("directory")).unwrap();
        for name in ["first", "second"] {
            fs::write(at(name), "").unwrap();
            fs::set_permissions(at(name), Permissions::from_mode(0o755)).unwrap();
        }
        let search = SearchPath::new([base.path().to_path_buf()]);
        assert_eq!(search.find(&["plain"]), None);
        assert_eq!(search.find(&["directory"]), None);
        assert_eq!(search.find(&["plain", "second", "first"]), Some(at("second")));
    }

    #[test]
    fn server_directories_are_always_searched() {
        let SearchPath(directories) = SearchPath::of_process();
        assert!(directories.iter().any(|d| d == Path::new("/usr/sbin")));
    }
}
