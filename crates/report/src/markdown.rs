//! The result as Markdown with pipe tables, for a wiki, an issue or a commit.

use crate::show;
use crate::standings::{Standing, doubts, marks, standings};
use crate::text::{
    effort, facts, growth, orders, problems, ramp, reasons, search, settings, shown_footnotes,
};
use crate::view::{Validity, View};

/// The whole result; a heading of the first level, all else below it.
pub fn render(view: &View) -> String {
    let parts = [
        heading(view),
        probes(view),
        if view.search.is_none() { results(view) } else { String::new() },
        not_as_expected(view),
        effort_of_operations(view),
        growth_of_costs(view),
        ramps(view),
        not_run(view),
        failures(view),
        claims(view),
        advice(view),
        settings_of_targets(view),
        conditions(view),
        footnotes(view),
    ];
    parts.iter().filter(|p| !p.is_empty()).cloned().collect::<Vec<_>>().join("\n")
}

fn heading(view: &View) -> String {
    let mut text = format!("# {}\n\n", plain(&view.asked.title));
    if !view.asked.question.is_empty() {
        text += &format!("{}\n\n", plain(&view.asked.question));
    }
    if let Some(search) = &view.search {
        let peak = search::peak(search).unwrap_or_default();
        text += &format!("{}\n\n{}\n\n", plain(&search.sentence), plain(&peak));
    }
    text += &format!("**{}** – {}\n", view.validity.heading(), plain(&facts(view)));
    if !view.reasons.is_empty() {
        text.push('\n');
    }
    for reason in search::other_reasons(view) {
        text += &format!("- {}\n", plain(reason));
    }
    if view.validity == Validity::Invalid {
        text += "\nThe run is INVALID: what follows shows what happened and is no result.\n";
    }
    text
}

fn probes(view: &View) -> String {
    let Some(found) = &view.search else { return String::new() };
    let rows = search::rows(found);
    let rows = rows.iter().map(|(_, cells)| cells.iter().map(|c| plain(c)).collect());
    let table = pipes(&search::HEADER, "rlrrrrrrl", rows);
    let notes: String = search::notes(found).iter().map(|n| format!("\n{}\n", plain(n))).collect();
    section("Probes", &(table + &notes))
}

fn results(view: &View) -> String {
    let mut text = String::new();
    let header = [
        "operation",
        "target",
        "rate",
        "p50",
        "p99",
        "p99.9",
        "CPU/op server",
        "CPU/op generator",
        "blocks",
        "against the best",
        "notes",
    ];
    let tables = standings(view);
    for table in &tables {
        let notes = if table.footnotes.is_empty() {
            String::new()
        } else {
            format!(" (notes {})", marks(table.footnotes.iter()))
        };
        text += &format!("## {}, {}{notes}\n\n", plain(table.workload), table.load);
        if let Some(data) = view.asked.data.get(table.workload) {
            text += &format!("{}\n\n", plain(data));
        }
        let rows = table.groups.iter().flat_map(|group| {
            group.standings.iter().map(|s| row(group.operation, s, &table.footnotes))
        });
        let mut header = header;
        header[2] = table.rate_heading();
        text += &pipes(&header, "llrrrrrrrll", rows);
        text.push('\n');
    }
    if !text.is_empty() {
        text += "Bold: best of its operation. Times are service times, under an open load response \
             times; CPU is time per operation.\n";
    }
    for doubt in doubts(&tables) {
        text += &format!("\n{}\n", plain(&doubt));
    }
    text
}

fn row(operation: &str, standing: &Standing<'_>, shared: &[usize]) -> Vec<String> {
    let target = plain(&standing.row.target);
    vec![
        plain(operation),
        if standing.best { format!("**{target}**") } else { target },
        standing.metric("rate_per_s", show::rate_value),
        standing.time("p50"),
        standing.time("p99"),
        standing.time("p999"),
        standing.ns("server_cpu_ns_per_op"),
        standing.ns("generator_cpu_ns_per_op"),
        standing.row.blocks.to_string(),
        standing.verdict.clone(),
        standing.marks(shared),
    ]
}

/// A table; `align` has a letter a column, `l` or `r`.
fn pipes(header: &[&str], align: &str, rows: impl Iterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let header: Vec<String> = header.iter().map(ToString::to_string).collect();
    let rule: Vec<String> =
        align.chars().map(|a| if a == 'r' { "---:" } else { "---" }.to_string()).collect();
    let mut text = line(&header) + &line(&rule);
    rows.for_each(|cells| text += &line(&cells));
    text
}

fn not_as_expected(view: &View) -> String {
    let (header, lines) = problems::lines(view);
    if lines.is_empty() {
        return String::new();
    }
    let align = format!("lll{}", "r".repeat(header.len() - 3));
    let rows = lines.iter().map(|cells| cells.iter().map(|cell| plain(cell)).collect());
    section("Not as expected", &format!("{}\n{}\n", pipes(&header, &align, rows), problems::NOTE))
}

fn effort_of_operations(view: &View) -> String {
    let mut rows = effort::rows(view).peekable();
    if rows.peek().is_none() {
        return String::new();
    }
    let cells = |r| effort::cells(r).iter().map(|cell| plain(cell)).collect();
    let mut body = pipes(&effort::HEADER, "llrrrrr", rows.map(cells)) + "\n";
    for size in effort::sizes(view) {
        body += &format!("- {}\n", plain(&size));
    }
    section("Effort of an operation", &body)
}

fn growth_of_costs(view: &View) -> String {
    let mut body = String::new();
    for curves in growth::tables(view) {
        let rows = curves.iter().map(|c| growth::cells(c).iter().map(|cell| plain(cell)).collect());
        body += &format!("{}\n\n", plain(&growth::title(&curves)));
        body += &(pipes(&growth::HEADER, "lllll", rows) + "\n");
    }
    if !body.is_empty() {
        body += &format!("{}\n", plain(growth::NOTE));
    }
    section("Growth of the cost", &body)
}

fn settings_of_targets(view: &View) -> String {
    let lines: String = settings(view)
        .iter()
        .map(|(target, settings)| format!("- {}: {}\n", plain(target), plain(settings)))
        .collect();
    section("Settings", &lines)
}

fn ramps(view: &View) -> String {
    let mut body: String =
        view.ramps.iter().map(|r| format!("- {}\n", plain(&r.sentence))).collect();
    body +=
        &ramp::comparisons(view).iter().map(|c| format!("- {}\n", plain(c))).collect::<String>();
    for ramps in ramp::by_profile(view) {
        let rows = ramps.iter().map(|r| ramp::share_cells(r).iter().map(|c| plain(c)).collect());
        let table = pipes(&ramp::share_header(), "lrrrrrrr", rows);
        let profile = ramp::of_profile(view, ramps[0]);
        body += &format!("\np99 at shares of the knee{}:\n\n{table}", plain(&profile));
    }
    for ramps in ramp::by_profile(view) {
        let rows = ramp::place_rows(&ramps);
        if rows.is_empty() {
            continue;
        }
        let rows = rows.iter().map(|cells| cells.iter().map(|cell| plain(cell)).collect());
        let table = pipes(&ramp::PLACE_HEADER, "llrrrrrr", rows);
        let profile = ramp::of_profile(view, ramps[0]);
        body += &format!("\n{}{}:\n\n{table}\n", ramp::PLACES, plain(&profile));
        for found in ramps.iter().filter_map(|ramp| ramp.place.as_ref()) {
            body += &format!("- {}\n", plain(&found.sentence));
        }
    }
    for found in &view.ramps {
        let name = format!("{}{} ({})", found.target, ramp::of_profile(view, found), found.load);
        let rows = ramp::stage_rows(found).into_iter().map(|(cells, knee)| {
            let mut cells: Vec<String> = cells.iter().map(|c| plain(c)).collect();
            if knee {
                cells[0] = format!("**{}**", cells[0]);
            }
            cells
        });
        let header = ramp::stage_header(found);
        let table = pipes(&header, &"r".repeat(header.len()), rows);
        body += &format!("\nStages of {}, the knee bold:\n\n{table}", plain(&name));
    }
    if !view.ramps.is_empty() {
        body += &format!("\n{}\n", plain(&ramp::note(view)));
    }
    section("Ramps", &body)
}

fn not_run(view: &View) -> String {
    let targets = view.setup.targets.iter().filter_map(|t| Some((t, t.not_run.as_ref()?)));
    let lines: String =
        targets.map(|(t, why)| format!("- {}: {}\n", plain(&t.name), plain(why))).collect();
    section("Not run", &lines)
}

fn failures(view: &View) -> String {
    if view.failures.is_empty() {
        return String::new();
    }
    let rows = view.failures.iter().map(|f| {
        vec![(f.block + 1).to_string(), plain(&f.cell), plain(&f.class), plain(&f.reason)]
    });
    let number = if view.search.is_some() { "probe" } else { "block" };
    let table = pipes(&[number, "cell", "class", "reason"], "rlll", rows);
    let logged = view.failures.iter().filter_map(|f| Some((f, f.log.as_ref()?)));
    let logs: String = logged
        .map(|(f, log)| {
            format!("\nLog of {} in {number} {}: {}\n", plain(&f.cell), f.block + 1, plain(log))
        })
        .collect();
    section("Failed trials", &(table + &logs))
}

fn claims(view: &View) -> String {
    if view.claims.is_empty() {
        return String::new();
    }
    let rows = view.claims.iter().map(|c| {
        vec![
            format!("**{}**", c.verdict),
            plain(&c.text),
            plain(&c.source),
            c.workload.as_ref().map_or_else(|| "–".into(), |w| plain(w)),
            plain(&c.expected),
            c.measured.as_ref().map_or_else(|| "–".into(), show::ratio_value),
            plain(&c.note),
        ]
    });
    let header = ["verdict", "statement", "source", "profile", "expected", "measured", "note"];
    section("Claims, judged on this machine", &pipes(&header, "lllllll", rows))
}

fn advice(view: &View) -> String {
    if view.advised.advice.is_empty() {
        return String::new();
    }
    let rows = view.advised.advice.iter().map(|a| {
        vec![
            plain(&a.shop),
            plain(&a.size),
            a.clients.to_string(),
            plain(&a.factory),
            plain(&a.source_recommends),
            a.recommended.as_ref().map_or_else(|| "–".into(), |r| plain(r)),
            a.agreement.to_string(),
        ]
    });
    let header =
        ["shop", "size", "concurrent requests", "delivered", "source", "here", "agreement"];
    let mut body = pipes(&header, "llrllll", rows) + "\n";
    for (places, why) in reasons(&view.advised.advice) {
        body += &format!("- {}: {}\n", plain(&places), plain(&why));
    }
    if let Some(basis) = &view.advised.advice_basis {
        body += &format!("\n{}\n", plain(basis));
    }
    let orders: String = orders(view)
        .iter()
        .map(|(sizes, o)| format!("- {}: {}\n", plain(sizes), plain(o)))
        .collect();
    if !orders.is_empty() {
        body += &format!("\nOrder by these weights:\n\n{orders}");
    }
    section("Advice", &body)
}

fn conditions(view: &View) -> String {
    if view.setup.conditions.facts.is_empty() {
        return String::new();
    }
    let rows = view.setup.conditions.facts.iter().map(|c| {
        let warning = c.warning.as_deref().unwrap_or_default();
        vec![plain(&c.group), plain(&c.name), plain(&c.value), plain(warning)]
    });
    section("Conditions", &pipes(&["group", "fact", "value", "warning"], "llll", rows))
}

fn footnotes(view: &View) -> String {
    let note = |(i, text): (usize, &String)| format!("{}. {}\n", i + 1, plain(text));
    let lines: String = shown_footnotes(view).enumerate().map(note).collect();
    section("Notes", &lines)
}

fn section(title: &str, body: &str) -> String {
    if body.is_empty() { String::new() } else { format!("## {title}\n\n{body}") }
}

/// Text that Markdown and HTML leave alone, on one line.
fn plain(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\r' | '\n' => safe.push(' '),
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '|' | '*' | '_' | '[' | ']' | '\\' => safe.extend(['\\', c]),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_a_table_or_start_markup() {
        assert_eq!(plain("a|b\n<i>*_x_*"), "a\\|b &lt;i&gt;\\*\\_x\\_\\*");
    }
}
