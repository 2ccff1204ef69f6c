//! The servers that can be started on this machine.

use crate::child;
use crate::search::SearchPath;
use crate::servers::{self, Executable};
use model::{Product, Program};
use std::path::{Path, PathBuf};

/// A server program, installed or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Name of the target that uses it.
    pub name: &'static str,
    /// The product that it implements.
    pub product: Product,
    /// File name of its program.
    pub program: &'static str,
    /// Its path; `None` if it is not installed.
    pub path: Option<PathBuf>,
    /// First line of its `--version` output; `None` if it is not installed or prints nothing.
    pub version: Option<String>,
    /// Debian package that contains it, and where to get the package if Debian lacks it.
    pub package: &'static str,
}

/// Finds every server that this crate can start and queries its version.
pub fn installed(search: &SearchPath) -> Vec<Installed> {
    let own = Product::ALL.into_iter().filter_map(|product| {
        let own = servers::of(product)?;
        Some(server((product.name(), product), own.executable, (own.find)(search)))
    });
    let others = Program::ALL.map(|program| {
        let own = Executable { name: program.name(), package: program.package };
        server((program.target, Program::PRODUCT), own, search.find(&[own.name]))
    });
    own.chain(others).collect()
}

fn server(
    (name, product): (&'static str, Product),
    own: Executable,
    path: Option<PathBuf>,
) -> Installed {
    let version = path.as_deref().and_then(version_line);
    Installed { name, product, program: own.name, path, version, package: own.package }
}

fn version_line(program: &Path) -> Option<String> {
    let output = child::command(program).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn installed_and_missing_servers_are_listed() {
        let base = tempfile::tempdir().unwrap();
        let search = SearchPath::new([base.path().to_path_buf()]);
        assert!(installed(&search).iter().all(|i| i.path.is_none() && i.version.is_none()));

        let (redis, mysqld) = (base.path().join("redis-server"), base.path().join("mysqld"));
        symlink("/bin/ls", &redis).unwrap();
        symlink("/bin/ls", &mysqld).unwrap();
        let list = installed(&search);
        assert_eq!((list[0].product, list[0].path.as_ref()), (Product::Redis, Some(&redis)));
        let version = list[0].version.as_deref().unwrap();
        assert!(version.starts_with("ls (") && !version.contains('\n'), "{version}");
        // A `mysqld` without MariaDB in its version is another product.
        assert_eq!((list[1].product, &list[1].path), (Product::Mysql, &None));
        let names: Vec<&str> = list.iter().map(|i| i.name).collect();
        assert_eq!(names[..5], ["redis", "mysql", "postgres", "memcached", "valkey"]);
    }
}
