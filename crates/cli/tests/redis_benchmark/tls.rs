//! TLS, with certificates created by openssl.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::common::{Program, Ran, Server, form, installed, tools};

/// A certificate authority `ca.pem`, and certificates signed by it, with their keys.
pub(crate) struct Certificates(TempDir);

impl Certificates {
    pub(crate) fn new(names: &[(&str, &str)]) -> Self {
        let made = Self(tempfile::tempdir().unwrap());
        made.openssl(&[
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", "ca.key",
            "-out", "ca.pem", "-subj", "/CN=ca",
        ]);
        for (name, extension) in names {
            let [key, request, cert] = ["key", "csr", "pem"].map(|end| format!("{name}.{end}"));
            let subject = format!("/CN={name}");
            made.openssl(&[
                "req", "-newkey", "rsa:2048", "-nodes", "-keyout", &key, "-out", &request, "-subj",
                &subject,
            ]);
            fs::write(made.0.path().join("ext"), extension).unwrap();
            made.openssl(&[
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
        made
    }

    fn openssl(&self, arguments: &[&str]) {
        let output =
            Command::new("openssl").args(arguments).current_dir(self.0.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    pub(crate) fn path(&self, name: &str) -> String {
        PathBuf::from(self.0.path()).join(name).display().to_string()
    }

    pub(crate) fn server(&self, name: &str, more: &[&str]) -> Server {
        let [cert, key] = ["pem", "key"].map(|end| self.path(&format!("{name}.{end}")));
        let ca = self.path("ca.pem");
        let own = ["--tls-cert-file", &cert, "--tls-key-file", &key, "--tls-ca-cert-file", &ca];
        Server::with(&[&own[..], more].concat())
    }
}

fn has_tls_tools() -> bool {
    tools() && installed(&["openssl"])
}

pub(crate) const LOCALHOST: (&str, &str) = ("server", "subjectAltName=DNS:localhost,IP:127.0.0.1");
const ELSEWHERE: (&str, &str) = ("elsewhere", "subjectAltName=DNS:elsewhere.example");
const CLIENT: (&str, &str) = ("client", "extendedKeyUsage=clientAuth");

#[test]
fn output_over_tls_has_the_originals_format() {
    if !has_tls_tools() {
        return;
    }
    let certificates = Certificates::new(&[LOCALHOST, CLIENT]);
    let server = certificates.server("server", &["--tls-auth-clients", "yes"]);
    let [ca, cert, key] =
        ["ca.pem", "client.pem", "client.key"].map(|name| certificates.path(name));
    let tls = ["--tls", "--cacert", &ca, "--cert", &cert, "--key", &key];
    for more in [&["-n", "2000", "-P", "8", "-d", "1000"][..], &["-n", "500", "-q"]] {
        let arguments = [&tls[..], more].concat();
        let arguments = [&arguments[..], &["-t", "set,get,lpush,lrange_100"]].concat();
        let original = server.run(Program::Original, &arguments).code(0);
        let own = server.run(Program::Ours, &arguments).code(0);
        assert_eq!(form(&own.stdout), form(&original.stdout));
    }
    assert_eq!(server.ask(&["STRLEN", "key:__rand_int__"]), "3");
    // Values of more than one TLS record, on which version 7 of the original hangs.
    let large = ["-n", "500", "-q", "-t", "set,get", "-d", "300000", "-P", "3"];
    server.ours(&[&tls[..], &large].concat()).code(0).without_stderr("found nothing");
    assert_eq!(server.ask(&["STRLEN", "key:__rand_int__"]), "300000");
    let without = server.ours(&["--tls", "--cacert", &ca, "-n", "10", "-t", "set"]).code(1);
    without.with_stderr("ertificate");
}

#[test]
fn certificates_are_verified() {
    if !has_tls_tools() {
        return;
    }
    let certificates = Certificates::new(&[LOCALHOST, ELSEWHERE]);
    let open = ["--tls-auth-clients", "no"];
    let server = certificates.server("server", &open);
    let arguments = ["-n", "50", "-q", "-t", "set", "--tls"];
    let with =
        |server: &Server, more: &[&str]| -> Ran { server.ours(&[&arguments[..], more].concat()) };
    let ca = certificates.path("ca.pem");
    let others = [("SSL_CERT_FILE", certificates.path("elsewhere.pem"))];
    let unknown = server.ours_with(&others, &arguments).code(1);
    let unknown = unknown.with_stderr("is not issued by a trusted authority");
    unknown.with_stderr("expected --cacert FILE with its authority");
    with(&server, &["--insecure"]).code(0);
    with(&server, &["--cacert", &ca]).code(0).without_stderr("not for");
    let directory = certificates.path("");
    with(&server, &["--cacertdir", &directory]).code(0);
    with(&server, &["--cacert", "/no/such"])
        .code(1)
        .with_stderr("`/no/such` is not a file of authorities");
    let suites = ["--cacert", &ca, "--tls-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"];
    with(&server, &suites).code(0);

    // The original ignores the name; cachedyno warns.
    let elsewhere = certificates.server("elsewhere", &open);
    let trusting = ["--cacert", &ca];
    elsewhere.run(Program::Original, &[&arguments[..], &trusting].concat()).code(0);
    with(&elsewhere, &trusting).code(0).with_stderr("certificate is not for `localhost`");
    let named = ["--cacert", &ca, "--sni", "elsewhere.example"];
    with(&elsewhere, &named).code(0).without_stderr("not for");

    // Only the intended server gets the password.
    let guarded =
        certificates.server("elsewhere", &[&open[..], &["--requirepass", "hush"]].concat());
    let login = |more: &[&str]| with(&guarded, &[more, &["-a", "hush"]].concat());
    let refused = login(&trusting).code(1);
    refused.with_stderr("certificate is not for `localhost`, so no password is sent");
    login(&named).code(0);
    login(&["--insecure"]).code(0);
}

#[test]
fn a_server_without_tls_is_an_error() {
    if !has_tls_tools() {
        return;
    }
    let server = Server::new();
    let ran = server.ours(&["--tls", "--insecure", "-n", "10"]).code(1);
    ran.with_stderr("error: could not connect to Redis: ").with_stderr("does the server use TLS?");
}

#[test]
fn uris_can_enable_tls() {
    if !has_tls_tools() {
        return;
    }
    let certificates = Certificates::new(&[LOCALHOST]);
    let server = certificates.server("server", &["--tls-auth-clients", "no"]);
    let ca = certificates.path("ca.pem");
    let uri = format!("rediss://localhost:{}/1", server.port);
    let arguments = ["-u", &uri, "--cacert", &ca, "-n", "100", "-q", "-t", "set", "-3"];
    server.ours(&arguments).code(0);
    assert_eq!(server.ask(&["-n", "1", "DBSIZE"]), "1");
}
