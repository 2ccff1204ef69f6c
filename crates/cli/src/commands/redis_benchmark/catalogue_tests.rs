//! Tests of the requests of each test.

use super::super::existing::effect;
use super::*;

/// The request as text, with descriptions of the placeholders.
fn spelled(test: &Test, context: &RequestContext<'_>) -> String {
    let word = |segment: &Segment| match segment {
        Segment::Literal(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Segment::Key => "<tag>".into(),
        Segment::Digits { below } => format!("<{below}>"),
        Segment::Shared { stream, below } => format!("<{below} of {stream}>"),
        Segment::Counted { step, first, below } => format!("<{first}+{step}n<{below}>"),
        other => panic!("{other:?}"),
    };
    let segments = test.request(context).unwrap().0;
    let all: String = segments.iter().map(word).collect();
    all.replace("\r\n", " ")
}

fn data(tests: Option<&str>) -> Data {
    let tests = tests.map(|names| names.split(',').map(String::from).collect());
    Data { bytes: 3, tests, ..Data::default() }
}

fn context(data: &Data) -> RequestContext<'_> {
    RequestContext { data, is_cluster: false, seed: 100 }
}

fn spellings(data: &Data, is_cluster: bool) -> Vec<String> {
    let context = RequestContext { is_cluster, ..context(data) };
    tests(data).0.iter().map(|test| spelled(test, &context)).collect()
}

#[test]
fn tests_run_in_the_originals_order() {
    let data = data(None);
    let (all, warnings) = tests(&data);
    let titles: Vec<_> = all.iter().map(|test| test.title.as_str()).collect();
    let expected = [
        "PING_INLINE",
        "PING_MBULK",
        "SET",
        "GET",
        "INCR",
        "LPUSH",
        "RPUSH",
        "LPOP",
        "RPOP",
        "SADD",
        "HSET",
        "SPOP",
        "ZADD",
        "ZPOPMIN",
        "LPUSH (needed to benchmark LRANGE)",
        "LRANGE_100 (first 100 elements)",
        "LRANGE_300 (first 300 elements)",
        "LRANGE_500 (first 500 elements)",
        "LRANGE_600 (first 600 elements)",
        "MSET (10 keys)",
        "XADD",
    ];
    assert_eq!(titles, expected);
    assert_eq!(warnings, [""; 0]);
}

#[test]
fn names_select_tests() {
    let titles = |names| {
        let data = data(Some(names));
        let (selected, warnings) = tests(&data);
        (selected.into_iter().map(|test| test.title).collect::<Vec<_>>(), warnings)
    };
    assert_eq!(titles("get,set").0, ["SET", "GET"]);
    assert_eq!(titles("ping").0, ["PING_INLINE", "PING_MBULK"]);
    let lrange = ["LPUSH (needed to benchmark LRANGE)", "LRANGE_300 (first 300 elements)"];
    assert_eq!(titles("lrange_300").0, lrange);
    assert_eq!(titles("lrange").0.len(), 5);
    assert_eq!(titles("mget").0, [MGET]);
    let (selected, warnings) = titles("set,st,fcall,");
    assert_eq!(selected, ["SET"]);
    assert_eq!(
        warnings,
        [
            "-t: unknown test `st` is skipped",
            "test `fcall` of valkey-benchmark is not supported and is skipped",
        ]
    );
}

#[test]
fn without_a_keyspace_placeholders_are_sent_verbatim() {
    let data = data(Some("ping,set,zadd,mset"));
    let ten = " $16 key:__rand_int__ $3 VXK".repeat(10);
    let expected = [
        "PING ".to_string(),
        "*1 $4 PING ".into(),
        "*3 $3 SET $16 key:__rand_int__ $3 VXK ".into(),
        "*4 $4 ZADD $6 myzset $1 0 $20 element:__rand_int__ ".into(),
        format!("*21 $4 MSET{ten} "),
    ];
    assert_eq!(spellings(&data, false), expected);
}

#[test]
fn with_a_keyspace_numbers_are_random_or_sequential() {
    let mut data = Data { keyspace: Some(50), ..data(Some("get,zadd,mget")) };
    let drawn = spellings(&data, false);
    assert_eq!(drawn[0], "*2 $3 GET $16 key:<50> ");
    assert_eq!(drawn[1], "*4 $4 ZADD $6 myzset $12 <50> $20 element:<50> ");
    data.is_sequential = true;
    let counted = spellings(&data, false);
    assert_eq!(counted[0], "*2 $3 GET $16 key:<0+1n<50> ");
    assert_eq!(counted[1], "*4 $4 ZADD $6 myzset $12 <0+2n<50> $20 element:<1+2n<50> ");
    assert!(counted[2].ends_with("$16 key:<8+10n<50> $16 key:<9+10n<50> "), "{}", counted[2]);
}

#[test]
fn in_a_cluster_keys_have_a_tag() {
    let data = Data { keyspace: Some(50), ..data(Some("set,lpop,xadd")) };
    assert_eq!(
        spellings(&data, true),
        [
            "*3 $3 SET $24 key:{<tag>}:<50> $3 VXK ",
            "*2 $4 LPOP $14 mylist:{<tag>} ",
            "*5 $4 XADD $16 mystream:{<tag>} $1 * $7 myfield $3 VXK ",
        ]
    );
}

#[test]
fn replies_have_the_shape_of_their_command() {
    let data = data(None);
    let (all, _) = tests(&data);
    let of = |shape| {
        let of = |test: &&Test| test.request(&context(&data)).unwrap().1 == shape;
        let titles = all.iter().filter(of);
        titles.map(|test| test.title.as_str()).collect::<Vec<_>>()
    };
    assert_eq!(of(Shape::Value), ["GET", "LPOP", "RPOP", "SPOP"]);
    assert_eq!(of(Shape::Done), ["SET", "MSET (10 keys)"]);
    let reads = all.iter().filter(|test| effect(&test.command()).is_none()).count();
    assert_eq!(reads, 7, "both PINGs, GET and four LRANGE tests");
}

fn own(words: &[&str], keyspace: Option<u64>) -> Data {
    let command = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    Data { keyspace, command, ..data(None) }
}

#[test]
fn the_users_own_command() {
    // `redis-benchmark get a` calls its 20 bytes the payload.
    let data = own(&["get", "a"], None);
    let test = own_command(&data, None).unwrap();
    assert_eq!((test.title.as_str(), test.payload_bytes), ("get a", 20));
    assert_eq!((test.request(&context(&data)).unwrap().1, test.is_own), (Shape::Value, true));

    let data = own(&["set", "k:__rand_int__", "a b"], Some(9));
    let test = own_command(&data, None).unwrap();
    assert_eq!(spelled(&test, &context(&data)), "*3 $3 set $14 k:<9> $3 a b ");
    assert_eq!(test.payload_bytes, "*3..$3..set..$14..k:000000000000..$3..a b..".len());

    let data = own(&["set", "k{tag}"], None);
    let test = own_command(&data, Some(b"from\r\nstdin".to_vec())).unwrap();
    assert_eq!(spelled(&test, &context(&data)), "*3 $3 set $6 k{tag} $11 from stdin ");
    assert_eq!(test.title, "set k{tag}");

    let data = own(&["hset", "__rand_1st__", "x__rand_1st__", "__data__-"], Some(9));
    let test = own_command(&data, None).unwrap();
    let expected = "*4 $4 hset $12 <9 of 100> $13 x<9 of 100> $4 VXK- ";
    assert_eq!(spelled(&test, &context(&data)), expected);
    let bytes = expected.replace("<9 of 100>", "000000000000").replace(' ', "..").len();
    assert_eq!((test.payload_bytes, test.could_spread), (bytes, true));
    let several = own(&["a", ";", "b"], None);
    assert!(own_command(&several, None).unwrap_err().to_string().contains("`;`"));
}

#[test]
fn values_match_the_original() {
    assert_eq!(value(3), b"VXK");
    assert_eq!(value(1000).len(), 1000);
    assert!(value(1000).iter().all(|byte| (b'0'..b'0' + 64).contains(byte)));
}
