//! Application caches in files: their bytes, and files that are not records.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use super::common::{cleaning_modes, kept, patience, tagged_cache, tags};
use cachedyno_drivers::{CacheOptions, admin, open_tagged_cache};
use model::{Backend, Endpoint, ErrorClass, Layout};
use tempfile::TempDir;
use workloads::app_cache::{CleanMode, Record, TaggedCache};
use workloads::store::Found;

fn options(directory: &Path) -> CacheOptions {
    CacheOptions {
        endpoints: vec![Endpoint::Files { directory: directory.into() }],
        directory: directory.into(),
        timeout: Duration::from_secs(5),
        cm_settings: std::collections::BTreeMap::new(),
        magento: model::Magento::One,
    }
}

pub(crate) fn open_in(backend: Backend, directory: &Path) -> Box<dyn TaggedCache> {
    open_tagged_cache(backend, &options(directory)).unwrap()
}

pub(crate) fn opened(backend: Backend) -> (TempDir, Box<dyn TaggedCache>) {
    let directory = tempfile::tempdir().unwrap();
    let cache = open_in(backend, directory.path());
    (directory, cache)
}

/// Files by path, with times written as `TIME`.
fn tree(directory: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for dir in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        for file in fs::read_dir(dir.path()).unwrap().map(Result::unwrap) {
            let name = [dir.file_name(), file.file_name()].map(|n| n.into_string().unwrap());
            let mut text = String::from_utf8(fs::read(file.path()).unwrap()).unwrap();
            for time in ["mtime\";i:", "expire\";i:1"] {
                if let Some(at) = text.find(time) {
                    let at = at + time.find("i:").unwrap() + 2;
                    let end = at + text[at..].find(';').unwrap();
                    text.replace_range(at..end, "TIME");
                }
            }
            files.insert(name.join("/"), text);
        }
    }
    files
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn zend_files_keep_and_clean() {
    let (_directory, mut cache) = opened(Backend::ZendFile);
    tagged_cache(cache.as_mut());
    cache.clean(CleanMode::All, &[]).unwrap();
    cleaning_modes(cache.as_mut());
}

#[test]
fn cm_files_keep_and_clean() {
    let (_directory, mut cache) = opened(Backend::CmFile);
    tagged_cache(cache.as_mut());
    cache.clean(CleanMode::All, &[]).unwrap();
    cleaning_modes(cache.as_mut());
}

/// Files written by the class on PHP 8.2 after the same calls.
#[test]
fn zend_files_match_php() {
    let (directory, mut cache) = opened(Backend::ZendFile);
    cache.save(Record::new("ABC_1", b"hello world", &tags(&["T1", "T2"]), Some(7200))).unwrap();
    cache.save(Record::new("ABC_1", b"hello", &tags(&["T1", "T2"]), Some(7200))).unwrap();
    cache.save(Record::new("ABC_2", b"hello2", &[], None)).unwrap();
    let expected = [
        ("mage--0/mage---ABC_1", "hello"),
        ("mage--0/mage---ABC_2", "hello2"),
        (
            "mage--0/mage---internal-metadatas---ABC_1",
            "a:4:{s:4:\"hash\";i:907060870;s:5:\"mtime\";i:TIME;s:6:\"expire\";i:TIME;\
             s:4:\"tags\";a:2:{i:0;s:2:\"T1\";i:1;s:2:\"T2\";}}",
        ),
        (
            "mage--0/mage---internal-metadatas---ABC_2",
            "a:4:{s:4:\"hash\";i:507021502;s:5:\"mtime\";i:TIME;s:6:\"expire\";i:9999999999;\
             s:4:\"tags\";a:0:{}}",
        ),
    ];
    let expected = expected.map(|(path, text)| (path.to_string(), text.to_string()));
    assert_eq!(tree(directory.path()), BTreeMap::from(expected));
    assert_eq!(mode(&directory.path().join("mage--0")), 0o777);
    assert_eq!(mode(&directory.path().join("mage--0/mage---ABC_1")), 0o600);
}

/// Files written by the class on PHP 8.2 after the same calls.
#[test]
fn cm_files_match_php() {
    let (directory, mut cache) = opened(Backend::CmFile);
    cache.save(Record::new("ABC_1", b"hello", &tags(&["T1", "T2"]), Some(7200))).unwrap();
    cache.save(Record::new("ABC_1", b"hello", &tags(&["T1"]), Some(7200))).unwrap();
    cache.save(Record::new("ABC_2", b"hello2", &tags(&["T1", "T3"]), None)).unwrap();
    cache.clean(CleanMode::MatchingAnyTag, &tags(&["T3"])).unwrap();
    cache.save(Record::new("ABC_4", b"hello4", &tags(&["T1"]), None)).unwrap();
    let line = "a:4:{s:4:\"hash\";s:0:\"\";s:5:\"mtime\";i:TIME;s:6:\"expire\";i:";
    let expected = [
        ("cm--35/cm---ABC_1", format!("{line}TIME;s:4:\"tags\";s:2:\"T1\";}}\nhello")),
        ("cm--e7/cm---ABC_4", format!("{line}9999999999;s:4:\"tags\";s:2:\"T1\";}}\nhello4")),
        ("cm-tags/cm---T1", "ABC_1\nABC_1\nABC_2\nABC_4\n".into()),
        ("cm-tags/cm---T2", "ABC_1\n".into()),
        ("cm-tags/cm---T3", String::new()),
    ];
    let expected = expected.map(|(path, text)| (path.to_string(), text));
    assert_eq!(tree(directory.path()), BTreeMap::from(expected));
    cache.remove("ABC_1").unwrap();
    let tags = directory.path().join("cm-tags");
    assert_eq!(fs::read(tags.join("cm---T1")).unwrap(), b"ABC_2\nABC_4\n");
    assert_eq!(fs::read(tags.join("cm---T2")).unwrap(), b"ABC_1\n");
}

/// Files written by the class on PHP 8.2 with the options of Magento 2's factory, after the calls
/// that its layer makes for a clean of one tag.
#[test]
fn cm_files_under_magento_2_match_php() {
    let directory = tempfile::tempdir().unwrap();
    let options = CacheOptions { magento: model::Magento::Two, ..options(directory.path()) };
    let mut cache = open_tagged_cache(Backend::CmFile, &options).unwrap();
    for (id, value, own) in [
        ("e84_ABC_1", &b"hello"[..], &["e84_T1", "e84_T2", "e84_MAGE"][..]),
        ("e84_ABC_1", b"hello", &["e84_T1", "e84_MAGE"]),
        ("e84_ABC_2", b"hello2", &["e84_T1", "e84_T3", "e84_MAGE"]),
        ("e84_ABC_3", b"hello3", &["e84_MAGE"]),
    ] {
        cache.save(Record::new(id, value, &tags(own), None)).unwrap();
    }
    cache.clean(CleanMode::MatchingTag, &tags(&["e84_T3", "e84_MAGE"])).unwrap();
    let own = tags(&["e84_T1", "e84_MAGE"]);
    cache.save(Record::new("e84_ABC_4", b"hello4", &own, None)).unwrap();
    let line = "a:4:{s:4:\"hash\";s:0:\"\";s:5:\"mtime\";i:TIME;s:6:\"expire\";i:9999999999;\
                s:4:\"tags\";s:";
    let expected = [
        ("mage--0/mage---e84_ABC_3", format!("{line}8:\"e84_MAGE\";}}\nhello3")),
        ("mage--9/mage---e84_ABC_1", format!("{line}15:\"e84_T1,e84_MAGE\";}}\nhello")),
        ("mage--a/mage---e84_ABC_4", format!("{line}15:\"e84_T1,e84_MAGE\";}}\nhello4")),
        ("mage-tags/mage---e84_MAGE", "e84_ABC_1\ne84_ABC_3\ne84_ABC_4\n".into()),
        ("mage-tags/mage---e84_T1", "e84_ABC_1\ne84_ABC_1\ne84_ABC_2\ne84_ABC_4\n".into()),
        ("mage-tags/mage---e84_T2", "e84_ABC_1\n".into()),
        ("mage-tags/mage---e84_T3", "\n".into()),
    ];
    let expected = expected.map(|(path, text)| (path.to_string(), text));
    assert_eq!(tree(directory.path()), BTreeMap::from(expected));
}

/// A client with cached metadata considers another client's value damaged.
#[test]
fn clients_of_zend_files_disturb_each_other_as_in_php() {
    let (directory, mut first) = opened(Backend::ZendFile);
    let mut second = open_in(Backend::ZendFile, directory.path());
    first.save(Record::new("A", b"first", &[], None)).unwrap();
    second.save(Record::new("A", b"second", &[], None)).unwrap();
    assert_eq!(kept(first.as_mut(), &["A"]), [""; 0]);
    assert!(tree(directory.path()).is_empty());
    second.save(Record::new("A", b"second", &[], None)).unwrap();
    second.clean(CleanMode::All, &[]).unwrap();
    first.save(Record::new("A", b"first", &[], None)).unwrap();
    assert_eq!(kept(first.as_mut(), &["A"]), ["A"]);
}

#[test]
fn damaged_records_are_misses() {
    let (directory, mut cache) = opened(Backend::ZendFile);
    for id in ["A", "B", "C"] {
        cache.save(Record::new(id, b"value", &tags(&["T1"]), None)).unwrap();
    }
    let dir = fs::read_dir(directory.path()).unwrap().next().unwrap().unwrap().path();
    fs::write(dir.join("mage---A"), "another").unwrap();
    fs::write(dir.join("mage---internal-metadatas---B"), "a:4:{s:4:\"ha").unwrap();
    fs::remove_file(dir.join("mage---C")).unwrap();
    let mut other = open_in(Backend::ZendFile, directory.path());
    assert_eq!(kept(other.as_mut(), &["A", "B", "C"]), [""; 0]);
    // A wrong hash removes the record; unreadable metadata do not.
    let left: Vec<_> = tree(directory.path()).into_keys().collect();
    assert_eq!(left.len(), 2, "{left:?}");
    other.clean(CleanMode::Old, &[]).unwrap();
    assert!(tree(directory.path()).is_empty());

    let (directory, mut cache) = opened(Backend::CmFile);
    cache.save(Record::new("A", b"value", &tags(&["T1"]), None)).unwrap();
    let dir = directory.path().join("cm--29");
    fs::write(dir.join("cm---A"), "no metadata\nvalue").unwrap();
    assert_eq!(kept(cache.as_mut(), &["A"]), [""; 0]);
    assert_eq!(cache.remove("A").unwrap(), Found::No);
    cache.clean(CleanMode::Old, &[]).unwrap();
    assert!(!dir.join("cm---A").exists());
}

#[test]
fn links_and_directories_are_not_records() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    for (backend, dir, record) in
        [(Backend::ZendFile, "mage--0", "mage---A"), (Backend::CmFile, "cm--29", "cm---A")]
    {
        fs::write(&secret, "stays").unwrap();
        let (directory, mut cache) = opened(backend);
        cache.save(Record::new("A", b"value", &tags(&["T1"]), None)).unwrap();
        let dir = directory.path().join(dir);
        let record = dir.join(record);
        fs::remove_file(&record).unwrap();
        symlink(&secret, &record).unwrap();
        assert_eq!(kept(cache.as_mut(), &["A"]), [""; 0]);
        symlink(&secret, &record).unwrap_err();
        let e = cache.save(Record::new("A", b"value", &[], None)).unwrap_err();
        assert_eq!((e.class, e.fatal), (ErrorClass::NotOurs, false), "{e}");
        fs::remove_file(&record).unwrap();
        fs::create_dir(&record).unwrap();
        assert_eq!(kept(cache.as_mut(), &["A"]), [""; 0]);
        assert_eq!(
            cache.save(Record::new("A", b"value", &[], None)).unwrap_err().class,
            ErrorClass::NotOurs
        );
        for mode in [CleanMode::Old, CleanMode::All] {
            cache.clean(mode, &[]).unwrap();
        }
        assert!(record.exists());
        // A linked directory is not entered.
        fs::remove_dir_all(&dir).unwrap();
        symlink(outside.path(), &dir).unwrap();
        fs::write(outside.path().join("mage---A"), "stays").unwrap();
        fs::write(outside.path().join("cm---A"), "stays").unwrap();
        let mut cache = open_in(backend, directory.path());
        assert_eq!(kept(cache.as_mut(), &["A"]), [""; 0]);
        assert_eq!(
            cache.save(Record::new("A", b"value", &[], None)).unwrap_err().class,
            ErrorClass::NotOurs
        );
        cache.clean(CleanMode::All, &[]).unwrap();
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 3);
        assert_eq!(fs::read(&secret).unwrap(), b"stays");
    }
}

#[test]
fn odd_ids_and_tags_stay_in_the_directory() {
    for backend in [Backend::ZendFile, Backend::CmFile] {
        let (_directory, mut cache) = opened(backend);
        for id in ["", "..", "a/b", "a\0b"] {
            assert_eq!(
                cache.save(Record::new(id, b"", &[], None)).unwrap_err().class,
                ErrorClass::Other
            );
            assert!(cache.load(id, &mut Vec::new()).is_err() && cache.remove(id).is_err());
        }
        let odd = tags(&["T'\"\\ü", "T 2"]);
        cache.save(Record::new("A", b"a", &odd, None)).unwrap();
        let outside = cache.save(Record::new("B", b"b", &tags(&["../T"]), None));
        assert_eq!(outside.is_err(), backend == Backend::CmFile);
        cache.clean(CleanMode::MatchingAnyTag, &odd[1..]).unwrap();
        assert_eq!(kept(cache.as_mut(), &["A"]), [""; 0]);
    }
}

/// A clean of Zend's files reads every record, one of Cm's only those of the tag.
#[test]
fn effort_counts_files() {
    let cost = |backend, records: u32| {
        let (directory, mut cache) = opened(backend);
        for i in 0..records {
            let own = [format!("T{i}")];
            cache.save(Record::new(&format!("ABC_{i}"), b"value", &own, None)).unwrap();
        }
        let mut cache = open_in(backend, directory.path());
        cache.clean(CleanMode::MatchingAnyTag, &tags(&["T1"])).unwrap();
        cache.effort().files
    };
    assert!(cost(Backend::ZendFile, 300) - cost(Backend::ZendFile, 200) >= 300);
    for backend in [Backend::CmFile, Backend::SymfonyFile] {
        assert_eq!(cost(backend, 300), cost(backend, 200));
    }
}

#[test]
fn a_created_cache_is_removed_with_its_directories() {
    let parent = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::Files { directory: parent.path().into() };
    for backend in [Backend::ZendFile, Backend::CmFile, Backend::SymfonyFile] {
        let mut admin = admin(&endpoint, Duration::from_secs(5)).unwrap();
        let directory = admin.prepare(Layout::Plain, "run", 0).unwrap();
        let mut cache = open_in(backend, &directory);
        for i in 0..50 {
            cache.save(Record::new(&format!("ABC_{i}"), b"value", &tags(&["T1"]), None)).unwrap();
        }
        let dir = fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path();
        fs::create_dir(dir.join("foreign")).unwrap();
        let refused = admin.clean(Layout::Plain, "", &mut patience()).unwrap_err();
        assert_eq!(refused.class, ErrorClass::NotOurs, "{}", refused.message);
        fs::remove_dir(dir.join("foreign")).unwrap();
        admin.clean(Layout::Plain, "", &mut patience()).unwrap();
        assert!(!directory.exists());
    }
    assert!(parent.path().exists());
}
