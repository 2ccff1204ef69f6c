//! Passwords of targets: kept out of the process list and of all output and records.
//!
//! A password in a URL on the command line would be in the process list while the program runs. So
//! the program immediately re-executes itself with the same command line without the password, and
//! passes the password in an in-memory file that is closed after reading.

use model::target::{self, mask_text};
use model::{Endpoint, Secret, TargetChoice};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::collections::BTreeMap;
use std::env::{self, VarError};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::exit::CliError;

/// Environment variable with the file descriptor that passes passwords, by target name, to the
/// restarted program.
const CARRIER: &str = "CACHEDYNO_CARRIER";
/// Name of the file with the passwords.
const CARRIER_NAME: &str = "cachedyno-passwords";
/// Passwords passed to this process.
static CARRIED: OnceLock<BTreeMap<String, Secret>> = OnceLock::new();
/// Minimum length in bytes of a part of an argument that is masked in messages.
const MASKED_BYTES_MIN: usize = 3;

/// Restarts the program without the passwords on its command line, if it contains any. The command
/// `exempt` has its own address syntax and removes its passwords itself.
pub(crate) fn hide_passwords(exempt: &str) -> Result<(), CliError> {
    // This also closes the file, which must not stay open.
    CARRIED.get_or_init(read_carrier);
    let arguments: Vec<OsString> = env::args_os().collect();
    if arguments.get(1).is_some_and(|command| command == exempt) {
        return Ok(());
    }
    let mut secrets = BTreeMap::new();
    let mut cleaned = Vec::with_capacity(arguments.len());
    for argument in &arguments {
        // An argument that is not UTF-8 has no valid URL.
        let text = argument.to_str().unwrap_or_default();
        let flag = if text.starts_with("--target=") { "--target=" } else { "" };
        match without_password(&text[flag.len()..])? {
            Some((target, name, secret)) => {
                secrets.insert(name, secret);
                cleaned.push(format!("{flag}{target}").into());
            }
            None => cleaned.push(argument.clone()),
        }
    }
    if secrets.is_empty() { Ok(()) } else { Err(restart(&cleaned, &secrets)) }
}

/// Restarts the program with another command line (program name first) and passes passwords by
/// target name. Returns only on an error.
pub(crate) fn restart(arguments: &[OsString], secrets: &BTreeMap<String, Secret>) -> CliError {
    let why = match carry(secrets) {
        Ok((program, file)) => Command::new(program)
            .arg0(&arguments[0])
            .args(&arguments[1..])
            .env(CARRIER, file.as_raw_fd().to_string())
            .exec(),
        Err(e) => e,
    };
    CliError::failed(format!("cannot restart without the passwords on the command line: {why}"))
}

/// Path of this program, and a file with passwords that stays open across `exec`.
fn carry(secrets: &BTreeMap<String, Secret>) -> std::io::Result<(PathBuf, File)> {
    let secrets: BTreeMap<_, _> = secrets.iter().map(|(n, s)| (n, s.reveal())).collect();
    let mut file = File::from(memfd_create(CARRIER_NAME, MFdFlags::empty())?);
    file.write_all(&serde_json::to_vec(&secrets)?)?;
    Ok((env::current_exe()?, file))
}

/// The password that [`restart`] passed to this process for a target.
pub(crate) fn carried(name: &str) -> Option<Secret> {
    CARRIED.get_or_init(read_carrier).get(name).cloned()
}

/// Reads the passwords passed to this process and closes their file.
fn read_carrier() -> BTreeMap<String, Secret> {
    let read = || {
        let number: i32 = env::var(CARRIER).ok()?.parse().ok()?;
        let path = format!("/proc/self/fd/{number}");
        // If another program set the variable, the number can be that of any open file.
        let is_ours = fs::read_link(&path).ok()?.to_str()?.contains(CARRIER_NAME);
        let text = is_ours.then(|| fs::read(&path).ok())??;
        nix::unistd::close(number).ok()?;
        serde_json::from_slice::<BTreeMap<String, String>>(&text).ok()
    };
    let texts = read().unwrap_or_default();
    texts.into_iter().map(|(name, text)| (name, Secret::new(text))).collect()
}

/// Splits an argument into the argument without its password, the target's name and the password.
/// Errors: the password cannot be separated from the rest of the argument.
fn without_password(argument: &str) -> Result<Option<(String, String, Secret)>, CliError> {
    let read = |text: &str| TargetChoice::parse(text).ok();
    let Some(TargetChoice { name, endpoint: Some(endpoint), .. }) = read(argument) else {
        return Ok(None);
    };
    let Some(password) = endpoint.password() else { return Ok(None) };
    let (_, url) = TargetChoice::parts(argument);
    let cleaned =
        [&argument[..argument.len() - url.len()], &target::without_password(url)].concat();
    let place = |choice: TargetChoice| {
        choice.endpoint.filter(|e| e.password().is_none()).map(|e| (choice.name, e.to_string()))
    };
    if read(&cleaned).and_then(place) == Some((name.clone(), endpoint.to_string())) {
        return Ok(Some((cleaned, name, password.clone())));
    }
    Err(CliError::usage(format!(
        "the password in the URL of target `{name}` cannot be removed from the command line, where \
         other users can read it (expected it in {} or --password-file)",
        variable(&name)
    )))
}

/// Masks passwords in a message: parts that are masked in an argument are also masked in the
/// message.
pub(crate) fn masked(message: &str) -> String {
    let arguments = env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned());
    arguments.fold(message.to_string(), |message, argument| without_hidden(&message, &argument))
}

fn without_hidden(message: &str, argument: &str) -> String {
    let shown = mask_text(argument);
    if shown == argument {
        return message.into();
    }
    let mut masked = message.replace(argument, &shown);
    // An error may repeat only a part of the argument.
    let mut rest = argument;
    for literal in shown.split("***") {
        let at = if literal.is_empty() { rest.len() } else { rest.find(literal).unwrap_or(0) };
        let login = rest[..at].trim_matches([':', '/', ' ']);
        let password = login.split_once(':').map_or("", |(_, password)| password);
        for hidden in [login, password] {
            if hidden.len() >= MASKED_BYTES_MIN {
                masked = masked.replace(hidden, "***");
            }
        }
        rest = rest.get(at + literal.len()..).unwrap_or_default();
    }
    masked
}

/// Environment variable for the password of a target.
fn variable(target: &str) -> String {
    let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("CACHEDYNO_PASSWORD_{}", target.chars().map(upper).collect::<String>())
}

/// Endpoints of the existing stores, with passwords from URL, file or environment.
pub(crate) fn endpoints(
    targets: &[TargetChoice],
    password_files: &[String],
) -> Result<BTreeMap<String, Endpoint>, CliError> {
    let files = password_files.iter().map(|f| read_file(f)).collect::<Result<Vec<_>, _>>()?;
    if let Some((name, _)) = files.iter().find(|(n, _)| !targets.iter().any(|t| t.name == *n)) {
        return Err(CliError::usage(format!(
            "--password-file: `{name}` is not a NAME=URL target of this command"
        )));
    }
    let given = |variable: String| match env::var(&variable) {
        Ok(password) => Ok(Some(password).filter(|p| !p.is_empty()).map(Secret::new)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(CliError::usage(format!(
            "the password in {variable} is not UTF-8 (expected UTF-8 text)"
        ))),
    };
    for (i, target) in targets.iter().enumerate() {
        let shared = variable(&target.name);
        let twin = targets[..i].iter().find(|t| variable(&t.name) == shared);
        if let Some(twin) = twin
            && given(shared.clone())?.is_some()
        {
            return Err(CliError::usage(format!(
                "targets `{}` and `{}` would both take their password from {shared} (rename \
                 one of them)",
                twin.name, target.name
            )));
        }
    }
    let with_url = targets.iter().filter_map(|t| Some((&t.name, t.endpoint.clone()?)));
    with_url
        .map(|(name, endpoint)| {
            let from_file = files.iter().find(|(n, _)| n == name).map(|(_, secret)| secret.clone());
            let from_environment = given(variable(name))?;
            let password = from_file.or_else(|| carried(name)).or(from_environment);
            let endpoint = endpoint.with_password(password);
            if endpoint.lacks_password() {
                // Do not repeat the user name, which may be the password.
                return Err(CliError::usage(format!(
                    "the login of target `{name}` has a user but no password (expected \
                     `:PASSWORD@` for a password alone, or the user's password by \
                     --password-file {name}=FILE or {})",
                    variable(name)
                )));
            }
            Ok((name.clone(), endpoint))
        })
        .collect()
}

fn read_file(pair: &str) -> Result<(String, Secret), CliError> {
    let Some((name, path)) = pair.split_once('=') else {
        return Err(CliError::usage("--password-file is not of the form NAME=FILE"));
    };
    let text = fs::read_to_string(path).map_err(|e| {
        // A value without `=` may be the password itself.
        let shown =
            if path.contains('/') { format!(" `{}`", mask_text(path)) } else { String::new() };
        CliError::usage(format!(
            "password file{shown} of `{name}` cannot be read: {e} (expected NAME=FILE)"
        ))
    })?;
    Ok((name.into(), Secret::new(text.trim_end_matches(['\r', '\n']))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(argument: &str) -> Option<(String, String, String)> {
        without_password(argument).unwrap().map(|(a, v, s)| (a, v, s.reveal().to_string()))
    }

    fn parts(a: &str, b: &str, c: &str) -> (String, String, String) {
        (a.into(), b.into(), c.into())
    }

    #[test]
    fn passwords_leave_the_command_line() {
        assert_eq!(
            cleaned("shop=mysql://me:a%40b@h/db"),
            Some(parts("shop=mysql://me@h/db", "shop", "a@b"))
        );
        assert_eq!(cleaned("redis://:hush@h:1/2"), Some(parts("redis://h:1/2", "redis", "hush")));
        assert_eq!(
            cleaned("mc=memcached://me:a%2Cb@h:1,h:2"),
            Some(parts("mc=memcached://me@h:1,h:2", "mc", "a,b"))
        );
        assert_eq!(
            cleaned("my-db=mysql+unix:///s?password=x&database=d"),
            Some(parts("my-db=mysql+unix:///s?database=d", "my-db", "x"))
        );
    }

    #[test]
    fn other_arguments_stay_as_they_are() {
        for argument in ["run", "--scale", "redis", "a=redis://h", "file:///a", "x=http://u:p@h"] {
            assert_eq!(cleaned(argument), None, "{argument}");
        }
    }

    #[test]
    fn a_part_of_an_argument_is_masked_too() {
        let masked = |argument| without_hidden("no `hush` in `u:hush@h`, nor in ` hush`", argument);
        for argument in ["redis:u:hush@h", "--target=x=redis://u:hush@h/1", "x=h?password=hush"] {
            assert!(!masked(argument).contains("hush"), "{argument}: {}", masked(argument));
        }
        assert!(masked("redis://h").contains("hush"));
    }

    #[test]
    fn different_names_can_share_a_variable() {
        assert_eq!(variable("a-b"), variable("A_b"), "so a shared variable is refused");
    }
}
