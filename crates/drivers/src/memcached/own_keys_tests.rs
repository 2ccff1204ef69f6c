//! Commands that are allowed on shared memcached servers, and rejected ones.

use super::*;
use crate::command::arguments;

fn checked(command: &str) -> Result<(), String> {
    check(&arguments::split(command).unwrap())
}

#[test]
fn commands_on_the_runs_key_are_allowed() {
    let commands = [
        "get __key__",
        "gets __key__",
        "gat 60 __key__",
        "set __key__ 0 60 __data__",
        "set __key__ 4294967295 -1 flush_all",
        "append __key__ 0 0 \"two\r\nlines\"",
        "delete __key__",
        "incr __key__ 18446744073709551615",
        "touch __key__ 60",
        "version",
        "mg __key__",
        "mg __key__ v t T60 Oabc",
        "ms __key__ T60 ME __data__",
        "md __key__ I",
        "ma __key__ N60 J10 D2 MD",
    ];
    for command in commands {
        assert_eq!(checked(command), Ok(()), "{command}");
    }
}

#[test]
fn other_commands_are_rejected_with_the_argument() {
    let cases = [
        ("get order:1", 1),
        ("get __key__ order:1", 2),
        ("get __key__:1", 1),
        ("get x__key__", 1),
        ("GET __key__", 0),
        ("gat 60 order:1", 2),
        ("gat 60 __key__ order:1", 3),
        ("delete order:1", 1),
        ("delete __key__ 0", 2),
        ("set order:1 0 0 __data__", 1),
        ("set __key__ x 0 flush_all", 2),
        ("set __key__ 4294967296 0 flush_all", 2),
        ("set __key__ +1 0 flush_all", 2),
        ("set __key__ 0 99999999999 flush_all", 3),
        ("set __key__ 0 never flush_all", 3),
        ("set __key__ 0 __data__ flush_all", 3),
        ("incr __key__ -1", 2),
        ("mg order:1 v", 1),
        ("mg __key__ b", 2),
        ("mg __key__ v v", 3),
        ("mg __key__ x9", 2),
        ("ms __key__ flush_all", 2),
        ("ms __key__ b __data__", 2),
        ("ms __key__ T0 \"__data__\r\nflush_all\"", 3),
        ("md __key__ b", 2),
        ("md __key__ q", 2),
        ("md b3JkZXI6MQ== b", 1),
        ("ma __key__ b", 2),
        ("mn", 0),
        ("me __key__", 0),
        ("flush_all", 0),
        ("flush_all 10", 0),
        ("cache_memlimit 1", 0),
        ("slabs reassign 1 2", 0),
        ("lru mode flat", 0),
        ("lru_crawler crawl all", 0),
        ("watch fetchers", 0),
        ("shutdown", 0),
        ("verbosity 9", 0),
        ("stats reset", 0),
        ("stats cachedump 1 1", 0),
        ("cas __key__ 0 0 __data__ 1", 0),
        ("quit", 0),
        ("\"get __key__\r\nflush_all\"", 0),
    ];
    for (command, word) in cases {
        match checked(command) {
            Err(e) => assert!(e.starts_with(&format!("argument {word}, `")), "{command}: {e}"),
            other => panic!("{command}: {other:?}"),
        }
    }
}
