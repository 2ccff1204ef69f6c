use super::*;

fn settings(value_bytes: usize) -> NullSettings {
    NullSettings { value_bytes, ..NullSettings::default() }
}

/// The replies to one connection's input, all of which must be consumed.
#[track_caller]
fn replies_to(settings: &NullSettings, input: &str) -> String {
    let (mut out, mut connection_protocol) = (Vec::new(), ConnectionProtocol::default());
    let answers = Answers::new(settings);
    let batch =
        answers.all(&mut connection_protocol, input.as_bytes(), &mut Parts::default(), &mut out);
    assert_eq!((batch.used, batch.missing), (input.len(), 1), "{input:?}");
    String::from_utf8(out).unwrap()
}

/// The answer to one request of RESP.
#[track_caller]
fn resp(settings: &NullSettings, words: &str) -> String {
    let words: Vec<String> =
        words.split(' ').map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    replies_to(settings, &format!("*{}\r\n{}", words.len(), words.concat()))
}

#[test]
fn resp_replies_have_the_type_of_the_command() {
    let three = settings(3);
    for (words, answer) in [
        ("PING", "+PONG\r\n"),
        ("ping hello", "$5\r\nhello\r\n"),
        ("GET k", "$3\r\nxxx\r\n"),
        ("SET k v", "+OK\r\n"),
        ("SETEX k 9 v", "+OK\r\n"),
        ("MSET a 1 b 2", "+OK\r\n"),
        ("INCR k", ":1\r\n"),
        ("LPUSH k v", ":1\r\n"),
        ("HSET k f v", ":1\r\n"),
        ("DEL a b c", ":3\r\n"),
        ("EXISTS a b", ":2\r\n"),
        ("DBSIZE", ":0\r\n"),
        ("LPOP k", "$3\r\nxxx\r\n"),
        ("LPOP k 2", "*2\r\n$3\r\nxxx\r\n$3\r\nxxx\r\n"),
        ("SPOP k", "$3\r\nxxx\r\n"),
        ("ZPOPMIN k", "*2\r\n$3\r\nxxx\r\n$1\r\n1\r\n"),
        ("MGET a b", "*2\r\n$3\r\nxxx\r\n$3\r\nxxx\r\n"),
        ("HMGET k f", "*1\r\n$3\r\nxxx\r\n"),
        ("HGETALL k", "*2\r\n$1\r\nf\r\n$3\r\nxxx\r\n"),
        ("LRANGE k 1 2", "*2\r\n$3\r\nxxx\r\n$3\r\nxxx\r\n"),
        ("LRANGE k 0 -1", "*1\r\n$3\r\nxxx\r\n"),
        ("LRANGE k 5 2", "*0\r\n"),
        ("SCAN 0", "*2\r\n$1\r\n0\r\n*0\r\n"),
        ("CONFIG GET save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n"),
        ("CONFIG GET nothing", "*0\r\n"),
        ("CONFIG SET save x", "+OK\r\n"),
        ("COMMAND DOCS", "*0\r\n"),
        ("COMMAND COUNT", ":0\r\n"),
        ("CLIENT ID", ":1\r\n"),
        ("CLIENT SETNAME n", "+OK\r\n"),
        ("CLUSTER NODES", "-ERR This instance has cluster support disabled\r\n"),
        ("MULTI", "-ERR unknown command 'MULTI'\r\n"),
        ("a\nb", "-ERR unknown command 'a?b'\r\n"),
    ] {
        assert_eq!(resp(&three, words), answer, "{words}");
    }
    assert!(resp(&three, "INFO").contains("\r\nredis_version:0.0.0-null\r\n"));
    assert_eq!(resp(&settings(0), "GET k"), "$0\r\n\r\n");
    let longest = resp(&settings(1), "LRANGE k 0 999999999");
    assert!(longest.starts_with("*4096\r\n") && longest.len() == 7 + 4096 * 7, "{longest:.20}");
}

#[test]
fn every_key_is_missing_with_miss() {
    let miss = NullSettings { miss: true, ..settings(3) };
    for (words, answer) in [
        ("GET k", "$-1\r\n"),
        ("MGET a b", "*2\r\n$-1\r\n$-1\r\n"),
        ("LPOP k", "$-1\r\n"),
        ("LRANGE k 0 9", "*0\r\n"),
        ("HGETALL k", "*0\r\n"),
        ("ZPOPMIN k", "*0\r\n"),
        ("EXISTS a", ":0\r\n"),
        ("DEL a b", ":0\r\n"),
        ("SET k v", "+OK\r\n"),
    ] {
        assert_eq!(resp(&miss, words), answer, "{words}");
    }
    let text = "get a b\r\ndelete a\r\nincr a 1\r\ntouch a 1\r\nmg a v\r\nmg a v q\r\nmd a\r\n";
    let answers = "END\r\nNOT_FOUND\r\nNOT_FOUND\r\nNOT_FOUND\r\nEN\r\nNF\r\n";
    assert_eq!(replies_to(&miss, text), answers);
}

#[test]
fn hello_changes_the_protocol_of_its_connection_only() {
    let hello = |version: u8| {
        let input = format!("HELLO {version}\r\nHGETALL k\r\nRESET\r\nHGETALL k\r\n");
        replies_to(&settings(1), &input)
    };
    let three = hello(3);
    assert!(three.starts_with("%7\r\n$6\r\nserver\r\n"), "{three}");
    assert!(three.contains("$5\r\nproto\r\n:3\r\n"), "{three}");
    let ends = "%1\r\n$1\r\nf\r\n$1\r\nx\r\n+RESET\r\n*2\r\n$1\r\nf\r\n$1\r\nx\r\n";
    assert!(three.ends_with(ends), "{three}");
    let two = hello(2);
    assert!(two.starts_with("*14\r\n") && two.contains("$5\r\nproto\r\n:2\r\n"), "{two}");
    assert!(hello(4).starts_with("-NOPROTO "));
    let miss = NullSettings { miss: true, ..settings(1) };
    assert!(replies_to(&miss, "HELLO 3\r\nGET k\r\n").ends_with("*0\r\n_\r\n"));
}

#[test]
fn memcached_text_commands_are_answered() {
    let two = settings(2);
    let ask = |input: &str| replies_to(&two, input);
    assert_eq!(ask("get a b\r\n"), "VALUE a 0 2\r\nxx\r\nVALUE b 0 2\r\nxx\r\nEND\r\n");
    assert_eq!(ask("gets a\r\n"), "VALUE a 0 2 1\r\nxx\r\nEND\r\n");
    assert_eq!(ask("gat 60 a\r\n"), "VALUE a 0 2\r\nxx\r\nEND\r\n");
    assert_eq!(ask("set a 0 0 3\r\n\r\n!\r\n"), "STORED\r\n");
    assert_eq!(ask("set a 0 0 1 noreply\r\n1\r\nincr a 1\r\n"), "1\r\n");
    assert_eq!(ask("delete a\r\ntouch a 1\r\n"), "DELETED\r\nTOUCHED\r\n");
    assert_eq!(ask("version\r\nflush_all\r\n"), "VERSION 0.0.0-null\r\nOK\r\n");
    assert_eq!(ask("verbosity 1 noreply\r\nnonsense\r\n"), "ERROR\r\n");
    let stats = ask("stats\r\n");
    assert!(stats.starts_with("STAT version 0.0.0-null\r\n") && stats.ends_with("END\r\n"));
}

#[test]
fn meta_commands_return_the_requested_flags() {
    let ask = |input: &str| replies_to(&settings(2), input);
    assert_eq!(ask("mn\r\nmg a v\r\n"), "MN\r\nVA 2\r\nxx\r\n");
    assert_eq!(ask("mg a\r\n"), "HD\r\n");
    assert_eq!(ask("mg a s v f t k O12 c q\r\n"), "VA 2 s2 f0 t-1 ka O12 c1\r\nxx\r\n");
    assert_eq!(ask("ms a 2 T60 O1\r\nab\r\n"), "HD O1\r\n");
    assert_eq!(ask("ms a 2 q\r\nab\r\nmd a q\r\nma a q\r\nmn\r\n"), "MN\r\n");
    assert_eq!(ask("md a k\r\nma a v\r\nma a\r\n"), "HD ka\r\nVA 1\r\n1\r\nHD\r\n");
}

#[test]
fn remembered_values_are_returned() {
    let remember = NullSettings { remember: 10, ..settings(2) };
    let text = "SET a 1\r\nGET a\r\nGET b\r\nMSET b 22 c 3\r\nMGET b x c\r\nEXISTS a x c\r\n\
                DEL a x\r\nGET a\r\nSETEX a 60 v\r\nGET a\r\nFLUSHALL\r\nGET a\r\n";
    let answers = "+OK\r\n$1\r\n1\r\n$-1\r\n+OK\r\n*3\r\n$2\r\n22\r\n$-1\r\n$1\r\n3\r\n:2\r\n\
                   :1\r\n$-1\r\n+OK\r\n$1\r\nv\r\n+OK\r\n$-1\r\n";
    assert_eq!(replies_to(&remember, text), answers);
    let text = "set a 5 0 3\r\nabc\r\nget a b\r\nms b 1 F9\r\nz\r\nmg b f v\r\nmg c v\r\n\
                md b\r\nmd b\r\ngets a\r\ndelete a\r\nget a\r\n";
    let answers = "STORED\r\nVALUE a 5 3\r\nabc\r\nEND\r\nHD\r\nVA 1 f9\r\nz\r\nEN\r\nHD\r\nNF\r\n\
                   VALUE a 5 3 1\r\nabc\r\nEND\r\nDELETED\r\nEND\r\n";
    assert_eq!(replies_to(&remember, text), answers);
}

/// Answers in several turns, like a connection.
struct Turns {
    answers: Answers,
    connection_protocol: ConnectionProtocol,
}

impl Turns {
    fn next(&mut self, input: &[u8]) -> (Batch, Vec<u8>) {
        let mut out = Vec::new();
        let batch =
            self.answers.all(&mut self.connection_protocol, input, &mut Parts::default(), &mut out);
        (batch, out)
    }
}

#[test]
fn long_replies_take_several_turns() {
    let mut turns = Turns {
        answers: Answers::new(&settings(300 << 10)),
        connection_protocol: ConnectionProtocol::default(),
    };
    let get = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n";
    let input = get.repeat(10);
    let (first, out) = turns.next(&input);
    assert_eq!((first.requests, first.missing, first.used), (4, 0, 4 * get.len()));
    assert!(out.len() < OUT_BYTES_MAX + (300 << 10) + 20);
    let (second, _) = turns.next(&input[first.used..]);
    assert_eq!(second.requests, 4);
    let (third, _) = turns.next(&input[first.used + second.used..]);
    assert_eq!((third.requests, third.missing), (2, 1));
}

#[test]
fn a_connection_is_closed_after_the_reply_to_quit_or_a_malformed_request() {
    let turn = |input: &[u8]| {
        let mut turns = Turns {
            answers: Answers::new(&settings(1)),
            connection_protocol: ConnectionProtocol::default(),
        };
        let (batch, out) = turns.next(input);
        (batch.close, batch.requests, String::from_utf8(out).unwrap())
    };
    assert_eq!(turn(b"QUIT\r\nPING\r\n"), (true, 1, "+OK\r\n".into()));
    assert_eq!(turn(b"version\r\nquit\r\n"), (true, 2, "VERSION 0.0.0-null\r\n".into()));
    let (close, requests, text) = turn(b"PING\r\n*1\r\n:1\r\n");
    assert_eq!((close, requests), (true, 1));
    assert_eq!(text, "+PONG\r\n-ERR Protocol error: expected '$'\r\n");
    let (close, _, text) = turn(b"set a 0 0 x\r\n");
    assert!(close && text.starts_with("CLIENT_ERROR bad command line format: "), "{text}");
    assert!(!turn(b"PING\r\n*1\r\n").0);
}
