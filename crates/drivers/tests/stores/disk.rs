//! The disk itself, by direct I/O.

use std::path::Path;
use std::time::Duration;

use super::common::{options, patience};
use cachedyno_drivers::{SessionOptions, admin, open_entry_store, open_session_store};
use model::{Endpoint, ErrorClass, Layout};
use workloads::store::Found;

const BYTES: usize = 8_192;

#[test]
fn blocks_are_written_and_read_by_their_numbers() {
    // On the disk of the sources: `/tmp` may be a file system in memory, without direct I/O.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let endpoint = Endpoint::Disk { directory: place.path().into() };
    let mut admin = admin(&endpoint, Duration::from_secs(5)).unwrap();
    assert!(admin.facts().unwrap().version.starts_with("direct I/O on "));
    let directory = admin.prepare(Layout::Plain, "run", BYTES).unwrap();
    let options = SessionOptions { value_bytes: BYTES, ..options(&directory) };
    admin.verify(Layout::Plain, &options, "p_verify").unwrap();
    let mut store = open_entry_store(&endpoint, &options).unwrap();
    let mut value = Vec::new();
    assert_eq!(store.read("key:7", &mut value).unwrap(), Found::No);
    let [first, second] = [b'a', b'b'].map(|byte| vec![byte; BYTES]);
    store.create("key:rand:000000000007", &first).unwrap();
    store.replace("key:6", &second).unwrap();
    for (key, expected) in [("key:000000000007", &first), ("key:6", &second)] {
        assert_eq!(store.read(key, &mut value).unwrap(), Found::Yes);
        assert_eq!(&value, expected);
    }
    let length = std::fs::metadata(directory.join("blocks")).unwrap().len();
    assert_eq!(length, 4 << 20, "room for many blocks is made at once");
    assert_eq!(store.read("key:8", &mut value).unwrap(), Found::No);
    for (key, value) in [("key", &first[..]), ("key:1", b"short")] {
        let e = store.replace(key, value).unwrap_err();
        assert_eq!((e.class, e.fatal), (ErrorClass::Other, false), "{e}");
    }
    drop(store);
    admin.clean(Layout::Plain, "", &mut patience()).unwrap();
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn clients_make_room_for_their_blocks_without_loss() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let endpoint = Endpoint::Disk { directory: place.path().into() };
    let options = SessionOptions { value_bytes: BYTES, ..options(place.path()) };
    let open = || open_entry_store(&endpoint, &options).unwrap();
    // Two clients write every other block of a file that grows three times.
    std::thread::scope(|scope| {
        for client in 0..2_u64 {
            let mut store = open();
            scope.spawn(move || {
                for block in (client..1_400).step_by(2) {
                    store.create(&format!("key:{block}"), &[client as u8 + 1; BYTES]).unwrap();
                }
            });
        }
    });
    let (mut store, mut value) = (open(), Vec::new());
    for block in 0..1_400_u64 {
        assert_eq!(store.read(&format!("key:{block}"), &mut value).unwrap(), Found::Yes, "{block}");
        assert_eq!(value, [(block % 2) as u8 + 1; BYTES], "{block}");
    }
}

#[test]
fn a_directory_in_memory_is_no_disk() {
    let memory = Path::new("/dev/shm");
    let Ok(place) = tempfile::tempdir_in(memory) else {
        eprintln!("skipped: {} cannot be written to", memory.display());
        return;
    };
    let endpoint = Endpoint::Disk { directory: place.path().into() };
    let failure = admin(&endpoint, Duration::from_secs(5)).unwrap().facts().err().unwrap();
    assert!(failure.message.contains("is on tmpfs, in memory"), "{failure}");
}

#[test]
fn odd_values_and_sessions_are_refused() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let endpoint = Endpoint::Disk { directory: place.path().into() };
    for value_bytes in [0, 1_000] {
        let options = SessionOptions { value_bytes, ..options(place.path()) };
        let failure = open_entry_store(&endpoint, &options).err().unwrap();
        assert!(failure.message.contains("expected a multiple of 4096"), "{failure}");
    }
    let failure = open_session_store(&endpoint, &options(place.path())).err().unwrap();
    assert!(failure.message.contains("stores no sessions"), "{failure}");
}

#[test]
fn a_replaced_file_is_never_read_in_part() {
    let place = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::Files { directory: place.path().into() };
    let options = options(place.path());
    let mut writer = open_entry_store(&endpoint, &options).unwrap();
    let mut reader = open_entry_store(&endpoint, &options).unwrap();
    let values = [vec![b'a'; 1 << 20], vec![b'b'; 1 << 20]];
    writer.create("key", &values[0]).unwrap();
    let mut value = Vec::new();
    std::thread::scope(|scope| {
        let writing = scope.spawn(move || {
            for turn in 0..200 {
                let value = [b'a', b'b'][turn % 2];
                writer.replace("key", &vec![value; 1 << 20]).unwrap();
            }
        });
        while !writing.is_finished() {
            assert_eq!(reader.read("key", &mut value).unwrap(), Found::Yes);
            assert!(values.contains(&value), "{} bytes", value.len());
        }
    });
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
}
