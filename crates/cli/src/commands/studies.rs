//! `cachedyno studies`: lists the shipped studies, or prints one of them.

use model::Study;
use model::study::DefaultScales;
use std::process::ExitCode;

use crate::args::Studies;
use crate::exit::CliError;
use crate::output;
use crate::studies::{SHIPPED, load};

pub(crate) fn run(arguments: &Studies) -> Result<ExitCode, CliError> {
    match &arguments.name {
        Some(name) => {
            // Fails with the list of shipped studies if the name is unknown.
            load(name)?;
            let text = SHIPPED.iter().find(|(shipped, _)| shipped == name).map(|(_, text)| *text);
            let text =
                text.ok_or_else(|| CliError::usage(format!("`{name}` is not a shipped study")))?;
            output::print(text)?;
        }
        None => {
            for (name, text) in SHIPPED {
                output::print(&describe(&Study::parse(name, text)?))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn describe(study: &Study) -> String {
    let targets: Vec<&str> = study.target_names().collect();
    let profiles = study.profiles.iter().map(|profile| {
        let default = match study.default_scales(profile.name.get_ref()) {
            DefaultScales::None => String::new(),
            DefaultScales::All => " (default)".into(),
            DefaultScales::Some(scales) => {
                let names: Vec<&str> = scales.iter().map(|scale| scale.name()).collect();
                format!(" (default at {} scale)", names.join(" and "))
            }
        };
        format!("  profile {}{default}: {}\n", profile.name.get_ref(), profile.about)
    });
    format!(
        "{}: {}\n  {}\n  source: {}\n  targets: {}\n{}",
        study.name,
        study.title,
        study.question,
        study.source.publication,
        targets.join(", "),
        profiles.collect::<String>()
    )
}
