//! Passwords of targets: out of the process list, out of everything that is printed or recorded.
//!
//! A password that stands in a URL on the command line would be in the process list as long as
//! the program runs. So the program replaces itself at once: the same command line without the
//! password, which travels on in the environment, where only the same user can read it.

use model::target::mask_text;
use model::{Endpoint, Secret, TargetChoice};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::commands::redis_benchmark;
use crate::exit::CliError;

/// Starts the program anew without passwords on its command line, if there are any.
pub(crate) fn leave_the_process_list() -> Result<(), CliError> {
    // An argument that is not UTF-8 holds no URL of ours; clap tells about it.
    let arguments: Vec<String> = env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
    if arguments.get(1).is_some_and(|command| command == redis_benchmark::COMMAND) {
        // Its addresses are spelled in another way; it cleans its own command line.
        return Ok(());
    }
    let mut secrets = Vec::new();
    let mut cleaned = Vec::with_capacity(arguments.len());
    for argument in &arguments {
        let flag = if argument.starts_with("--target=") { "--target=" } else { "" };
        match without_password(&argument[flag.len()..]) {
            Some((target, variable, secret)) => {
                secrets.push((variable, secret));
                cleaned.push(format!("{flag}{target}"));
            }
            None => cleaned.push(argument.clone()),
        }
    }
    if secrets.is_empty() {
        return Ok(());
    }
    let program = env::current_exe()
        .map_err(|e| CliError::failed(format!("own program cannot be found: {e}")))?;
    let secrets = secrets.iter().map(|(variable, secret)| (variable, secret.reveal()));
    let error = Command::new(program).arg0(&cleaned[0]).args(&cleaned[1..]).envs(secrets).exec();
    Err(CliError::failed(format!("cannot start anew without passwords in the command: {error}")))
}

/// The argument without its password, and the variable that carries it on.
fn without_password(argument: &str) -> Option<(String, String, Secret)> {
    let choice = TargetChoice::parse(argument).ok()?;
    let password = choice.endpoint?.password()?.clone();
    let masked = mask_text(argument);
    // `redis://user:pw@host` becomes `redis://user@host`; a `password=` query is cut out.
    let cleaned = match (masked.split_once("***@"), masked.split_once("password=***")) {
        (Some((before, after)), _) => {
            let authority = &argument[before.len()..argument.len() - after.len() - 1];
            let user = authority.split(':').next().unwrap_or_default();
            if user.is_empty() {
                format!("{before}{after}")
            } else {
                format!("{before}{user}@{after}")
            }
        }
        (None, Some((before, after))) => format!("{before}{}", after.trim_start_matches('&')),
        (None, None) => return None,
    };
    Some((cleaned, carrier(&choice.name), password))
}

/// Environment variable that carries a password from the command line to the program started anew:
/// exact, so that no two targets share it.
fn carrier(target: &str) -> String {
    let hex = target.bytes().map(|b| format!("{b:02x}")).collect::<Vec<_>>().concat();
    format!("CACHEDYNO_CARRIED_{hex}")
}

/// Environment variable in which a user may give the password of a target.
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
            "--password-file names `{name}`, which is no --target NAME=URL of this command"
        )));
    }
    let given = |v: String| env::var(v).ok().filter(|p| !p.is_empty()).map(Secret::new);
    for (i, target) in targets.iter().enumerate() {
        let shared = variable(&target.name);
        let twin = targets[..i].iter().find(|t| variable(&t.name) == shared);
        if let Some(twin) = twin.filter(|_| given(shared.clone()).is_some()) {
            return Err(CliError::usage(format!(
                "targets `{}` and `{}` would both take their password from {shared} (name one of \
                 them otherwise)",
                twin.name, target.name
            )));
        }
    }
    let with_url = targets.iter().filter_map(|t| Some((&t.name, t.endpoint.clone()?)));
    Ok(with_url
        .map(|(name, endpoint)| {
            let from_file = files.iter().find(|(n, _)| n == name).map(|(_, secret)| secret.clone());
            let carried = || given(carrier(name));
            let from_environment = || given(variable(name));
            let password = from_file.or_else(carried).or_else(from_environment);
            (name.clone(), endpoint.with_password(password))
        })
        .collect())
}

fn read_file(pair: &str) -> Result<(String, Secret), CliError> {
    let Some((name, path)) = pair.split_once('=') else {
        return Err(CliError::usage(format!(
            "--password-file `{pair}` is not of the form NAME=FILE"
        )));
    };
    let text = fs::read_to_string(path)
        .map_err(|e| CliError::usage(format!("password file `{path}` cannot be read: {e}")))?;
    Ok((name.into(), Secret::new(text.trim_end_matches(['\r', '\n']))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(argument: &str) -> Option<(String, String, String)> {
        without_password(argument).map(|(a, v, s)| (a, v, s.reveal().to_string()))
    }

    fn parts(a: &str, b: &str, c: &str) -> (String, String, String) {
        (a.into(), b.into(), c.into())
    }

    #[test]
    fn passwords_leave_the_command_line() {
        assert_eq!(
            cleaned("shop=mysql://me:a%40b@h/db"),
            Some(parts("shop=mysql://me@h/db", "CACHEDYNO_CARRIED_73686f70", "a@b"))
        );
        assert_eq!(
            cleaned("redis://:hush@h:1/2"),
            Some(parts("redis://h:1/2", "CACHEDYNO_CARRIED_7265646973", "hush"))
        );
        assert_eq!(
            cleaned("mc=memcached://me:a%2Cb@h:1,h:2"),
            Some(parts("mc=memcached://me@h:1,h:2", "CACHEDYNO_CARRIED_6d63", "a,b"))
        );
        assert_eq!(
            cleaned("my-db=mysql+unix:///s?password=x&database=d"),
            Some(parts("my-db=mysql+unix:///s?database=d", "CACHEDYNO_CARRIED_6d792d6462", "x"))
        );
    }

    #[test]
    fn other_arguments_stay_as_they_are() {
        for argument in ["run", "--scale", "redis", "a=redis://h", "file:///a", "x=http://u:p@h"] {
            assert_eq!(cleaned(argument), None, "{argument}");
        }
    }

    #[test]
    fn no_two_targets_share_what_the_command_line_carries() {
        let names = ["x", "X", "a-b", "a_b", "a.b"];
        for (i, name) in names.iter().enumerate() {
            assert!(names[..i].iter().all(|other| carrier(other) != carrier(name)), "{name}");
        }
        assert_eq!(variable("a-b"), variable("A_b"), "which is why a shared one is refused");
    }
}
