//! Commands that are allowed on shared servers, and rejected ones.

use super::*;

fn keys_of(command: &str) -> Result<Vec<usize>, String> {
    checked(&arguments::split(command).unwrap())
}

#[test]
fn key_positions_are_found() {
    let cases: [(&str, &[usize]); 20] = [
        ("GET __key__", &[1]),
        ("gEt __key__", &[1]),
        ("'SET' \"__key__\" \"a value\"", &[1]),
        ("SET __key__:suffix __data__ EX 60", &[1]),
        ("SET __key__ order:1", &[1]),
        ("PING", &[]),
        ("MSET __key__ 1 __key__:2 2", &[1, 3]),
        ("DEL __key__ __key__:2", &[1, 2]),
        ("RENAME __key__ __key__:2", &[1, 2]),
        ("COPY __key__ __key__:2 REPLACE", &[1, 2]),
        ("BITOP AND __key__:d __key__", &[2, 3]),
        ("ZUNION 2 __key__ __key__:2 WEIGHTS 1 2", &[2, 3]),
        ("ZUNIONSTORE __key__:d 1 __key__", &[1, 3]),
        ("XREAD COUNT 2 STREAMS __key__ 0", &[4]),
        ("XREADGROUP GROUP g c STREAMS __key__ >", &[5]),
        ("XGROUP CREATE __key__ g $ MKSTREAM", &[2]),
        ("OBJECT encoding __key__", &[2]),
        ("SORT __key__ LIMIT 0 5 ALPHA", &[1]),
        ("SETRANGE __key__ 100 __data__", &[1]),
        ("LMPOP 1 __key__ LEFT", &[2]),
    ];
    for (command, expected) in cases {
        assert_eq!(keys_of(command).as_deref(), Ok(expected), "{command}");
    }
}

#[test]
fn foreign_keys_are_rejected_with_the_argument() {
    let cases = [
        ("DEL order:1", 1),
        ("del __key__ order:1", 2),
        ("UNLINK \"__key__\" 'order:1'", 2),
        ("DEL x__key__", 1),
        ("DEL {__key__}", 1),
        ("DEL __KEY__", 1),
        ("DEL __data__", 1),
        ("DEL \"\"", 1),
        ("DEL \"order:1\\r\\n__key__\"", 1),
        ("MSET __key__ 1 order:1 2", 3),
        ("MSET __key__ 1 order:1", 3),
        ("RENAME __key__ order:1", 2),
        ("RENAME order:1 __key__", 1),
        ("COPY __key__ __key__:2 DB 3", 3),
        ("SMOVE order:1 __key__ a", 1),
        ("LMOVE __key__ order:1 LEFT LEFT", 2),
        ("BITOP NOT order:1 __key__", 2),
        ("ZUNIONSTORE order:1 1 __key__", 1),
        ("ZUNIONSTORE __key__ 2 __key__ order:1", 4),
        ("ZUNION 3 __key__ __key__:2", 0),
        ("ZUNION 18446744073709551615 __key__", 0),
        ("ZUNION __data__ __key__", 0),
        ("SUNIONSTORE order:1 __key__", 1),
        ("GEOSEARCHSTORE order:1 __key__ FROMLONLAT 0 0 BYRADIUS 1 m", 1),
        ("GEORADIUS __key__ 0 0 1 m STORE order:1", 0),
        ("SORT __key__ by order:*", 2),
        ("SORT __key__ GET order:*", 2),
        ("SORT __key__ ALPHA STORE order:1", 3),
        ("XREAD STREAMS order:1 0", 2),
        ("XREAD STREAMS __key__ order:1 0 0", 3),
        ("XREAD BLOCK 0 STREAMS __key__ 0", 1),
        ("XREADGROUP GROUP streams __key__ STREAMS order:1 0", 4),
        ("XREADGROUP GROUP streams __key__ NOACK STREAMS order:1 0", 0),
        ("XGROUP DESTROY order:1 g", 2),
        ("OBJECT ENCODING order:1", 2),
        ("OBJECT", 1),
        ("MEMORY PURGE", 1),
        ("GET", 0),
        ("SETRANGE __key__ 536870911 x", 2),
        ("BITFIELD __key__ SET u8 #4294967295 1", 4),
    ];
    for (command, argument) in cases {
        match keys_of(command) {
            Err(e) => assert!(e.starts_with(&format!("argument {argument}, `")), "{command}: {e}"),
            other => panic!("{command}: {other:?}"),
        }
    }
}

#[test]
fn unlisted_commands_are_rejected() {
    let commands = [
        "EVAL \"return redis.call('FLUSHALL')\" 0",
        "EVAL x 1 __key__",
        "EVAL_RO x 1 __key__",
        "EVALSHA x 1 __key__",
        "FCALL f 1 __key__",
        "FCALL_RO f 1 __key__",
        "SCRIPT FLUSH",
        "FUNCTION FLUSH",
        "MULTI",
        "EXEC",
        "WATCH __key__",
        "SELECT 3",
        "MOVE __key__ 3",
        "SWAPDB 0 1",
        "flushall",
        "FlushDB",
        "KEYS __key__*",
        "SCAN 0",
        "RANDOMKEY",
        "DBSIZE",
        "CONFIG SET maxmemory 1",
        "CLIENT KILL TYPE normal",
        "MIGRATE h 1 __key__ 0 1",
        "RESTORE __key__ 0 x",
        "PUBLISH __key__ x",
        "SUBSCRIBE __key__",
        "SPUBLISH __key__ x",
        "BLPOP __key__ 0",
        "BZPOPMIN __key__ 0",
        "BLMOVE __key__ __key__ LEFT LEFT 0",
        "WAIT 1 0",
        "DEBUG OBJECT __key__",
        "SHUTDOWN",
        "SAVE",
        "REPLICAOF NO ONE",
        "CLUSTER RESET",
        "ACL SETUSER x",
        "MODULE LOAD /tmp/x.so",
        "MONITOR",
        "SYNC",
        "RESET",
        "QUIT",
        "HELLO 3",
        "LATENCY RESET",
        "SLOWLOG RESET",
        "JSON.SET __key__ $ 1",
        "FT.DROPINDEX __key__",
        "__key__ GET",
        "\"GET\\r\\nFLUSHALL\" __key__",
        "\" GET\" __key__",
    ];
    for command in commands {
        let refused = keys_of(command);
        let is_name = refused.as_ref().is_err_and(|e| e.starts_with("argument 0, `"));
        assert!(is_name, "{command}: {refused:?}");
    }
    assert_eq!(keys_of("  "), Err(EMPTY.into()));
}
