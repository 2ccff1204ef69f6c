//! The flag `--fault-command`: a command of the user, which may contain passwords.

use model::Plan;
use model::target::mask_text;
use std::ffi::OsString;

use crate::exit::CliError;

const FLAG: &str = "--fault-command";

/// Checks that a resumed run has its command again, since a record does not contain it. Errors: it
/// is missing, or the plan needs none.
pub(crate) fn check(plan: &Plan, is_given: bool) -> Result<(), CliError> {
    let needs = plan.cells.iter().any(|cell| cell.workload.by_command().is_some());
    match (needs, is_given) {
        (true, false) => Err(CliError::usage(format!(
            "a record does not contain the fault command (expected {FLAG} COMMAND again)"
        ))),
        (false, true) => Err(CliError::usage(format!(
            "{FLAG} has no effect: this run interrupts no server at a URL (expected no {FLAG})"
        ))),
        _ => Ok(()),
    }
}

/// A command line for the record: without passwords, and of a fault command only its program.
pub(crate) fn recorded(arguments: impl Iterator<Item = OsString>) -> Vec<String> {
    let mut is_command = false;
    let shown = arguments.map(|argument| {
        let text = argument.to_string_lossy();
        let value = text.strip_prefix(FLAG).and_then(|rest| rest.strip_prefix('='));
        let shown = match value {
            _ if is_command => program(&text),
            Some(value) => format!("{FLAG}={}", program(value)),
            None => mask_text(&text),
        };
        is_command = !is_command && text == FLAG;
        shown
    });
    shown.collect()
}

/// `PROGRAM …`: the program of a command, after the variables that it sets.
fn program(command: &str) -> String {
    let mut words = command.split_whitespace();
    let program = words.find(|word| !word.contains('=')).unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let program = if program.chars().all(plain) { program } else { "" };
    let rest = if program.len() < command.trim().len() { " …" } else { "" };
    format!("{program}{rest}").trim_start().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_program_of_a_command_is_recorded() {
        let shown = |words: &[&str]| recorded(words.iter().map(OsString::from)).join(" ");
        let given = ["run", FLAG, "KEY=hush az redis --key hush", "--seed", "1"];
        assert_eq!(shown(&given), "run --fault-command az … --seed 1");
        assert_eq!(shown(&["--fault-command=./fail.sh"]), "--fault-command=./fail.sh");
        assert_eq!(shown(&[FLAG, "$(cat hush)"]), "--fault-command …");
        assert_eq!(shown(&[FLAG, "hush=1"]), "--fault-command …");
        assert_eq!(shown(&["x=redis://:hush@h/1"]), "x=redis://***@h/1");
    }
}
