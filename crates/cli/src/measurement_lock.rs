//! One measurement at a time on this machine.

use std::path::Path;

use rig::Guard;
use rig::measurement_lock::{Holder, LockAttempt, MeasurementLock};

use crate::exit::CliError;
use crate::orphaned;
use crate::output;

/// Acquires the measurement lock, which is released on drop, and lists leftovers of killed
/// runs in `disks` and in the temporary directory. Errors: another measurement is running; the
/// error names it. If locking is impossible, prints a warning and continues.
pub(crate) fn acquire(guard: &Guard, disks: &[&Path]) -> Result<Option<MeasurementLock>, CliError> {
    orphaned::notice(disks);
    match MeasurementLock::try_acquire(guard, &std::env::temp_dir()) {
        Ok(LockAttempt::Acquired(lock)) => Ok(Some(lock)),
        Ok(LockAttempt::Busy(holder)) => Err(CliError::failed(busy(holder.as_ref()))),
        Err(e) => {
            output::say(&format!("warning: cannot prevent other measurements: {e}"));
            Ok(None)
        }
    }
}

fn busy(holder: Option<&Holder>) -> String {
    let (who, end) = match holder {
        Some(holder) => {
            let run = holder.files.iter().find_map(|file| archive::run_of(file.parent()?));
            let run = run.map_or_else(String::new, |run| format!("run `{run}`, "));
            let since = holder.age_s.map_or_else(String::new, |s| format!(", for {}", duration(s)));
            let (pid, command) = (holder.pid, &holder.command);
            let (of, end) = match &holder.user {
                Some(user) => (format!(" of user `{user}`"), String::new()),
                None => (String::new(), format!(", or stop it with `kill -INT {pid}`")),
            };
            (format!(": {run}process {pid}{of}{since}, `{command}`"), end)
        }
        None => (", in an unknown process".into(), String::new()),
    };
    format!(
        "another cachedyno measures on this machine{who} (two would disturb each other: wait \
         until it ends{end}; to run both anyway, set `TMPDIR` to a separate directory for one of \
         them)"
    )
}

fn duration(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_the_holder_and_what_to_do() {
        let mut holder = Holder {
            pid: 4711,
            user: None,
            command: "cachedyno run app-cache".into(),
            age_s: Some(75.2),
            files: vec!["/nowhere/lock".into()],
        };
        let text = busy(Some(&holder));
        let expected = ": process 4711, for 1 min 15 s, `cachedyno run app-cache` (two would";
        assert!(text.contains(expected) && text.contains("`kill -INT 4711`"), "{text}");
        holder.user = Some("bob".into());
        let text = busy(Some(&holder));
        assert!(text.contains("process 4711 of user `bob`, for 1 min"), "{text}");
        assert!(!text.contains("kill") && text.contains("`TMPDIR`"), "{text}");
        let text = busy(None);
        assert!(text.contains("in an unknown process (two"), "{text}");
        assert!(!text.contains("kill"), "{text}");
    }
}
