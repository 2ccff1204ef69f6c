use super::*;
use std::os::unix::fs::symlink;

fn marked(directory: &Path) {
    fs::create_dir_all(directory.join("sub/deep")).unwrap();
    fs::write(directory.join("sub/deep/file"), "x").unwrap();
    fs::write(directory.join(MARK), "").unwrap();
}

#[test]
fn only_what_is_marked_is_removed_and_links_are_not_followed() {
    let base = tempfile::tempdir().unwrap();
    let path = |name: &str| base.path().join(name);
    marked(&path("cachedyno-00000001"));
    fs::create_dir(path("foreign")).unwrap();
    fs::write(path("foreign/precious"), "x").unwrap();
    symlink(path("foreign"), path("cachedyno-00000001/link")).unwrap();
    symlink(path("foreign/precious"), path("cachedyno-00000001/sub/link")).unwrap();
    marked(&path("cachedyno-00000002"));
    symlink(path("cachedyno-00000002"), path("cachedyno-00000003")).unwrap();

    remove_owned(&path("cachedyno-00000001")).unwrap();
    remove_owned(&path("foreign")).unwrap();
    remove_owned(&path("cachedyno-00000003")).unwrap();
    remove_owned(&path("nothing")).unwrap();

    assert!(!path("cachedyno-00000001").exists());
    assert!(path("foreign/precious").exists());
    assert!(path("cachedyno-00000002/sub/deep/file").exists());
}

#[test]
fn a_place_that_another_process_has_locked_stays() {
    let base = tempfile::tempdir().unwrap();
    let place = base.path().join("measuring");
    fs::create_dir(&place).unwrap();
    let lock = File::open(&place).unwrap();
    lock.try_lock().unwrap();
    remove_owned(&place).unwrap();
    assert!(place.exists());
    drop(lock);
    remove_owned(&place).unwrap();
    assert!(!place.exists());
}

#[test]
fn a_marker_that_is_a_link_does_not_count() {
    let base = tempfile::tempdir().unwrap();
    let directory = base.path().join("cachedyno-00000001");
    fs::create_dir(&directory).unwrap();
    fs::write(base.path().join("file"), "").unwrap();
    symlink(base.path().join("file"), directory.join(MARK)).unwrap();
    remove_owned(&directory).unwrap();
    assert!(directory.exists());
}

#[test]
fn a_name_that_is_not_of_our_form_is_never_emptied() {
    let base = tempfile::tempdir().unwrap();
    for name in ["cachedyno-measuring", "data", "cachedyno-0000000g"] {
        marked(&base.path().join(name));
        remove_owned(&base.path().join(name)).unwrap();
        assert!(base.path().join(name).join("sub/deep/file").exists(), "{name}");
    }
}

#[test]
fn what_takes_the_name_of_an_open_directory_stays() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("cachedyno-00000001");
    marked(&path);
    let opened = Opened::open(&path).unwrap().unwrap();
    fs::rename(&path, base.path().join("moved")).unwrap();
    marked(&path);
    opened.remove_marked().unwrap();
    assert!(path.join("sub/deep/file").exists());
    assert_eq!(fs::read_dir(base.path().join("moved")).unwrap().count(), 0);
    // A link in place of the directory that holds it leads nowhere.
    symlink(base.path(), base.path().join("link")).unwrap();
    assert!(Opened::open(&base.path().join("link/cachedyno-00000001")).unwrap().is_none());
}

#[test]
fn a_tree_that_is_too_deep_is_refused() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("cachedyno-00000001");
    marked(&path);
    fs::create_dir_all(path.join("d/".repeat(DEPTH_MAX))).unwrap();
    assert!(remove_owned(&path).unwrap_err().to_string().contains("nested too deeply"));
    assert!(path.join(MARK).exists(), "it can still be told whose it is");
}

#[test]
fn other_mounts_and_directories_of_other_users_are_not_entered() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root can give a directory away");
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("cachedyno-00000001");
    marked(&path);
    std::os::unix::fs::chown(path.join("sub/deep"), Some(12345), None).unwrap();
    assert!(remove_owned(&path).unwrap_err().to_string().contains("of another user"));
    assert!(path.join("sub/deep/file").exists() && path.join(MARK).exists());
    // A mark of another user than the directory's does not count.
    std::os::unix::fs::chown(path.join(MARK), Some(12345), None).unwrap();
    remove_owned(&path).unwrap();
    assert!(path.join(MARK).exists());
    let of = Of { mount: 0, owner: 0 };
    let opened = Opened::open(&path).unwrap().unwrap();
    let error = remove_below(opened.file(), &of, DEPTH_MAX, |_| false).unwrap_err();
    assert!(error.to_string().contains("mounted in it"), "{error}");
}
