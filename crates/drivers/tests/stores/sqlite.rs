//! Sessions in an SQLite database.

use std::time::Duration;

use super::common::{
    collects_expired, contention, options, page_store, patience, plain_store, timed,
};
use cachedyno_drivers::{SessionOptions, admin, open_page_store, open_session_store};
use model::{Connections, Endpoint, ErrorClass, Layout};
use workloads::store::Found;

#[test]
fn a_plain_store_on_sqlite() {
    let place = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::Sqlite { directory: place.path().into() };
    for (connections, name) in [(Connections::Persistent, "kept"), (Connections::As2019, "as_2019")]
    {
        let mut admin = admin(&endpoint, Duration::from_secs(5)).unwrap();
        let directory = admin.prepare(Layout::Plain, name, 1_500).unwrap();
        let options = SessionOptions { connections, ..options(&directory) };
        admin.verify(Layout::Plain, &options, "p_verify").unwrap();
        let mut store = open_session_store(&endpoint, &options).unwrap();
        plain_store(store.as_mut());
        assert_eq!(store.replace("missing", b"x").unwrap(), Found::No);
        let e = store.create("1_0", b"again").unwrap_err();
        assert_eq!((e.class, e.fatal), (ErrorClass::Reply, false), "{e}");
        assert!(e.message.contains("UNIQUE constraint"), "{e}");
        drop(store);
        admin.clean(Layout::Plain, "", &mut patience()).unwrap();
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_page_on_sqlite_locks_all_sessions() {
    let place = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::Sqlite { directory: place.path().into() };
    let mut admin = admin(&endpoint, Duration::from_secs(5)).unwrap();
    let directory = admin.prepare(Layout::Page, "run", 1_500).unwrap();
    let options = SessionOptions { timeout: Duration::from_millis(1_500), ..options(&directory) };
    admin.verify(Layout::Page, &options, "p_verify").unwrap();
    let mut first = open_page_store(&endpoint, &options).unwrap();
    let mut second = open_page_store(&endpoint, &options).unwrap();
    page_store(first.as_mut());
    contention(first.as_mut(), second.as_mut(), "both");
    let mut value = Vec::new();
    first.open("held", &mut value).unwrap();
    let (result, took) = timed(|| second.open("another", &mut value));
    let e = result.unwrap_err();
    assert_eq!((e.class, e.fatal), (ErrorClass::Lock, false), "{e}");
    assert!(took > Duration::from_secs(1) && took < Duration::from_secs(4), "{took:?}");
    first.close(b"x").unwrap();
    assert_eq!(second.open("held", &mut value).unwrap().found, Found::Yes);
    // Without a close, the next open releases the session and its lock.
    second.open("other", &mut value).unwrap();
    drop(second);
    first.open("held", &mut value).unwrap();
    assert_eq!(value, b"x");
    first.close(b"").unwrap();
    collects_expired(first.as_mut(), None);
    drop(first);
    admin.clean(Layout::Page, "", &mut patience()).unwrap();
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn only_the_created_database_is_used_and_removed() {
    let place = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::Sqlite { directory: place.path().into() };
    std::fs::create_dir(place.path().join("theirs")).unwrap();
    std::fs::write(place.path().join("theirs/sessions.sqlite"), "theirs").unwrap();
    let mut admin = admin(&endpoint, Duration::from_secs(5)).unwrap();
    let facts = admin.facts().unwrap();
    assert!(facts.version.starts_with("SQLite 3."), "{}", facts.version);
    for pair in [("journal_mode", "wal"), ("synchronous", "full")] {
        let is_reported =
            |(name, value): &(String, String)| (name.as_str(), value.as_str()) == pair;
        assert!(facts.configuration.iter().any(is_reported), "{pair:?}");
    }
    let e = admin.prepare(Layout::Page, "theirs", 1_500).unwrap_err();
    assert_eq!(e.class, ErrorClass::NotOurs);
    // A link in the run's directory is not followed.
    let directory = admin.prepare(Layout::Page, "run", 1_500).unwrap();
    std::fs::remove_file(directory.join("sessions.sqlite")).unwrap();
    let theirs = place.path().join("theirs/sessions.sqlite");
    std::os::unix::fs::symlink(&theirs, directory.join("sessions.sqlite")).unwrap();
    let e = open_page_store(&endpoint, &options(&directory)).err().unwrap();
    assert_eq!(e.class, ErrorClass::Denied, "{e}");
    admin.clean(Layout::Page, "", &mut patience()).unwrap();
    assert_eq!(std::fs::read_to_string(theirs).unwrap(), "theirs");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
}
