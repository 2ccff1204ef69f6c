//! `cachedyno studies`: the shipped studies.

use model::Study;
use std::process::ExitCode;

use crate::args::Studies;
use crate::exit::CliError;
use crate::studies::{SHIPPED, load};

pub(crate) fn run(arguments: &Studies) -> Result<ExitCode, CliError> {
    match &arguments.name {
        Some(name) => {
            // Says which ones there are when there is none of that name.
            load(name)?;
            let text = SHIPPED.iter().find(|(shipped, _)| shipped == name).map(|(_, text)| *text);
            let text =
                text.ok_or_else(|| CliError::usage(format!("`{name}` is no shipped study")))?;
            anstream::print!("{text}");
        }
        None => {
            for (name, text) in SHIPPED {
                describe(&Study::parse(name, text)?);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(study: &Study) {
    anstream::println!("{}: {}", study.name, study.title);
    anstream::println!("  {}", study.question);
    anstream::println!("  source: {}", study.source);
    let targets: Vec<&str> = study.target_names().collect();
    anstream::println!("  targets: {}", targets.join(", "));
    let chosen = study.defaults.profile.get_ref();
    for profile in &study.profiles {
        let name = profile.name.get_ref();
        let default = if chosen.contains(name) { " (default)" } else { "" };
        anstream::println!("  profile {name}{default}: {}", profile.about);
    }
}
