//! Completion scripts and manual pages.

use std::fs;
use std::process::Command;

use super::common::Place;

const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];

fn script(place: &Place, shell: &str) -> String {
    let mut command = place.command();
    command.args(["completions", shell]);
    Place::finish(command).code(0).stdout
}

#[test]
fn each_shell_can_read_its_completions() {
    let place = Place::new();
    for shell in SHELLS {
        let text = script(&place, shell);
        for name in ["find-max", "--target"] {
            let name = if shell == "fish" { name.trim_start_matches('-') } else { name };
            assert!(text.contains(name), "no {name} for {shell}");
        }
        let file = place.write(shell, &text);
        // Only the shells that are installed can check it; bash always is.
        match Command::new(shell).arg("-n").arg(&file).output() {
            Ok(checked) => assert!(checked.status.success(), "{checked:?}"),
            Err(e) => assert!(shell != "bash", "{e}"),
        }
    }
    let mut command = place.command();
    command.args(["completions", "csh"]);
    let refused = Place::finish(command).code(2);
    assert!(refused.stderr.contains("bash, zsh, fish"), "{refused:#?}");
}

#[test]
fn bash_completes_commands_and_flags() {
    let place = Place::new();
    let file = place.write("completions", &script(&place, "bash"));
    let completed = |words: &[&str]| {
        let last = words.len() - 1;
        let ask = format!(
            "source '{}'; COMP_WORDS=({}); COMP_CWORD={last}; _cachedyno cachedyno '{}' '{}'; \
             echo \"${{COMPREPLY[@]}}\"",
            file.display(),
            words.join(" "),
            words[last],
            words[last - 1],
        );
        let output = Command::new("bash").args(["--norc", "-c", &ask]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_string()
    };
    assert_eq!(completed(&["cachedyno", "find"]), "find-max");
    assert_eq!(completed(&["cachedyno", "compare", "--fail"]), "--fail-on");
    assert_eq!(completed(&["cachedyno", "run", "--scale", "q"]), "quick");
    assert_eq!(completed(&["cachedyno", "run", "beyond"]), "beyond-ram");
    assert_eq!(completed(&["cachedyno", "run", "--target", "postg"]), "postgres");
    assert_eq!(completed(&["cachedyno", "bench", "memc"]), "memcached");
    assert_eq!(completed(&["cachedyno", "redis-benchmark", "--dur"]), "--duration");
    assert_eq!(
        completed(&["cachedyno", "redis-benchmark", "--tls-ciphers"]),
        "--tls-ciphers --tls-ciphersuites"
    );
}

#[test]
fn each_command_has_a_manual_page() {
    let place = Place::new();
    let directory = place.path().join("man");
    let mut command = place.command();
    command.arg("man").arg(&directory);
    Place::finish(command).code(0);
    let page = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
    let of_all = page("cachedyno.1");
    let mut command = place.command();
    command.arg("--help");
    let help = Place::finish(command).code(0).stdout;
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    // Descriptions continue on lines that are indented further.
    let commands: Vec<&str> = commands
        .take_while(|line| !line.is_empty())
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|c| *c != "help")
        .collect();
    assert!(commands.len() > 15, "{help}");
    for name in &commands {
        let own = page(&format!("cachedyno-{name}.1"));
        assert!(own.contains(".SH SYNOPSIS"), "{own}");
        let reference = format!("cachedyno\\-{}(1)", name.replace('-', "\\-"));
        assert!(of_all.contains(&reference), "no {reference} in {of_all}");
    }
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1 + commands.len());
    assert!(page("cachedyno-bench.1").contains("\\-\\-pipeline"));
    let file = place.write("file", "");
    let mut command = place.command();
    command.arg("man").arg(file.join("man"));
    Place::finish(command).error(&["cannot write to", "file/man"]);
}
