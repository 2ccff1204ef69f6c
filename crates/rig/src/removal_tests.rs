use super::*;
use std::os::unix::fs::symlink;

fn create_marked(directory: &Path) {
    fs::create_dir_all(directory.join("sub/deep")).unwrap();
    fs::write(directory.join("sub/deep/file"), "x").unwrap();
    fs::write(directory.join(MARK), "").unwrap();
}

#[test]
fn only_marked_directories_are_removed_and_links_are_not_followed() {
    let base = tempfile::tempdir().unwrap();
    let path = |name: &str| base.path().join(name);
    create_marked(&path("cachedyno-00000001"));
    fs::create_dir(path("foreign")).unwrap();
    fs::write(path("foreign/precious"), "x").unwrap();
    symlink(path("foreign"), path("cachedyno-00000001/link")).unwrap();
    symlink(path("foreign/precious"), path("cachedyno-00000001/sub/link")).unwrap();
    create_marked(&path("cachedyno-00000002"));
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
fn a_directory_locked_by_another_process_is_kept() {
    let base = tempfile::tempdir().unwrap();
    let directory = base.path().join("measuring");
    fs::create_dir(&directory).unwrap();
    let lock = File::open(&directory).unwrap();
    lock.try_lock().unwrap();
    remove_owned(&directory).unwrap();
    assert!(directory.exists());
    drop(lock);
    remove_owned(&directory).unwrap();
    assert!(!directory.exists());
}

#[test]
fn a_mark_that_is_a_link_is_ignored() {
    let base = tempfile::tempdir().unwrap();
    let directory = base.path().join("cachedyno-00000001");
    fs::create_dir(&directory).unwrap();
    fs::write(base.path().join("file"), "").unwrap();
    symlink(base.path().join("file"), directory.join(MARK)).unwrap();
    remove_owned(&directory).unwrap();
    assert!(directory.exists());
}

#[test]
fn a_directory_with_another_form_of_name_is_kept() {
    let base = tempfile::tempdir().unwrap();
    for name in ["cachedyno-measuring", "data", "cachedyno-0000000g"] {
        create_marked(&base.path().join(name));
        remove_owned(&base.path().join(name)).unwrap();
        assert!(base.path().join(name).join("sub/deep/file").exists(), "{name}");
    }
}

#[test]
fn a_directory_that_replaces_an_opened_one_is_kept() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("cachedyno-00000001");
    create_marked(&path);
    let opened = Opened::open(&path).unwrap().unwrap();
    fs::rename(&path, base.path().join("moved")).unwrap();
    create_marked(&path);
    opened.remove_marked().unwrap();
    assert!(path.join("sub/deep/file").exists());
    assert_eq!(fs::read_dir(base.path().join("moved")).unwrap().count(), 0);
    // A link in place of the parent is not followed.
    symlink(base.path(), base.path().join("link")).unwrap();
    assert!(Opened::open(&base.path().join("link/cachedyno-00000001")).unwrap().is_none());
}

#[test]
fn a_tree_that_is_too_deep_is_rejected() {
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("cachedyno-00000001");
    create_marked(&path);
    fs::create_dir_all(path.join("d/".repeat(DEPTH_MAX))).unwrap();
    assert!(remove_owned(&path).unwrap_err().to_string().contains("nested too deeply"));
    assert!(path.join(MARK).exists(), "the mark still names its owner");
}

#[test]
fn other_mounts_and_directories_of_other_users_are_not_entered() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root can change the owner of a directory");
        return;
    }
    let base = tempfile::tempdir().unwrap();
    let path = base.path().join("cachedyno-00000001");
    create_marked(&path);
    std::os::unix::fs::chown(path.join("sub/deep"), Some(12345), None).unwrap();
    assert!(remove_owned(&path).unwrap_err().to_string().contains("directory of another user"));
    assert!(path.join("sub/deep/file").exists() && path.join(MARK).exists());
    // A mark is ignored if its owner is not the directory's owner.
    std::os::unix::fs::chown(path.join(MARK), Some(12345), None).unwrap();
    remove_owned(&path).unwrap();
    assert!(path.join(MARK).exists());
    let tree = TreeIdentity { mount: 0, owner: 0 };
    let opened = Opened::open(&path).unwrap().unwrap();
    let error = remove_below(opened.file(), &tree, DEPTH_MAX, |_| false).unwrap_err();
    assert!(error.to_string().contains("another mounted file system"), "{error}");
}

#[test]
fn swap_that_does_not_fit_into_memory_stays_and_says_what_to_do() {
    assert!(still_on(Ok(())).is_ok() && still_on(Err(Errno::EINVAL)).is_ok());
    let full = still_on(Err(Errno::ENOMEM)).unwrap_err().to_string();
    assert!(full.contains("do not fit into memory (close programs"), "{full}");
    let denied = still_on(Err(Errno::EPERM)).unwrap_err();
    assert_eq!(denied.kind(), io::ErrorKind::PermissionDenied);
}
