//! Existing directories.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::common::{Place, count, installed, row, target};

/// Names and contents of everything below a directory; for links, their targets.
fn tree(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.display().to_string();
        let kind = path.symlink_metadata().unwrap().file_type();
        if kind.is_symlink() {
            found.push(format!("{name} -> {}", fs::read_link(&path).unwrap().display()));
        } else if kind.is_dir() {
            found.push(name);
            found.extend(tree(&path));
        } else {
            found.push(format!("{name}: {}", fs::read_to_string(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn foreign_files_and_links_stay_unchanged() {
    let place = Place::new();
    let (own, elsewhere) = (place.path().join("own"), place.path().join("elsewhere"));
    fs::create_dir_all(own.join("sub")).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    fs::write(own.join("sess_0123"), "a foreign session").unwrap();
    fs::write(own.join("sub/deep"), "deep").unwrap();
    fs::write(elsewhere.join("precious"), "precious").unwrap();
    symlink(&elsewhere, own.join("sessions")).unwrap();
    symlink(elsewhere.join("precious"), own.join("1_0")).unwrap();
    let before = (tree(&own), tree(&elsewhere));

    let url = format!("x=file://{}", own.display());
    let arguments = ["--set", "clients=2", "--set", "profile=all", "--target", &url];
    let summary = Place::finish(place.fast(&arguments)).measured().json();
    for name in ["read", "page.open"] {
        let rows = super::common::among(&summary["cells"], |c| c["operation"] == name);
        assert!(!rows.is_empty());
        assert!(rows.iter().all(|r| count(r, "ok") > 0 && count(r, "error") == 0), "{rows:?}");
    }
    let own_name = own.display().to_string();
    assert_eq!(target(&summary, "x")["place"], format!("directory {own_name}"));
    assert_eq!((tree(&own), tree(&elsewhere)), before);
    place.assert_nothing_left();
}

#[test]
fn an_application_cache_of_files_uses_its_own_directory() {
    let place = Place::new();
    let own = place.path().join("own");
    fs::create_dir_all(own.join("mage--0")).unwrap();
    // As in a shop's cache directory.
    fs::write(own.join("mage--0/mage---A_RECORD"), "foreign").unwrap();
    fs::write(own.join("mage--0/mage---internal-metadatas---A_RECORD"), "its metadata").unwrap();
    let before = tree(&own);
    let url = format!("zend-file=file://{}", own.display());
    let summary = Place::finish(super::app_cache::small(&place, &["--target", &url]));
    let summary = summary.measured().json();
    assert!(count(row(&summary, "zend-file", "clean"), "ok") > 0);
    assert_eq!(tree(&own), before, "only files of the run are cleaned and removed");
    place.assert_nothing_left();
}

#[test]
fn starting_mariadb_keeps_temporary_tables_of_other_servers() {
    if !installed(&["mariadbd", "mariadb-install-db"]) {
        return;
    }
    // The default temporary directory of MariaDB.
    let mut table = tempfile::Builder::new();
    let foreign = table.prefix("#sql-temptable-").suffix(".MAI").tempfile_in("/tmp").unwrap();
    let place = Place::new();
    Place::finish(place.fast(&["--target", "mysql"])).measured();
    assert!(foreign.path().exists());
    place.assert_nothing_left();
}

#[test]
fn a_directory_given_as_a_link_is_accepted() {
    let place = Place::new();
    let real = place.path().join("real");
    fs::create_dir(&real).unwrap();
    symlink(&real, place.path().join("alias")).unwrap();
    let url = format!("file://{}", place.path().join("alias").display());
    let arguments = ["--set", "clients=1", "--target", &url];
    let summary = Place::finish(place.fast(&arguments)).measured().json();
    assert_eq!(row(&summary, "files", "read")["blocks"], 1);
    assert_eq!(tree(&real), [""; 0]);
}

#[test]
fn a_file_instead_of_a_directory_is_refused() {
    let place = Place::new();
    let file = place.write("file", "mine");
    let url = format!("x=file://{}", file.display());
    let summary = Place::finish(place.fast(&["--set", "clients=1", "--target", &url])).code(3);
    let summary = summary.json();
    let why = target(&summary, "x")["not_run"].as_str().unwrap();
    assert!(why.contains(file.to_str().unwrap()), "{why}");
    assert_eq!(fs::read_to_string(file).unwrap(), "mine");
}
