//! Tables that a source publishes, and claims about their figures.

use model::study::Study;

use crate::fixture::{run, usual};
use crate::view::{ClaimVerdict, ClaimView};
use crate::{judge, junit, markdown, text};

/// The claims of the shipped study about tables, judged in a run of other stores.
fn judged() -> Vec<ClaimView> {
    judge(&with_tables()).claims
}

fn with_tables() -> crate::Recorded {
    let text = include_str!("../../../../studies/sizing.toml");
    let study = Study::parse("sizing", text).unwrap();
    let mut recorded = run(&["files", "redis"], 3, usual);
    let plan = &mut recorded.header.plan;
    plan.tables = study.tables.iter().map(|table| table.get_ref().clone()).collect();
    let claims = study.claims.iter().map(|claim| claim.get_ref().clone());
    plan.claims = claims.filter(|claim| claim.expect.is_of_tables()).collect();
    recorded
}

fn claim(id: &str) -> ClaimView {
    judged().into_iter().find(|claim| claim.id == id).unwrap()
}

#[test]
fn published_rates_are_checked_against_the_published_bandwidth() {
    let claim = claim("published-bandwidth");
    assert_eq!((claim.verdict, claim.workload), (ClaimVerdict::Refuted, None));
    // 15,000 × 1,024 bytes × 8 = 122.9 Mbit/s of 100; 1,500,000 × 8,192 = 12,288 of 3,200.
    let start = "false in 12 of 26 cases, holds in 14; strongest case: F300, Enterprise Flash \
                 tier, OSS policy, whose values alone need 12,288 Mbit/s of the stated 3,200; also \
                 in C0, Standard tier (1.23×), E20, Enterprise tier, Enterprise policy (1.39×)";
    assert!(claim.note.starts_with(start), "{}", claim.note);
    assert_eq!(claim.shown.as_deref(), Some("3.84×"));
}

#[test]
fn steps_down_in_a_published_table_are_named() {
    let up = claim("published-scale-up");
    assert_eq!(up.verdict, ClaimVerdict::Refuted);
    let smaller = "C3 to C4, GET/s without TLS, Standard tier, where 100,000 becomes 60,000";
    assert!(up.note.contains(smaller), "{}", up.note);
    let out = claim("published-scale-out");
    assert_eq!(
        out.note,
        "false in 1 of 16 cases, holds in 15; strongest case: E100 from capacity 2 to capacity \
         4, Enterprise tier scaled out, Enterprise policy, GET/s with TLS, where 1,600,000 becomes \
         1,120,000"
    );
    assert_eq!(claim("published-scale-out-flash").verdict, ClaimVerdict::Confirmed);
}

#[test]
fn published_steps_have_an_upper_limit() {
    let doubling = claim("published-doubling");
    assert_eq!(
        (doubling.verdict, doubling.shown.as_deref()),
        (ClaimVerdict::Refuted, Some("4.15×"))
    );
    assert!(doubling.expected.ends_with("at most 2.00×"), "{}", doubling.expected);
    let tls = claim("published-tls");
    assert_eq!(tls.verdict, ClaimVerdict::Confirmed, "{}", tls.note);
    assert!(tls.note.starts_with("holds in all 26 cases; closest case: P2 from "), "{}", tls.note);
}

#[test]
fn reports_print_the_tables_with_their_source() {
    let shown = markdown::render(&judge(&with_tables()));
    let (_, section) = shown.split_once("## Tables of the source").unwrap();
    assert!(section.contains("not measured here"));
    assert!(section.contains("| C0 | 250 MB | shared | 100 | 15,000 | 7,500 |"), "{section}");
}

#[test]
fn claims_about_tables_are_no_test_cases_of_a_run() {
    assert!(!junit::render(&judge(&with_tables())).contains("published-"));
}

#[test]
fn flat_tables_are_explained_by_connections() {
    let verdict = |id: &str| claim(id).verdict;
    assert_eq!(verdict("managed-scale-up"), ClaimVerdict::Confirmed);
    assert_eq!(verdict("managed-classes"), ClaimVerdict::Confirmed);
    let flat = claim("managed-2024-scale-up");
    assert_eq!(flat.verdict, ClaimVerdict::Refuted);
    assert!(flat.note.starts_with("false in 5 of 15 cases, holds in 10"), "{}", flat.note);
    assert_eq!(verdict("managed-2024-connections"), ClaimVerdict::Confirmed);
    let policies = claim("managed-2024-policies");
    assert_eq!(policies.verdict, ClaimVerdict::Refuted);
    let reverse = "Compute Optimized 120 GB from Enterprise policy to OSS policy";
    assert!(policies.note.contains(reverse), "{}", policies.note);
}

#[test]
fn claims_about_tables_are_counted_apart_from_those_measured() {
    let mut view = judge(&with_tables());
    let last = |view: &crate::View| {
        let text = text::summary(view, 400, false);
        text.lines().find(|line| line.contains("claims")).unwrap_or_default().to_string()
    };
    let alone = last(&view);
    assert!(alone.starts_with("claims about the source's own tables: "), "{alone}");
    let mut measured = view.claims[0].clone();
    (measured.of_tables, measured.verdict) = (false, ClaimVerdict::NotRun);
    view.claims.push(measured);
    let both = last(&view);
    assert!(
        both.starts_with("claims: 1 not run; claims about the source's own tables: "),
        "{both}"
    );
}
