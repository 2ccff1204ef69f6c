//! The layout of Symfony's `FilesystemTagAwareAdapter`, with the adapter itself as the oracle: both
//! sides read and clean what the other wrote, and leave the same files after the same calls.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use super::cache_files::{open_in, opened};
use super::caches::{Model, agrees, list};
use super::common::{installed, kept, text};
use model::{Backend, ErrorClass};
use tempfile::TempDir;
use workloads::app_cache::{CleanMode, Record, TaggedCache};
use workloads::store::Found;

/// What differs in bytes between symfony/cache 5.4, as packaged by Debian 12, and 6.3 to 7.2: the
/// hash, the prefix of tags, and tags as a list.
const SINCE_6_3: [(&str, &str, &str); 3] = [
    ("Traits/FilesystemCommonTrait", "hash('md5',", "hash('xxh128',"),
    ("Adapter/AbstractTagAwareAdapter", r#""\0tags\0""#, r#""\1tags\1""#),
    (
        "Adapter/AbstractTagAwareAdapter",
        "$byLifetime[$ttl][$getId($key)] = $value;",
        "$value['tags'] = array_keys($value['tags']); $byLifetime[$ttl][$getId($key)] = $value;",
    ),
];

/// Functions for the code that runs in PHP.
const FUNCTIONS: &str = r#"
function save($id, $value, $tags, $seconds = null) {
    global $cache;
    $item = $cache->getItem($id)->set($value)->tag($tags);
    if ($seconds !== null) $item->expiresAfter($seconds);
    if (!$cache->save($item)) exit("save of $id failed");
}
function show($id) {
    global $cache;
    $item = $cache->getItem($id);
    $tags = implode(',', $item->getMetadata()['tags'] ?? []);
    echo $item->isHit() ? "$id=" . $item->get() . "[$tags]\n" : "$id missing\n";
}
"#;

/// Symfony's adapter in PHP.
struct Adapter {
    /// Changed copies of its files.
    changed: TempDir,
    code: String,
}

impl Adapter {
    /// The adapter as packaged by Debian, brought to 6.3 if it is older; `None` if it is missing.
    fn find() -> Option<Self> {
        if !installed("php") {
            return None;
        }
        let code = "echo (@include 'Symfony/Component/Cache/autoload.php') \
                    ? dirname((new ReflectionClass('Symfony\\Component\\Cache\\CacheItem'))\
                      ->getFileName()) : '';";
        let found = text(&Command::new("php").args(["-r", code]).output().unwrap());
        if found.is_empty() {
            eprintln!("skipped: php-symfony-cache is not installed");
            return None;
        }
        let found = PathBuf::from(found);
        let read = |name: &str| fs::read_to_string(found.join(format!("{name}.php"))).unwrap();
        let is_old = read(SINCE_6_3[0].0).contains(SINCE_6_3[0].1);
        let changed = tempfile::tempdir().unwrap();
        let mut texts = BTreeMap::new();
        for (name, old, new) in SINCE_6_3.into_iter().filter(|_| is_old) {
            let text: &mut String = texts.entry(name).or_insert_with(|| read(name));
            assert_eq!(text.matches(old).count(), 1, "{name}: {old}");
            *text = text.replace(old, new);
        }
        let mut code = String::from("require 'Symfony/Component/Cache/autoload.php';");
        for name in ["Traits/FilesystemCommonTrait", "Adapter/AbstractTagAwareAdapter"] {
            let Some(text) = texts.get(name) else { continue };
            let path = changed.path().join(name.replace('/', "-")).with_extension("php");
            fs::write(&path, text).unwrap();
            code = format!("{code}require '{}';", path.display());
        }
        Some(Self { changed, code })
    }

    /// Runs code with the adapter on a directory and returns what it prints.
    fn run(&self, directory: &Path, code: &str) -> String {
        assert!(self.changed.path().exists());
        let start = format!(
            "$cache = new Symfony\\Component\\Cache\\Adapter\\FilesystemTagAwareAdapter('cachedyno', \
             0, '{}', new Symfony\\Component\\Cache\\Marshaller\\DefaultMarshaller(false));",
            directory.display()
        );
        let code = [self.code.as_str(), &start, FUNCTIONS, code].concat();
        text(&Command::new("php").args(["-d", "error_reporting=0", "-r", &code]).output().unwrap())
    }
}

/// Everything below a directory by path: modes, targets of links and contents. `TIME` is an expiry
/// that equals the file's time of modification, `NEVER` one of 0.
fn tree(directory: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_path_buf()];
    while let Some(next) = left.pop() {
        for entry in fs::read_dir(&next).unwrap().map(Result::unwrap) {
            let (path, status) = (entry.path(), entry.metadata().unwrap());
            let name = path.strip_prefix(directory).unwrap().to_str().unwrap().to_string();
            let shown = if status.is_symlink() {
                let target = fs::read_link(&path).unwrap();
                format!("-> {}", target.strip_prefix(directory).unwrap().display())
            } else if status.is_dir() {
                left.push(path);
                format!("{:o}", status.permissions().mode())
            } else {
                let content = fs::read(&path).unwrap();
                let end = content.iter().position(|byte| *byte == b'\n').unwrap();
                let expiry: i64 = String::from_utf8_lossy(&content[..end]).parse().unwrap();
                let time = match expiry {
                    0 => "NEVER",
                    _ if expiry == status.mtime() => "TIME",
                    _ => "WRONG",
                };
                let content = content[end..].escape_ascii();
                format!("{:o} {time}{content}", status.permissions().mode())
            };
            found.insert(name, shown);
        }
    }
    found
}

/// Calls in PHP and the same of ours.
type Step = (&'static str, fn(&mut dyn TaggedCache));

const STEPS: [Step; 12] = [
    ("save('ABC_1', 'hello', ['T1', 'T2'], 7200);", |cache| {
        cache.save(Record::new("ABC_1", b"hello", &list("T1 T2"), Some(7200))).unwrap();
    }),
    ("save('ABC_2', 'hello2', ['T1', '5', 'T1']);", |cache| {
        cache.save(Record::new("ABC_2", b"hello2", &list("T1 5 T1"), None)).unwrap();
    }),
    ("save('a b.\u{fc}~%', '', []);", |cache| {
        cache.save(Record::new("a b.\u{fc}~%", b"", &[], None)).unwrap();
    }),
    // A tag less, and one more.
    ("save('ABC_1', 's:1:\"x\";', ['T1', 'T3'], 100);", |cache| {
        cache.save(Record::new("ABC_1", b"s:1:\"x\";", &list("T1 T3"), Some(100))).unwrap();
    }),
    ("save('ABC_2', str_repeat('y', 20000), ['5', 'T4'], 100);", |cache| {
        cache.save(Record::new("ABC_2", &[b'y'; 20_000], &list("5 T4"), Some(100))).unwrap();
    }),
    ("save('ABC_3', 'z', ['T1', 'T4']);", |cache| {
        cache.save(Record::new("ABC_3", b"z", &list("T1 T4"), None)).unwrap();
    }),
    // Leaves a link of T3, and an item whose link of T4 stays.
    ("$cache->invalidateTags(['T1', 'T9']);", |cache| {
        cache.clean(CleanMode::MatchingAnyTag, &list("T1 T9")).unwrap();
    }),
    ("save('ABC_3', 'again', []); save('ABC_1', 'again', ['T3']);", |cache| {
        cache.save(Record::new("ABC_3", b"again", &[], None)).unwrap();
        cache.save(Record::new("ABC_1", b"again", &list("T3"), None)).unwrap();
    }),
    ("$cache->deleteItem('ABC_2'); $cache->deleteItem('missing');", |cache| {
        cache.remove("ABC_2").unwrap();
        cache.remove("missing").unwrap();
    }),
    ("save('ABC_4', 'v', ['T1'], 0); save('ABC_1', 'v', ['T1'], 0);", |cache| {
        cache.save(Record::new("ABC_4", b"v", &list("T1"), Some(0))).unwrap();
        cache.save(Record::new("ABC_1", b"v", &list("T1"), Some(0))).unwrap();
    }),
    // The items of a tag with more text than is read at once.
    (
        "save('big', 'v', array_map(fn ($n) => \"tag_number_$n\", range(1, 400)));
         $cache->deleteItem('big'); save('ABC_5', 'v', ['T5', 'T6']);",
        |cache| {
            let tags: Vec<_> = (1..=400).map(|n| format!("tag_number_{n}")).collect();
            cache.save(Record::new("big", b"v", &tags, None)).unwrap();
            cache.remove("big").unwrap();
            cache.save(Record::new("ABC_5", b"v", &list("T5 T6"), None)).unwrap();
        },
    ),
    ("$cache->clear(); save('ABC_6', 'v', ['T7']);", |cache| {
        cache.clean(CleanMode::All, &[]).unwrap();
        cache.save(Record::new("ABC_6", b"v", &list("T7"), None)).unwrap();
    }),
];

#[test]
fn symfony_leaves_the_same_files() {
    let Some(adapter) = Adapter::find() else { return };
    let theirs = tempfile::tempdir().unwrap();
    let (ours, mut cache) = opened(Backend::SymfonyFile);
    for (number, (php, call)) in STEPS.into_iter().enumerate() {
        assert_eq!(adapter.run(theirs.path(), php), "", "step {number}");
        call(cache.as_mut());
        let (ours, theirs) = (tree(ours.path()), tree(theirs.path()));
        assert!(!theirs.is_empty() && ours == theirs, "step {number}: {ours:#?} {theirs:#?}");
    }
}

#[test]
fn symfony_and_we_share_items() {
    let Some(adapter) = Adapter::find() else { return };
    let (directory, mut cache) = opened(Backend::SymfonyFile);
    let run = |code| adapter.run(directory.path(), code);
    let loaded = |cache: &mut dyn TaggedCache, id: &str| {
        let mut value = Vec::new();
        let found = cache.load(id, &mut value).unwrap();
        (found == Found::Yes).then(|| String::from_utf8(value).unwrap())
    };
    // What PHP writes.
    run("save('a', 'va', ['T1', '17'], 7200); save('b', '', []); save('ü %', 'vc', ['T1']);");
    assert_eq!(loaded(cache.as_mut(), "a").unwrap(), "va");
    assert_eq!(loaded(cache.as_mut(), "b").unwrap(), "");
    assert_eq!(loaded(cache.as_mut(), "ü %").unwrap(), "vc");
    cache.clean(CleanMode::MatchingAnyTag, &list("T1")).unwrap();
    assert_eq!(run("show('a'); show('b'); show('ü %');"), "a missing\nb=[]\nü % missing");
    // What we write.
    cache.save(Record::new("a", b"va", &list("T1 17"), Some(7200))).unwrap();
    cache.save(Record::new("b", b"vb", &list("T2"), None)).unwrap();
    cache.save(Record::new("ü %", b"s:1:\"x\";", &list("T1"), None)).unwrap();
    let shown = run("show('a'); show('b'); show('ü %');");
    assert_eq!(shown, "a=va[T1,17]\nb=vb[T2]\nü %=s:1:\"x\";[T1]");
    run("$cache->invalidateTags(['17']);");
    assert_eq!(kept(cache.as_mut(), &["a", "b", "ü %"]), ["b", "ü %"]);
    // Tags that the other side takes away.
    run("save('b', 'vb', ['T3']);");
    cache.clean(CleanMode::MatchingAnyTag, &list("T2")).unwrap();
    assert_eq!(run("show('b');"), "b=vb[T3]");
    cache.save(Record::new("b", b"vb", &list("T4"), None)).unwrap();
    run("$cache->invalidateTags(['T3']);");
    assert_eq!(kept(cache.as_mut(), &["b"]), ["b"]);
    run("$cache->deleteItem('b');");
    assert_eq!(loaded(cache.as_mut(), "b"), None);
    cache.remove("ü %").unwrap();
    assert_eq!(run("show('ü %');"), "ü % missing");
    run("save('c', 'v', ['T5']); $cache->clear();");
    assert_eq!(loaded(cache.as_mut(), "c"), None);
}

#[test]
fn records_match_the_layout() {
    let (directory, mut cache) = opened(Backend::SymfonyFile);
    let mut model = Model::default();
    agrees(cache.as_mut(), &mut model, &[CleanMode::MatchingAnyTag]);
    let there = |id: &&String| model.records.contains_key(*id);
    let links = model.sets.values().flatten();
    let stale = links.filter(|id| !there(id)).count() as u64;
    assert_eq!(cache.stale_members().unwrap(), Some(stale));
    cache.clean(CleanMode::Old, &[]).unwrap();
    assert_eq!(cache.stale_members().unwrap(), Some(0));
    cache.clean(CleanMode::All, &[]).unwrap();
    let left = tree(directory.path());
    assert!(left.values().all(|shown| shown.starts_with('4')), "{left:?}");
    assert!(left.keys().all(|path| path.len() <= "cachedyno/tags/A/B".len()), "{left:?}");
}

#[test]
fn expired_and_damaged_items_are_misses() {
    let (directory, mut cache) = opened(Backend::SymfonyFile);
    let mut save = |content: &dyn Fn(&str) -> String| {
        cache.save(Record::new("ABC_1", b"value", &list("T1"), None)).unwrap();
        let file = directory.path().join("cachedyno/O/Z/dbyUVJYcq34dlbt-bcXg");
        let item = fs::read(&file).unwrap();
        // Without the byte that is not UTF-8.
        let (head, rest) = item.split_at(item.iter().position(|byte| *byte == 0x9d).unwrap());
        let head = content(std::str::from_utf8(head).unwrap());
        fs::write(&file, [head.as_bytes(), rest].concat()).unwrap();
        let found = cache.load("ABC_1", &mut Vec::new()).unwrap();
        (found, file.exists())
    };
    assert_eq!(save(&|head| head.to_string()), (Found::Yes, true));
    assert_eq!(save(&|head| head.replace("0\n", "1000000000\n")), (Found::No, false));
    assert_eq!(save(&|head| head.replace("0\n", "3000000000\n")), (Found::Yes, true));
    assert_eq!(save(&|head| head.replace("ABC_1", "ABC_2")), (Found::No, true));
    assert_eq!(save(&|head| head.replace("ABC_1\n", "ABC_1\ns:1:\"x\";")), (Found::No, true));
    assert_eq!(save(&|_| String::new()), (Found::No, true));
    cache.save(Record::new("ABC_1", b"value", &list("T1"), None)).unwrap();
    cache.clean(CleanMode::MatchingAnyTag, &list("T1")).unwrap();
    assert_eq!(kept(cache.as_mut(), &["ABC_1"]), [""; 0]);
}

#[test]
fn names_and_modes_are_rejected_as_in_symfony() {
    let (_directory, mut cache) = opened(Backend::SymfonyFile);
    for name in ["", "a/b", "a:b", "{a}"] {
        assert!(cache.load(name, &mut Vec::new()).is_err() && cache.remove(name).is_err());
        assert!(cache.save(Record::new(name, b"", &[], None)).is_err());
        assert!(cache.save(Record::new("a", b"", &[name.into()], None)).is_err());
    }
    for id in ["..", "a\0b", "a\nb", "'\"*"] {
        cache.save(Record::new(id, b"v", &[id.into()], None)).unwrap();
        assert_eq!(kept(cache.as_mut(), &[id]), [id]);
        cache.clean(CleanMode::MatchingAnyTag, &[id.into()]).unwrap();
        assert_eq!(kept(cache.as_mut(), &[id]), [""; 0]);
    }
    for mode in [CleanMode::MatchingTag, CleanMode::NotMatchingTag] {
        let e = cache.clean(mode, &list("T")).unwrap_err();
        assert_eq!((e.class, e.fatal), (ErrorClass::Other, false), "{e}");
    }
}

/// Replaces a file or directory by a link to `target`.
fn relink(path: &Path, target: &Path) {
    if path.is_dir() && !path.is_symlink() {
        fs::remove_dir_all(path).unwrap();
    } else {
        fs::remove_file(path).unwrap();
    }
    symlink(target, path).unwrap();
}

#[test]
fn links_lead_nowhere_else() {
    let outside = tempfile::tempdir().unwrap();
    let stays = |name: &str| {
        let path = outside.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "0\nstays").unwrap();
        path
    };
    let secret = stays("secret");
    for name in ["Z/dbyUVJYcq34dlbt-bcXg", "9/L/x", "dbyUVJYcq34dlbt-bcXg"] {
        stays(name);
    }
    fs::create_dir_all(outside.path().join("O/Z")).unwrap();
    let before = tree(outside.path()).len();
    let item = "O/Z/dbyUVJYcq34dlbt-bcXg";
    let folder = "tags/9/L/ZilD-MBFMM5EyveeytRg";
    let link = format!("{folder}/{item}");
    for (path, target) in [
        (item, secret.as_path()),
        ("O/Z", outside.path()),
        ("O", outside.path()),
        (link.as_str(), &secret),
        (&format!("{folder}/O/Z"), outside.path()),
        (&format!("{folder}/O"), outside.path()),
        (folder, outside.path()),
        ("tags/9", outside.path()),
        ("tags", outside.path()),
    ] {
        for step in 0..6 {
            let (directory, mut cache) = opened(Backend::SymfonyFile);
            cache.save(Record::new("ABC_1", b"value", &list("T1"), None)).unwrap();
            let own = directory.path().join("cachedyno");
            relink(&own.join(path), target);
            let mut cache = open_in(Backend::SymfonyFile, directory.path());
            match step {
                0 => drop(cache.load("ABC_1", &mut Vec::new()).unwrap()),
                1 => drop(cache.save(Record::new("ABC_1", b"v", &list("T1 T2"), None))),
                2 => drop(cache.remove("ABC_1")),
                3 => cache.clean(CleanMode::MatchingAnyTag, &list("T1")).unwrap(),
                4 => cache.clean(CleanMode::Old, &[]).unwrap(),
                _ => cache.clean(CleanMode::All, &[]).unwrap(),
            }
            assert_eq!(tree(outside.path()).len(), before, "{path}, step {step}");
            assert_eq!(fs::read(&secret).unwrap(), b"0\nstays", "{path}, step {step}");
        }
    }
}

/// Clients create the same directories at the same time, as PHP's processes do.
#[test]
fn clients_share_new_tags() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    thread::scope(|scope| {
        for client in 0..4 {
            scope.spawn(move || {
                let mut cache = open_in(Backend::SymfonyFile, path);
                for n in 0..50 {
                    let tags = [format!("T{n}"), "ALL".into()];
                    let id = format!("id_{client}_{n}");
                    cache.save(Record::new(&id, b"v", &tags, None)).unwrap();
                }
            });
        }
    });
    let mut cache = open_in(Backend::SymfonyFile, path);
    assert_eq!(kept(cache.as_mut(), &["id_0_0", "id_3_49"]).len(), 2);
    cache.clean(CleanMode::MatchingAnyTag, &list("ALL")).unwrap();
    assert_eq!(kept(cache.as_mut(), &["id_0_0", "id_3_49"]), [""; 0]);
    assert_eq!(cache.stale_members().unwrap(), Some(200));
}
