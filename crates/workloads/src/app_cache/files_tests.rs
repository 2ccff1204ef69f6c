use super::*;
use crate::app_cache::memory::workload;
use model::AppCache;
use proptest::prelude::*;

/// Files written by the original (PHP 8.2, `init --keys 3 --tags 12 --min-tags 2 …`).
const DATA: &str = concat!(
    "3\r\n",
    r#"{"key":"cfcd208495d565ef66e7dff9f98764da","data":"TTJJNE9ERmtOR013WVRka1pUVmlZ","#,
    r#""tags":["TAG_04","TAG_05","TAG_08","TAG_12"],"expires":false}"#,
    "\r\n",
    r#"{"key":"c4ca4238a0b923820dcc509a6f75849b","data":"c6debdb92","#,
    r#""tags":["TAG_04","TAG_11"],"expires":4711}"#,
    "\r\n",
    r#"{"key":"c81e728d9d4c2f636f067f89cc14862c","data":"a\/b\"\\\u0001\u00e9\ud83d\ude00\n\t\b\f","#,
    r#""tags":[],"expires":false}"#,
    "\r\n",
);
const OPERATIONS: &str = concat!(
    r#"[["write","c4ca4238a0b923820dcc509a6f75849b",9,["TAG_04","TAG_11"]],"#,
    r#"["read","c81e728d9d4c2f636f067f89cc14862c"],["clean","TAG_12"],["clean","TAG_09"],"#,
    r#"["read","cfcd208495d565ef66e7dff9f98764da"]]"#,
);

/// Key of the record on line 3.
const FIRST: &str = "c4ca4238a0b923820dcc509a6f75849b";

fn read(data: &str, lists: &[&str]) -> Result<(DataSet, Lists), FileError> {
    let mut reader = FileReader::data("data.txt", &mut data.as_bytes())?;
    for (client, list) in (0..).zip(lists) {
        reader.operations(&operations_file(client), &mut list.as_bytes())?;
    }
    Ok(reader.finish(1))
}

fn written(data: &DataSet, lists: &Lists, clients: u32, count: u64) -> (String, Vec<String>) {
    let mut records = Vec::new();
    write_data(&mut records, data).unwrap();
    let list = |client| {
        let mut list = Vec::new();
        write_operations(&mut list, data, lists, client, count).unwrap();
        String::from_utf8(list).unwrap()
    };
    (String::from_utf8(records).unwrap(), (0..clients).map(list).collect())
}

#[test]
fn the_originals_files_are_read_and_written_byte_by_byte() {
    let (data, lists) = read(DATA, &[OPERATIONS, OPERATIONS]).unwrap();
    assert_eq!((data.keys(), data.tags()), (3, 6));
    assert_eq!((data.expires_s(0), data.expires_s(1), data.bytes(1)), (None, Some(4711), 9));
    let mut value = Vec::new();
    data.value_into(&mut value, 2, 0);
    assert_eq!(value, "a/b\"\\\u{1}é😀\n\t\u{8}\u{c}".as_bytes());
    let expected = [
        Operation::Write(1),
        Operation::Read(2),
        Operation::Clean(3),
        Operation::Clean(5),
        Operation::Read(0),
    ];
    let operation = |n| lists.operation(&data, 1, n).unwrap();
    assert_eq!((0..5).map(operation).collect::<Vec<_>>(), expected);
    let (records, again) = written(&data, &lists, 2, 100);
    assert_eq!(records, DATA);
    assert_eq!(again, [OPERATIONS, OPERATIONS]);
    // A later version has the record's length.
    data.value_into(&mut value, 2, 9);
    assert_eq!(value.len(), data.bytes(2));
}

#[test]
fn both_kinds_of_line_ends_are_accepted() {
    let (data, _) = read(&DATA.replace('\r', ""), &[]).unwrap();
    assert_eq!(written(&data, &Lists::Read(Vec::new()), 0, 0).0, DATA);
}

#[test]
fn a_seed_gives_the_same_files_for_ever() {
    let plan = AppCache { keys: 6, tags: 99, record_bytes: (1, 40), ..workload(&[&[]]) };
    let data = DataSet::drawn(&plan, 6);
    let lists = Lists::Drawn { seed: 6, write_chance: 2, clean_chance: 2 };
    let (records, texts) = written(&data, &lists, 2, 8);
    insta::assert_snapshot!(format!("{records}{}", texts.join("\n")).replace('\r', "<CR>"));
}

#[test]
fn faults_are_located() {
    let records = |edit: &dyn Fn(&str) -> String| read(&edit(DATA), &[]).unwrap_err().to_string();
    let lists = |text: &str| read(DATA, &[OPERATIONS, text]).unwrap_err().to_string();
    let again = |d: &str| d.replace(FIRST, "cfcd208495d565ef66e7dff9f98764da");
    let messages = [
        records(&|_| String::new()),
        records(&|d| d.replacen('3', "three", 1)),
        records(&|d| d.replacen('3', "4", 1)),
        records(&|d| d.replace("4711", "true")),
        records(&|d| d.replace("4711", "\"soon\"")),
        records(&|d| d.replace("\"tags\":[],", "")),
        records(&again),
        records(&|d| d.replacen("{\"key\"", "7 {\"key\"", 1)),
        records(&|_| "1\r\n7\r\n".into()),
        lists(""),
        lists("[[\"read\",\r\n oops]]"),
        lists("[]"),
        lists("[[\"clean\",\"TAG_01\"],[\"wipe\",\"TAG_01\"]]"),
        lists("[[\"read\",\"nobody\"]]"),
        lists(&format!("[[\"write\",\"{FIRST}\",10,[\"TAG_04\",\"TAG_11\"]]]")),
        lists(&format!("[[\"write\",\"{FIRST}\",9,[\"TAG_04\"]]]")),
        lists("[\"read\"]"),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other("no disk"))
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let e = FileReader::data("a/data.txt", &mut io::BufReader::new(Broken)).unwrap_err();
    assert_eq!(e.to_string(), "`a/data.txt` cannot be read: no disk");
    let mut reader = FileReader::data("data.txt", &mut DATA.as_bytes()).unwrap();
    let e = reader.operations("ops-client_0.json", &mut Broken).unwrap_err();
    assert_eq!(e.to_string(), "`ops-client_0.json` cannot be read: no disk");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn written_files_can_be_read_back(
        seed: u64, keys in 1..40u64, tags in 1..30u64, as_original: bool, count in 1..50u64
    ) {
        let plan = AppCache { keys, tags, as_original, ..workload(&[&[]]) };
        let data = DataSet::drawn(&plan, seed);
        let lists = Lists::Drawn { seed, write_chance: 2, clean_chance: 3 };
        let (records, texts) = written(&data, &lists, 2, count);
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (again, read_lists) = read(&records, &texts).unwrap();
        let (records_again, texts_again) = written(&again, &read_lists, 2, count);
        prop_assert_eq!(records_again, records);
        prop_assert_eq!(texts_again, texts);
    }

    #[test]
    fn any_text_is_accepted_or_refused(text in "\\PC{0,80}") {
        let _ = read(&text, &[]);
        prop_assert!(read(DATA, &[&text]).is_err());
    }

    #[test]
    fn any_text_is_a_valid_json_string(plain in any::<String>()) {
        prop_assert_eq!(serde_json::from_str::<String>(&text(&plain)).unwrap(), plain);
    }
}
