//! Sessions as files, in a temporary directory and on a full disk.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use super::common::{
    collects_expired, contention, options, page_store, patience, plain_store, timed,
};
use cachedyno_drivers::{SessionOptions, admin, open_page_store, open_session_store};
use model::{Connections, Endpoint, ErrorClass, Layout};
use nix::mount::{MsFlags, mount, umount};
use tempfile::TempDir;
use workloads::store::Found;

fn directory() -> (TempDir, Endpoint, SessionOptions) {
    let directory = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::Files { directory: directory.path().into() };
    let options = options(directory.path());
    (directory, endpoint, options)
}

#[test]
fn plain_files_keep_what_is_written() {
    for connections in [Connections::Persistent, Connections::As2019] {
        let (directory, endpoint, options) = directory();
        let options = SessionOptions { connections, ..options };
        let mut store = open_session_store(&endpoint, &options).unwrap();
        plain_store(store.as_mut());
        assert_eq!(store.replace("new", b"1").unwrap(), Found::Yes);
        let metadata = fs::metadata(directory.path().join("1_0")).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn no_file_outside_is_touched() {
    let (directory, endpoint, options) = directory();
    let outside = tempfile::NamedTempFile::new().unwrap();
    symlink(outside.path(), directory.path().join("link")).unwrap();
    symlink(outside.path(), directory.path().join("sess_link")).unwrap();
    let mut store = open_session_store(&endpoint, &options).unwrap();
    let mut page = open_page_store(&endpoint, &options).unwrap();
    let mut value = Vec::new();
    assert_eq!(store.create("link", b"x").unwrap_err().class, ErrorClass::NotOurs);
    assert!(store.read("link", &mut value).is_err());
    assert!(page.open("link", &mut value).is_err());
    for id in ["../x", "a/b", "..", "a\0b"] {
        assert!(store.create(id, b"x").is_err(), "{id}");
        assert!(page.open(id, &mut value).is_err(), "{id}");
    }
    assert_eq!(fs::read(outside.path()).unwrap(), b"");
}

#[test]
fn pages_keep_and_lock() {
    let (_directory, endpoint, options) = directory();
    let mut first = open_page_store(&endpoint, &options).unwrap();
    let mut second = open_page_store(&endpoint, &options).unwrap();
    page_store(first.as_mut());
    contention(first.as_mut(), second.as_mut(), "both");
    contention(second.as_mut(), first.as_mut(), "both2");
}

#[test]
fn a_collection_removes_expired_files_of_sessions() {
    let (directory, endpoint, options) = directory();
    let outside = tempfile::NamedTempFile::new().unwrap();
    let old = std::time::SystemTime::now() - Duration::from_secs(options.ttl_s + 60);
    outside.as_file().set_modified(old).unwrap();
    let other = fs::File::create(directory.path().join("other")).unwrap();
    other.set_modified(old).unwrap();
    fs::create_dir(directory.path().join("sess_directory")).unwrap();
    let mut first = open_page_store(&endpoint, &options).unwrap();
    let mut second = open_page_store(&endpoint, &options).unwrap();
    collects_expired(first.as_mut(), Some(second.as_mut()));
    symlink(outside.path(), directory.path().join("sess_link")).unwrap();
    assert_eq!(first.collect().unwrap().deleted, 0);
    assert!(outside.path().exists() && directory.path().join("other").exists());
}

#[test]
fn waiting_for_a_lock_times_out() {
    let (_directory, endpoint, mut options) = directory();
    let mut holder = open_page_store(&endpoint, &options).unwrap();
    options.timeout = Duration::from_millis(150);
    let mut waiter = open_page_store(&endpoint, &options).unwrap();
    let mut value = Vec::new();
    holder.open("a", &mut value).unwrap();
    for _ in 0..2 {
        let (result, took) = timed(|| waiter.open("a", &mut value));
        let e = result.unwrap_err();
        assert_eq!((e.class, e.fatal), (ErrorClass::Lock, false));
        assert!(took >= Duration::from_millis(150) && took < Duration::from_secs(2), "{took:?}");
    }
    assert!(waiter.close(b"x").is_err());
    holder.close(b"held").unwrap();
    waiter.open("a", &mut value).unwrap();
    assert_eq!(value, b"held");
}

#[test]
fn a_client_that_ends_releases_its_lock() {
    let (_directory, endpoint, options) = directory();
    let mut value = Vec::new();
    let mut holder = open_page_store(&endpoint, &options).unwrap();
    holder.open("a", &mut value).unwrap();
    drop(holder);
    let mut next = open_page_store(&endpoint, &options).unwrap();
    assert_eq!(next.open("a", &mut value).unwrap().lock.attempts, 1);
}

#[test]
fn a_full_disk_is_reported() {
    let (directory, _, mut options) = directory();
    let size = Some("size=64k");
    let mounted = mount(Some("tmpfs"), directory.path(), Some("tmpfs"), MsFlags::empty(), size);
    if let Err(e) = mounted {
        eprintln!("skipped: cannot mount a small file system: {e}");
        return;
    }
    options.directory = directory.path().into();
    let endpoint = Endpoint::Files { directory: directory.path().into() };
    let mut store = open_session_store(&endpoint, &options).unwrap();
    let mut page = open_page_store(&endpoint, &options).unwrap();
    let big = vec![b'x'; 100_000];
    let plain = store.create("a", &big);
    let opened = page.open("b", &mut Vec::new());
    let closed = page.close(&big);
    drop((store, page));
    umount(directory.path()).unwrap();
    opened.unwrap();
    for e in [plain.unwrap_err(), closed.unwrap_err()] {
        assert_eq!((e.class, e.fatal), (ErrorClass::Full, false), "{e}");
    }
}

#[test]
fn a_missing_directory_is_reported() {
    let gone = Endpoint::Files { directory: "/nonexistent/x".into() };
    assert!(admin(&gone, Duration::from_secs(1)).is_err());
    let (_directory, endpoint, mut options) = directory();
    options.directory.push("gone");
    let e = open_session_store(&endpoint, &options).err().unwrap();
    assert!(e.message.contains("gone") && e.message.contains("expected an existing directory"));
}

#[test]
fn only_the_subdirectory_of_the_run_is_removed() {
    let (directory, endpoint, mut options) = directory();
    fs::write(directory.path().join("foreign"), "stays").unwrap();
    fs::create_dir(directory.path().join("taken")).unwrap();
    let mut admin = admin(&endpoint, options.timeout).unwrap();
    let facts = admin.facts().unwrap();
    assert!(facts.version.starts_with("files on ") && facts.empty == Some(true), "{facts:?}");
    assert_ne!(facts.version, "files on an unknown file system");
    let taken = admin.prepare(Layout::Plain, "taken", 1_500).unwrap_err();
    assert_eq!(taken.class, ErrorClass::NotOurs);
    assert!(admin.prepare(Layout::Plain, "../out", 1_500).is_err());

    options.directory = admin.prepare(Layout::Plain, "run", 1_500).unwrap();
    for layout in [Layout::Plain, Layout::Page] {
        admin.verify(layout, &options, "p_verify").unwrap();
    }
    assert_eq!(fs::read_dir(&options.directory).unwrap().count(), 0);
    let mut store = open_session_store(&endpoint, &options).unwrap();
    for i in 0..50 {
        store.create(&format!("p_{i}"), b"x").unwrap();
    }
    symlink(directory.path().join("foreign"), options.directory.join("link")).unwrap();
    fs::create_dir(options.directory.join("inner")).unwrap();
    fs::write(options.directory.join("inner/file"), "stays").unwrap();
    assert_eq!(
        admin.clean(Layout::Plain, "p_", &mut patience()).unwrap_err().class,
        ErrorClass::NotOurs
    );
    assert!(options.directory.join("inner/file").exists());
    assert!(!options.directory.join("p_1").exists());
    fs::remove_dir_all(options.directory.join("inner")).unwrap();
    admin.clean(Layout::Plain, "p_", &mut patience()).unwrap();
    assert!(!options.directory.exists());
    assert_eq!(fs::read(directory.path().join("foreign")).unwrap(), b"stays");
    assert!(directory.path().join("taken").exists());
}

#[test]
fn an_interruption_ends_the_removal_of_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::Files { directory: directory.path().into() };
    let mut admin = admin(&endpoint, Duration::from_secs(5)).unwrap();
    let made = admin.prepare(Layout::Plain, "run-1", 10).unwrap();
    std::fs::write(made.join("a"), "x").unwrap();
    let stop = std::sync::atomic::AtomicBool::new(true);
    let mut over = cachedyno_drivers::CleanupDeadline::new(&stop);
    over.check().unwrap();
    std::thread::sleep(Duration::from_millis(5_100));
    let failure = admin.clean(Layout::Plain, "run-1", &mut over).unwrap_err();
    assert!(failure.message.contains("cleaning was interrupted"), "{failure}");
    assert!(made.join("a").exists());
    admin.clean(Layout::Plain, "run-1", &mut patience()).unwrap();
    assert!(!made.exists());
}
