//! The page of all statements of the sources against the claims of the shipped studies.

use std::collections::{BTreeMap, BTreeSet};

use super::Study;

const PAGE: &str = include_str!("../../../../docs/SOURCES.md");
const STUDIES: [(&str, &str); 6] = [
    ("app-cache", include_str!("../../../../studies/app-cache.toml")),
    ("sessions", include_str!("../../../../studies/sessions.toml")),
    ("ramp", include_str!("../../../../studies/ramp.toml")),
    ("beyond-ram", include_str!("../../../../studies/beyond-ram.toml")),
    ("sizing", include_str!("../../../../studies/sizing.toml")),
    ("failover", include_str!("../../../../studies/failover.toml")),
];
/// Where a statement can have gone, in the order of the columns of the page's first table.
const DESTINATIONS: [&str; 7] =
    ["claim", "condition", "method", "fact", "advice", "note", "not judged"];

/// One statement.
struct Row {
    id: String,
    went: String,
}

/// Cells of a Markdown table row.
fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_matches('|').split('|').map(str::trim).collect()
}

/// The statements of each source, by the name of the study that its section links to.
fn sections() -> BTreeMap<String, Vec<Row>> {
    let mut found: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    let mut study = String::new();
    for line in PAGE.lines() {
        if line.starts_with("## ") {
            study.clear();
        }
        let link = line.split("(../studies/").nth(1).and_then(|rest| rest.split(".toml)").next());
        if let (true, Some(name)) = (study.is_empty(), link) {
            study = name.into();
        }
        let Some(id) = line.strip_prefix("| `").and_then(|rest| rest.split('`').next()) else {
            continue;
        };
        if let [_, _, _, went] = cells(line)[..] {
            let row = Row { id: id.into(), went: went.into() };
            found.entry(study.clone()).or_default().push(row);
        }
    }
    found
}

fn destination(row: &Row) -> Option<&'static str> {
    DESTINATIONS.into_iter().find(|name| row.went.starts_with(&format!("**{name}**")))
}

/// Texts in backticks.
fn quoted(text: &str) -> BTreeSet<String> {
    text.split('`').skip(1).step_by(2).map(Into::into).collect()
}

#[test]
fn every_claim_has_one_row_and_every_row_of_a_claim_its_claim() {
    let sections = sections();
    for (name, text) in STUDIES {
        let study = Study::parse(name, text).unwrap();
        let claims: Vec<&str> = study.claims.iter().map(|c| c.get_ref().id.as_str()).collect();
        let rows = &sections[name];
        for claim in &claims {
            let names_it = |row: &&Row| {
                destination(row) == Some("claim")
                    && (row.id == *claim || quoted(&row.went).contains(*claim))
            };
            assert_eq!(rows.iter().filter(names_it).count(), 1, "claim `{claim}` of `{name}`");
        }
        for row in rows {
            let kind = destination(row);
            assert!(kind.is_some(), "`{}` went nowhere: {}", row.id, row.went);
            let is_claim = claims.contains(&row.id.as_str())
                || claims.iter().any(|claim| quoted(&row.went).contains(*claim));
            assert_eq!(kind == Some("claim"), is_claim, "`{}` of `{name}`", row.id);
            let text = row.went.rsplit("**").next().unwrap_or_default().trim();
            assert!(kind == Some("claim") || !text.is_empty(), "`{}` says nothing", row.id);
        }
    }
}

#[test]
fn ids_are_unique_and_counts_are_those_of_the_rows() {
    let sections = sections();
    let all: Vec<&Row> = sections.values().flatten().collect();
    let ids: BTreeSet<&str> = all.iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids.len(), all.len(), "duplicate ids");
    for (name, rows) in &sections {
        let line = PAGE.lines().find(|line| cells(line)[0] == name).expect("a row with its counts");
        let mut counts = vec![rows.len()];
        let of = |kind: &str| rows.iter().filter(|row| destination(row) == Some(kind)).count();
        counts.extend(DESTINATIONS.map(of));
        let counts: Vec<String> = counts.iter().map(ToString::to_string).collect();
        assert_eq!(cells(line)[1..], counts, "{name}");
    }
    let total = PAGE.lines().find(|line| cells(line)[0] == "all").expect("a row with the sums");
    assert_eq!(cells(total)[1], all.len().to_string());
}
