//! Tests of the command line.

use super::*;

fn words(text: &str) -> Vec<OsString> {
    text.split_whitespace().map(OsString::from).collect()
}

#[track_caller]
fn options(text: &str) -> Options {
    match parse(&words(text)) {
        Ok(Invocation::Run(options)) => *options,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn refused(text: &str, parts: &[&str]) {
    let message = parse(&words(text)).unwrap_err().to_string();
    for part in parts {
        assert!(message.contains(part), "no `{part}` in {message}");
    }
}

#[test]
fn defaults_are_those_of_the_original() {
    let parsed = options("");
    let defaults = Options {
        load: LoadOptions { requests: Some(100_000), ..Options::default().load },
        ..Options::default()
    };
    assert_eq!(parsed, defaults);
    assert_eq!((parsed.server.host.as_str(), parsed.server.port), ("127.0.0.1", 6379));
    assert_eq!((parsed.load.clients, parsed.load.pipeline, parsed.data.bytes), (50, 1, 3));
    assert_eq!((parsed.keep_alive, parsed.digits, parsed.load.threads), (1, 3, 0));
}

#[test]
fn every_flag_is_parsed() {
    let parsed = options(
        "-h host -p 1 -s /sock -a pass --user me -c 2 -n 3 -d 4 --dbnum 5 -3 --threads 6 --cluster \
         --rfr all --enable-tracking -k 2 -r 7 --sequential -P 8 -q --precision 2 -l -I -x -t \
         SET,Get --seed -9 --tls --sni name --cacert ca --cacertdir dir --insecure --cert cert \
         --key key --tls-ciphers a --tls-ciphersuites b --warmup 10 --rps 11",
    );
    let tls = TlsFlags {
        is_on: true,
        name: Some("name".into()),
        ca_file: Some("ca".into()),
        ca_directory: Some("dir".into()),
        is_insecure: true,
        certificate: Some("cert".into()),
        key: Some("key".into()),
        ciphers: Some("a".into()),
        ciphersuites: Some("b".into()),
    };
    let server = Server {
        host: "host".into(),
        port: 1,
        socket: Some("/sock".into()),
        user: Some("me".into()),
        password: Some(Secret::new("pass")),
        database: 5,
        is_resp3: true,
        is_tracking: true,
        is_cluster: true,
        read_from: ReadFrom::All,
        tls,
    };
    let load = LoadOptions {
        clients: 2,
        requests: Some(3),
        duration_s: None,
        warmup_s: 10,
        pipeline: 8,
        threads: 6,
        rps: Some(11),
        seed: Some((-9_i64).cast_unsigned()),
    };
    let data = Data {
        bytes: 4,
        bytes_given: true,
        keyspace: Some(7),
        is_sequential: true,
        tests: Some(vec!["set".into(), "get".into()]),
        command: Vec::new(),
        ends_in_stdin: true,
    };
    let expected = Options {
        fleet: Options::default().fleet,
        server,
        load,
        data,
        keep_alive: 2,
        style: Style::Quiet,
        digits: 2,
        loops: true,
        is_idle: true,
        warnings: Vec::new(),
    };
    assert_eq!(parsed, expected);
}

#[test]
fn the_first_argument_without_a_dash_starts_a_command() {
    let command = |text| options(text).data.command;
    let expected: Vec<Vec<u8>> = ["get", "-n", "5"].map(|w| w.as_bytes().to_vec()).into();
    assert_eq!(command("-n 10 get -n 5"), expected);
    assert_eq!(command("-n 10 -- get -n 5"), expected);
    assert_eq!(command("-n 10 -- -n"), [b"-n".to_vec()]);
    let bytes = OsString::from_vec(vec![0xff, b'x']);
    let Ok(Invocation::Run(parsed)) = parse(&["set".into(), bytes]) else { panic!() };
    assert_eq!(parsed.data.command[1], [0xff, b'x']);
}

#[test]
fn help_and_version_stop_parsing() {
    assert_eq!(parse(&words("-n 5 --help --nonsense")), Ok(Invocation::Help));
    assert_eq!(parse(&words("-v")), Ok(Invocation::Version));
    assert_eq!(parse(&words("--version")), Ok(Invocation::Version));
    assert!(parse(&words("--nonsense --help")).is_err());
}

#[test]
fn values_out_of_range_are_clamped() {
    assert_eq!(options("-c 0").load.clients, 1);
    assert_eq!(options("-c 0").warnings, ["-c below 1: one client is used"]);
    assert_eq!(options("-d -1").data.bytes, 1);
    assert_eq!(options("-d 99999999999").data.bytes, 1 << 30);
    assert_eq!(options("-P 0").load.pipeline, 1);
    assert_eq!(options("-r -5").data.keyspace, Some(1));
    assert_eq!(options("--threads -3").load.threads, 0);
    assert_eq!(options("--threads 501").load.threads, 500);
    assert_eq!((options("--precision 0").digits, options("--precision 9").digits), (3, 4));
    assert_eq!(options("--rps 0").load.rps, None);
    assert_eq!(options("-q --csv").style, Style::Csv);
    assert_eq!(options("--csv -q").style, Style::Csv);
}

#[test]
fn the_last_of_uri_and_flags_wins() {
    let parsed = options("-h first -u rediss://me:pw@second:7/8 -p 9");
    let server = parsed.server;
    assert_eq!((server.host.as_str(), server.port, server.database), ("second", 9, 8));
    assert_eq!((server.user.as_deref(), server.password), (Some("me"), Some(Secret::new("pw"))));
    assert!(server.tls.is_on);
    assert_eq!(options("-u redis:// -p 9").server.host, "127.0.0.1");
}

#[test]
fn errors_name_the_invalid_option() {
    refused("--foo", &["invalid option `--foo`", "--help"]);
    refused("-n", &["argument of option `-n` is missing"]);
    refused("-q -u", &["argument of option `-u` is missing"]);
    refused("-n 100k", &["`100k` of option `-n`", "a whole number"]);
    refused("-n 0", &["`0` of option `-n`", "at least 1"]);
    refused("-p 65536", &["`65536`", "0 to 65535"]);
    refused("-r 1000000000001", &["at most 1000000000000"]);
    refused("--rfr maybe", &["`maybe`", "no, yes or all"]);
    refused("-n 5 --duration 6", &["both limit a test"]);
    refused("--duration 6 -n 5", &["both limit a test"]);
    refused("--fuzz", &["`--fuzz` of valkey-benchmark is not supported"]);
    refused("--rdma", &["not supported"]);
}

#[test]
fn flags_without_effect_cause_a_warning() {
    assert_eq!(options("-e").warnings.len(), 1);
    assert_eq!(options("-t set get x").warnings, ["-t has no effect: a command was given"]);
    for flags in ["--sequential", "--rfr all", "--cacert x", "--insecure"] {
        let warnings = options(flags).warnings;
        assert!(warnings.len() == 1 && warnings[0].contains("no effect without"), "{warnings:?}");
    }
    assert_eq!(options("-t set").warnings, [""; 0]);
}

#[test]
fn the_password_is_removed_from_the_command_line() {
    let left = |text| {
        without_password(&words(text)).map(|(rest, secret)| {
            let rest: Vec<_> = rest.iter().map(|word| word.to_string_lossy()).collect();
            (rest.join(" "), secret.reveal().to_string())
        })
    };
    let some = |rest: &str, secret: &str| Some((rest.to_string(), secret.to_string()));
    assert_eq!(left("-a hush -t set"), some("-t set", "hush"));
    assert_eq!(
        left("-q -u redis://me:hush@h/1 -n 5"),
        some("-q -u redis://h/1 --user me -n 5", "hush")
    );
    assert_eq!(left("-u redis://old@h -a new"), some("-u redis://h", "new"));
    // Arguments after the command belong to the command.
    assert_eq!(left("-a hush get -a"), some("get -a", "hush"));
    assert_eq!(left("-t -a -a hush"), some("-t -a", "hush"));
    for text in ["-t set", "-u redis://h", "set -a hush", "--help -a hush", "-a"] {
        assert_eq!(left(text), None, "{text}");
    }
}
