//! The user's command that interrupts the service of a server at a URL.
//!
//! It runs once for each fault. Its text is in no plan, since it may contain passwords.

use model::target::mask_text;
use model::{Act, Endpoint, ErrorClass, EventKind, Failure, Secret};
use nix::sys::signal::Signal;
use rig::{Guard, run_shell};
use std::sync::mpsc::Receiver;
use std::time::Instant;

use crate::address::place;
use crate::faults::is_over_by;
use crate::roles::Happened;

/// Longest part of the command's last line in a message, characters.
const LINE_MAX: usize = 200;

/// The command for one target.
#[derive(Clone, Debug)]
pub(crate) struct FaultCommand {
    pub(crate) text: String,
    /// Name of the target.
    pub(crate) target: String,
    pub(crate) endpoint: Endpoint,
    /// Ends the command should this process die.
    pub(crate) guard: Guard,
}

impl FaultCommand {
    /// Runs it at its time for a fault; does nothing once `stopped` reports the end of the phase.
    /// Errors: an exit code other than 0, or it still runs at the end of the phase.
    pub(crate) fn run(
        &self,
        act: Act,
        (due, stopped): (Instant, &Receiver<()>),
    ) -> Result<Vec<Happened>, Failure> {
        if is_over_by(stopped, due) {
            return Ok(Vec::new());
        }
        let address = self.address();
        let variables = [
            ("CACHEDYNO_FAULT", act.fault_name()),
            ("CACHEDYNO_TARGET", &self.target),
            ("CACHEDYNO_ADDRESS", &address),
        ];
        let begun = Instant::now();
        let end = &mut |wait| is_over_by(stopped, Instant::now() + wait).then_some(Signal::SIGKILL);
        let ended = run_shell(&self.guard, &self.text, &variables, end);
        let ended_at = Instant::now();
        ended.map_err(|how| {
            let after = stats::format_ns(ended_at.duration_since(begun).as_nanos() as f64);
            let message = format!(
                "after {after} the fault command {}",
                shown(&how, self.endpoint.password())
            );
            Failure { class: ErrorClass::Other, message }
        })?;
        let server = place(&self.endpoint);
        Ok(vec![
            (begun, EventKind::FaultCommandBegan, server.clone()),
            (ended_at, EventKind::FaultCommandEnded, server),
        ])
    }

    /// The server's address as `HOST:PORT`, or the path of its socket.
    fn address(&self) -> String {
        let addresses = self.endpoint.addresses();
        let all: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        all.join(",")
    }
}

/// A message of the command without passwords.
fn shown(text: &str, password: Option<&Secret>) -> String {
    let password = password.map(Secret::reveal).filter(|password| !password.is_empty());
    let text = password.map_or_else(|| text.into(), |own| text.replace(own, "***"));
    let words: Vec<String> = text.split_whitespace().map(mask_text).collect();
    words.join(" ").chars().take(LINE_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_contain_no_password() {
        let own = Secret::new("hush");
        let text = "ended with exit code 1: no redis://:other@h/1, hush, password=third \u{1b}[1m";
        let message = shown(text, Some(&own));
        for secret in ["hush", "other", "third"] {
            assert!(!message.contains(secret), "{message}");
        }
        assert!(message.starts_with("ended with exit code 1: no redis://"), "{message}");
        assert_eq!(shown(&"x ".repeat(500), None).len(), LINE_MAX);
    }
}
