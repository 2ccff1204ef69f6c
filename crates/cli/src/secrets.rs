//! Passwords of targets: out of the process list, out of everything that is printed or recorded.
//!
//! A password that stands in a URL on the command line would be in the process list as long as
//! the program runs. So the program replaces itself at once: the same command line without the
//! password, which travels on in the environment, where only the same user can read it.

use model::target::{self, mask_text};
use model::{Endpoint, Secret, TargetChoice};
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use crate::commands::redis_benchmark;
use crate::exit::CliError;

/// Bytes of the shortest part of an argument that is looked for in a message.
const REPEATED_LEAST: usize = 3;

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
        match without_password(&argument[flag.len()..])? {
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

/// The argument without its password, and the variable that carries it on. Errors: the password
/// cannot be told from the rest of the argument.
fn without_password(argument: &str) -> Result<Option<(String, String, Secret)>, CliError> {
    let read = |text: &str| TargetChoice::parse(text).ok();
    let Some(TargetChoice { name, endpoint: Some(endpoint) }) = read(argument) else {
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
        return Ok(Some((cleaned, carrier(&name), password.clone())));
    }
    Err(CliError::usage(format!(
        "the password in the URL of target `{name}` cannot be taken off the command line, where \
         everybody can read it (expected it in {} or --password-file)",
        variable(&name)
    )))
}

/// A message without what the command line may hold of passwords: what is masked of an argument is
/// masked in the message as well.
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
    // An error may repeat only a part of it.
    let mut rest = argument;
    for literal in shown.split("***") {
        let at = if literal.is_empty() { rest.len() } else { rest.find(literal).unwrap_or(0) };
        let login = rest[..at].trim_matches([':', '/', ' ']);
        let password = login.split_once(':').map_or("", |(_, password)| password);
        for hidden in [login, password] {
            if hidden.len() >= REPEATED_LEAST {
                masked = masked.replace(hidden, "***");
            }
        }
        rest = rest.get(at + literal.len()..).unwrap_or_default();
    }
    masked
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
            "--password-file `{}` is not of the form NAME=FILE",
            mask_text(pair)
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
        without_password(argument).unwrap().map(|(a, v, s)| (a, v, s.reveal().to_string()))
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
    fn a_part_of_an_argument_is_masked_too() {
        let masked = |argument| without_hidden("no `hush` in `u:hush@h`, nor in ` hush`", argument);
        for argument in ["redis:u:hush@h", "--target=x=redis://u:hush@h/1", "x=h?password=hush"] {
            assert!(!masked(argument).contains("hush"), "{argument}: {}", masked(argument));
        }
        assert!(masked("redis://h").contains("hush"));
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
