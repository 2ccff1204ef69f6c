use super::*;
use crate::reference::scan::{self, Found, Parts};

/// A store and one connection to it.
#[derive(Default)]
struct Session {
    store: Store,
    resp3: bool,
}

impl Session {
    /// The replies to the requests in `input`; the first value of each is corrupted.
    #[track_caller]
    fn corrupted(&mut self, input: &str, corruption: Option<Corruption>) -> String {
        let (mut bytes, mut parts, mut said) = (input.as_bytes(), Parts::default(), String::new());
        let protocol = scan::protocol(bytes).unwrap();
        while !bytes.is_empty() {
            let found = scan::request(protocol, bytes, &mut parts).unwrap();
            let Found::Complete { used } = found else { panic!("{found:?} of {input:?}") };
            let request = Request { protocol, bytes, parts: &parts };
            let reply = self.store.answer(request, &mut self.resp3, corruption);
            said += std::str::from_utf8(&reply.bytes).unwrap();
            bytes = &bytes[used..];
        }
        said
    }

    #[track_caller]
    fn assert_reply(&mut self, input: &str, expected: &str) {
        assert_eq!(self.corrupted(input, None), expected, "{input}");
    }
}

#[test]
fn redis_commands_behave_as_in_redis() {
    let mut session = Session::default();
    for (input, expected) in [
        ("PING\r\nPING hello\r\n", "+PONG\r\n$5\r\nhello\r\n"),
        ("GET a\r\nSET a 1\r\nGET a\r\n", "$-1\r\n+OK\r\n$1\r\n1\r\n"),
        ("SET a 2 NX\r\nSET b 2 XX\r\nSET a 3 XX PX 5\r\n", "$-1\r\n$-1\r\n+OK\r\n"),
        ("SETNX a 9\r\nSETNX c 9\r\n", ":0\r\n:1\r\n"),
        ("MGET a b c\r\n", "*3\r\n$1\r\n3\r\n$-1\r\n$1\r\n9\r\n"),
        ("EXISTS a b c\r\nDEL a b\r\nEXISTS a\r\n", ":2\r\n:1\r\n:0\r\n"),
        ("SETEX s 60 v\r\nTTL s\r\nTTL a\r\nEXPIRE s 1\r\n", "+OK\r\n:-1\r\n:-2\r\n:1\r\n"),
        ("GETSET s w\r\nGETDEL s\r\nGET s\r\n", "$1\r\nv\r\n$1\r\nw\r\n$-1\r\n"),
        ("INCR n\r\nINCRBY n 9\r\nDECR n\r\nDECRBY n 2\r\n", ":1\r\n:10\r\n:9\r\n:7\r\n"),
        ("SET n x\r\nINCR n\r\n", "+OK\r\n-ERR value is not an integer or out of range\r\n"),
        ("STRLEN n\r\nSTRLEN none\r\n", ":1\r\n:0\r\n"),
        ("MSET p:1 x p:2 y q:1 z\r\nDBSIZE\r\n", "+OK\r\n:5\r\n"),
        ("SCAN 0 MATCH p:* COUNT 9\r\n", "*2\r\n$1\r\n0\r\n*2\r\n$3\r\np:1\r\n$3\r\np:2\r\n"),
        ("FLUSHDB\r\nDBSIZE\r\n", "+OK\r\n:0\r\n"),
        ("GET\r\n", "-ERR wrong number of arguments\r\n"),
        ("LPUSH a b\r\n", "-ERR unknown command 'lpush'\r\n"),
        ("HELLO 4\r\n", "-NOPROTO unsupported protocol version\r\n"),
    ] {
        session.assert_reply(input, expected);
    }
    let hello = session.corrupted("HELLO 3\r\nGET none\r\nRESET\r\nGET none\r\n", None);
    assert!(hello.starts_with("%7\r\n$6\r\nserver\r\n"), "{hello}");
    assert!(hello.ends_with("*0\r\n_\r\n+RESET\r\n$-1\r\n"), "{hello}");
}

#[test]
fn patterns_match_whole_keys() {
    use super::resp::matches;
    for (pattern, yes, no) in [
        ("*", "", "\0"),
        ("a*", "abc", "ba"),
        ("a?c", "abc", "ac"),
        ("a\\*", "a*", "ab"),
        ("*b*d", "abcd", "abc"),
    ] {
        assert!(matches(pattern.as_bytes(), yes.as_bytes()), "{pattern} {yes}");
        assert!(pattern == "*" || !matches(pattern.as_bytes(), no.as_bytes()), "{pattern} {no}");
    }
}

#[test]
fn memcached_commands_behave_as_in_memcached() {
    let mut session = Session::default();
    for (input, expected) in [
        (
            "get a\r\nset a 5 0 2\r\nhi\r\nget a b\r\n",
            "END\r\nSTORED\r\nVALUE a 5 2\r\nhi\r\nEND\r\n",
        ),
        ("add a 0 0 1\r\nx\r\nreplace b 0 0 1\r\nx\r\n", "NOT_STORED\r\nNOT_STORED\r\n"),
        ("append a 5 0 1\r\n!\r\nprepend a 5 0 1\r\n>\r\n", "STORED\r\nSTORED\r\n"),
        ("gets a\r\n", "VALUE a 5 4 3\r\n>hi!\r\nEND\r\n"),
        ("cas a 0 0 1 2\r\nx\r\ncas a 0 0 1 3\r\nx\r\n", "EXISTS\r\nSTORED\r\n"),
        ("cas none 0 0 1 2\r\nx\r\n", "NOT_FOUND\r\n"),
        (
            "set n 0 0 1\r\n5\r\nincr n 3\r\ndecr n 9\r\nincr a 1\r\nincr m 1\r\n",
            "STORED\r\n8\r\n0\r\nCLIENT_ERROR cannot increment or decrement non-numeric value\r\nNOT_FOUND\r\n",
        ),
        (
            "touch a 1\r\ndelete a\r\ndelete a\r\ntouch a 1\r\n",
            "TOUCHED\r\nDELETED\r\nNOT_FOUND\r\nNOT_FOUND\r\n",
        ),
        ("set q 0 0 1 noreply\r\n1\r\nmn\r\n", "MN\r\n"),
        ("ms m 2 F7 O1\r\nab\r\nmg m v f s k c O2\r\n", "HD O1\r\nVA 2 f7 s2 km c9 O2\r\nab\r\n"),
        ("mg m\r\nmg none\r\nmg none q\r\nmd m q\r\nmd m k\r\n", "HD\r\nEN\r\nNF km\r\n"),
        (
            "version\r\nflush_all\r\nstats\r\n",
            "VERSION 0.0.0-scripted\r\nOK\r\nSTAT version 0.0.0-scripted\r\nSTAT curr_items 0\r\nEND\r\n",
        ),
        ("verbosity 1\r\nwhat\r\n", "OK\r\nERROR\r\n"),
    ] {
        session.assert_reply(input, expected);
    }
}

#[test]
fn only_the_first_value_is_corrupted_and_its_length_is_correct() {
    let mut session = Session::default();
    session.assert_reply("MSET a abc b xyz\r\n", "+OK\r\n");
    session.store.set(b"e", b"", 0);
    let change = session.corrupted("MGET a b\r\n", Some(Corruption::Change));
    assert_eq!(change, "*2\r\n$3\r\nacc\r\n$3\r\nxyz\r\n");
    let short = session.corrupted("GET a\r\nGET e\r\nGET none\r\n", Some(Corruption::Shorten));
    assert_eq!(short, "$2\r\nab\r\n$0\r\n\r\n$-1\r\n");
    let text = session.corrupted("get a b\r\nmg a v s\r\n", Some(Corruption::Shorten));
    let expected = "VALUE a 0 2\r\nab\r\nVALUE b 0 3\r\nxyz\r\nEND\r\nVA 2 s2\r\nab\r\n";
    assert_eq!(text, expected);
    session.assert_reply("GET a\r\n", "$3\r\nabc\r\n");
}
