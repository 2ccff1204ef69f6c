//! TLS with a real redis-server and certificates created by openssl for the test.

#[cfg(test)]
mod tls {
    use std::fs;
    use std::net::TcpListener;
    use std::path::PathBuf;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use cachedyno_drivers::redis::{Control, Tree};
    use cachedyno_drivers::tls::{Check, Options, Version, client};
    use model::{Endpoint, ErrorClass, Failure, NetAddress, RedisOptions};
    use tempfile::TempDir;

    const TIMEOUT: Duration = Duration::from_secs(5);

    /// Authorities `ca` and `other`; a server certificate for localhost and 127.0.0.1, one from the
    /// same authority for `elsewhere.example`, and a client certificate.
    struct Certificates(TempDir);

    impl Certificates {
        fn new() -> Self {
            let made = Self(tempfile::tempdir().unwrap());
            for name in ["ca", "other"] {
                let (key, cert) = (format!("{name}.key"), format!("{name}.pem"));
                let subject = format!("/CN={name}");
                made.openssl(&[
                    "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", &key,
                    "-out", &cert, "-subj", &subject,
                ]);
            }
            made.issue("server", "subjectAltName=DNS:localhost,IP:127.0.0.1");
            made.issue("elsewhere", "subjectAltName=DNS:elsewhere.example");
            made.issue("client", "extendedKeyUsage=clientAuth");
            made
        }

        fn openssl(&self, arguments: &[&str]) {
            let mut command = Command::new("openssl");
            let output = command.args(arguments).current_dir(self.0.path()).output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }

        fn issue(&self, name: &str, extension: &str) {
            let [key, request, cert] = ["key", "csr", "pem"].map(|end| format!("{name}.{end}"));
            let subject = format!("/CN={name}");
            self.openssl(&[
                "req", "-newkey", "rsa:2048", "-nodes", "-keyout", &key, "-out", &request, "-subj",
                &subject,
            ]);
            fs::write(self.0.path().join("ext"), extension).unwrap();
            self.openssl(&[
                "x509",
                "-req",
                "-in",
                &request,
                "-CA",
                "ca.pem",
                "-CAkey",
                "ca.key",
                "-CAcreateserial",
                "-days",
                "2",
                "-out",
                &cert,
                "-extfile",
                "ext",
            ]);
        }

        /// A self-signed certificate for localhost.
        fn self_sign(&self, name: &str, days: &str) -> Options {
            let [key, request, cert] = ["key", "csr", "pem"].map(|end| format!("{name}.{end}"));
            self.openssl(&[
                "req",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-keyout",
                &key,
                "-out",
                &request,
                "-subj",
                "/CN=itself",
            ]);
            let extensions = "subjectAltName=DNS:localhost\nbasicConstraints=CA:TRUE\n";
            fs::write(self.0.path().join("ext"), extensions).unwrap();
            self.openssl(&[
                "x509", "-req", "-in", &request, "-signkey", &key, "-days", days, "-out", &cert,
                "-extfile", "ext",
            ]);
            Options { ca_file: Some(self.path(&cert)), ..Options::default() }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        /// Trusts the authority that signed all certificates.
        fn trusting(&self) -> Options {
            Options { ca_file: Some(self.path("ca.pem")), ..Options::default() }
        }
    }

    /// A Redis server with TLS only; ends with the test.
    struct Server {
        child: Child,
        port: u16,
        _directory: TempDir,
    }

    impl Server {
        fn new(certificates: &Certificates, name: &str, more: &[&str]) -> Self {
            let port = rig::free_port(0).unwrap();
            let directory = tempfile::tempdir().unwrap();
            let child = Command::new("setpriv")
                .args(["--pdeathsig", "KILL", "redis-server", "--port", "0", "--save", ""])
                .args(["--tls-port", &port.to_string(), "--bind", "127.0.0.1", "--dir"])
                .arg(directory.path())
                .arg("--tls-cert-file")
                .arg(certificates.path(&format!("{name}.pem")))
                .arg("--tls-key-file")
                .arg(certificates.path(&format!("{name}.key")))
                .arg("--tls-ca-cert-file")
                .arg(certificates.path("ca.pem"))
                .args(more)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let mut server = Self { child, port, _directory: directory };
            let started = Instant::now();
            while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
                let gone = server.child.try_wait().unwrap();
                assert!(gone.is_none() && started.elapsed() < Duration::from_secs(30), "{gone:?}");
                std::thread::sleep(Duration::from_millis(10));
            }
            server
        }

        fn ask(&self, host: &str, options: &Options) -> Result<Tree, Failure> {
            let endpoint = Endpoint::Redis {
                address: NetAddress::Tcp(host.into(), self.port),
                user: None,
                password: None,
                database: 3,
                options: RedisOptions::default(),
            };
            let tls = client(options, host).unwrap();
            Control::connect(&endpoint, Some(&tls), TIMEOUT)?.ask(&[b"ECHO", b"heard"])
        }

        #[track_caller]
        fn hears(&self, host: &str, options: &Options) {
            assert_eq!(self.ask(host, options), Ok(Tree::Text(b"heard".into())));
        }

        #[track_caller]
        fn refused(&self, host: &str, options: &Options, words: &str) {
            let failure = self.ask(host, options).unwrap_err();
            assert!(failure.message.contains(words), "no `{words}` in {failure:?}");
        }
    }

    impl Drop for Server {
        fn drop(&mut self) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }

    fn installed() -> bool {
        let there = |program: &str| Command::new(program).arg("--version").output().is_ok();
        let all = there("redis-server") && Command::new("openssl").arg("version").output().is_ok();
        if !all {
            eprintln!("skipped: redis-server or openssl is not installed");
        }
        all
    }

    #[test]
    fn a_server_is_trusted_for_its_authority_and_its_name() {
        if !installed() {
            return;
        }
        let certificates = Certificates::new();
        let server = Server::new(&certificates, "server", &["--tls-auth-clients", "no"]);
        let trusting = certificates.trusting();
        server.hears("localhost", &trusting);
        server.hears("127.0.0.1", &trusting);
        let directory = Some(certificates.path(""));
        server.hears("localhost", &Options { ca_directory: directory, ..Options::default() });

        let other = Some(certificates.path("other.pem"));
        let other = Options { ca_file: other, ..Options::default() };
        server.refused("localhost", &other, "is not issued by a trusted authority");
        assert_eq!(server.ask("localhost", &other).unwrap_err().class, ErrorClass::Refused);
        // The system can lack authorities altogether.
        if client(&Options::default(), "localhost").is_ok() {
            server.refused(
                "localhost",
                &Options::default(),
                "is not issued by a trusted authority",
            );
        }
        server.hears("localhost", &Options { check: Check::Nothing, ..other.clone() });
        let authority = Options { check: Check::Authority, ..other };
        server.refused("localhost", &authority, "is not issued by a trusted authority");
    }

    #[test]
    fn another_name_is_rejected_unless_names_are_not_checked() {
        if !installed() {
            return;
        }
        let certificates = Certificates::new();
        let server = Server::new(&certificates, "elsewhere", &["--tls-auth-clients", "no"]);
        let trusting = certificates.trusting();
        server.refused("localhost", &trusting, "is for another name");
        let named = Options { name: Some("elsewhere.example".into()), ..trusting.clone() };
        server.hears("localhost", &named);
        server.hears("localhost", &Options { check: Check::Authority, ..trusting });
    }

    #[test]
    fn a_self_signed_certificate_is_trusted_if_listed() {
        if !installed() {
            return;
        }
        let certificates = Certificates::new();
        let own = certificates.self_sign("itself", "2");
        let server = Server::new(&certificates, "itself", &["--tls-auth-clients", "no"]);
        server.hears("localhost", &own);
        server.refused("127.0.0.1", &own, "is for another name");
        server.hears("127.0.0.1", &Options { check: Check::Authority, ..own });
        let namesake = certificates.self_sign("namesake", "2");
        assert!(server.ask("localhost", &namesake).is_err());
        server.refused("localhost", &certificates.trusting(), "not among the trusted ones");

        let past = certificates.self_sign("past", "-1");
        let server = Server::new(&certificates, "past", &["--tls-auth-clients", "no"]);
        server.refused("localhost", &past, "has expired");
    }

    #[test]
    fn a_client_presents_its_certificate() {
        if !installed() {
            return;
        }
        let certificates = Certificates::new();
        let server = Server::new(&certificates, "server", &["--tls-auth-clients", "yes"]);
        let trusting = certificates.trusting();
        server.refused("localhost", &trusting, "certificate");
        let own = Options {
            certificate: Some(certificates.path("client.pem")),
            key: Some(certificates.path("client.key")),
            ..trusting
        };
        server.hears("localhost", &own);
        let foreign = Options { key: Some(certificates.path("other.key")), ..own };
        let error = client(&foreign, "localhost").unwrap_err();
        assert!(error.contains("do not match"), "{error}");
    }

    #[test]
    fn requested_versions_and_ciphers_are_used() {
        if !installed() {
            return;
        }
        let certificates = Certificates::new();
        let only = |protocol: &str| {
            let more = ["--tls-auth-clients", "no", "--tls-protocols", protocol];
            Server::new(&certificates, "server", &more)
        };
        let (old, new) = (only("TLSv1.2"), only("TLSv1.3"));
        let trusting = certificates.trusting();
        let v12 = Options { versions: (Version::V12, Version::V12), ..trusting.clone() };
        let v13 = Options { versions: (Version::V13, Version::V13), ..trusting.clone() };
        old.hears("localhost", &v12);
        new.hears("localhost", &v13);
        old.refused("localhost", &v13, "TLS failed");
        new.refused("localhost", &v12, "TLS failed");

        let list = "AES256-SHA:ECDHE-RSA-CHACHA20-POLY1305";
        old.hears("localhost", &Options { ciphers: Some(list.into()), ..trusting.clone() });
        let for_others = Some("ECDHE-ECDSA-AES128-GCM-SHA256".into());
        let elliptic = Options { ciphers: for_others, ..v12 };
        old.refused("localhost", &elliptic, "no cipher suite in common");
        let list = Some("TLS_CHACHA20_POLY1305_SHA256".into());
        new.hears("localhost", &Options { ciphersuites: list, ..trusting });
    }

    #[test]
    fn a_server_without_tls_is_detected() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            std::io::Write::write_all(&mut stream, b"-ERR Protocol error\r\n").unwrap();
            // Wait until the client has read it: unread data can be lost when a socket closes.
            let _ = std::io::Read::read_to_end(&mut stream, &mut Vec::new());
        });
        let endpoint = Endpoint::Redis {
            address: NetAddress::Tcp("127.0.0.1".into(), port),
            user: None,
            password: None,
            database: 0,
            options: RedisOptions::default(),
        };
        let options = Options { check: Check::Nothing, ..Options::default() };
        let tls = client(&options, "127.0.0.1").unwrap();
        let Err(failure) = Control::connect(&endpoint, Some(&tls), TIMEOUT) else {
            panic!("it connected")
        };
        assert!(failure.message.contains("does not use TLS"), "{failure:?}");
        answering.join().unwrap();
    }

    #[test]
    fn unusable_files_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let empty = directory.path().join("empty");
        fs::write(&empty, "no certificate").unwrap();
        let missing = Some(directory.path().join("missing"));
        let error = |options: &Options| client(options, "localhost").unwrap_err();
        let nothing = Options { check: Check::Nothing, ..Options::default() };

        let message = error(&Options { ca_file: missing.clone(), ..Options::default() });
        assert!(
            message.contains("missing` is not a file of authorities: no such file"),
            "{message}"
        );
        let message = error(&Options { ca_file: Some(empty.clone()), ..Options::default() });
        assert!(message.contains("it contains none (expected PEM)"), "{message}");
        let own = directory.path().to_path_buf();
        let message = error(&Options { ca_directory: Some(own), ..Options::default() });
        assert!(message.contains("it contains none"), "{message}");
        let half = Options { certificate: missing.clone(), ..nothing.clone() };
        let belong = "a client's certificate needs its key and vice versa";
        assert_eq!(client(&half, "h").unwrap_err(), format!("{belong} (expected the key too)"));
        let half = Options { key: missing, ..nothing.clone() };
        let expected = format!("{belong} (expected the certificate too)");
        assert_eq!(client(&half, "h").unwrap_err(), expected);
        let unknown = Options { ciphersuites: Some("TLS_X".into()), ..nothing.clone() };
        assert!(error(&unknown).contains("`TLS_X` contains no known cipher suite"));
        let never = Options { versions: (Version::V13, Version::V12), ..nothing.clone() };
        let e = client(&never, "h").unwrap_err();
        assert!(e.starts_with("the range of TLS versions is empty"), "{e}");
        let e = client(&nothing, "a b").unwrap_err();
        assert!(e.starts_with("`a b` is not a server name"), "{e}");
    }
}
