//! The result as `JUnit` XML, as continuous integration reads it: a test case for the validity of
//! the run, each requirement of each result, each limit of a search, each claim, and each line of a
//! comparison. Undecided cases are skipped, never passed.
//!
//! There is no standard; this is the subset that Jenkins, GitLab and GitHub's reporters read:
//! `testsuites`, `testsuite` with counts, `testcase` with `failure` or `skipped`.

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::io;

use crate::compare::{Against, Quotient};
use crate::requirements;
use crate::view::{ClaimVerdict, SearchOutcome, Validity, View};

/// A test case.
struct Case {
    /// Suffix of its class name.
    class: &'static str,
    name: String,
    end: End,
}

/// How a test case ended.
enum End {
    Passed,
    /// The reason in one line, and details.
    Failed(String, Vec<String>),
    /// The reason why it is skipped.
    Skipped(String),
}

/// The suite of a run.
///
/// # Panics
/// Never: it is written to memory.
pub fn render(view: &View) -> String {
    let cases: Vec<Case> = [validity(view)]
        .into_iter()
        .chain(requirements(view))
        .chain(searches(view))
        .chain(claims(view))
        .collect();
    suite(&format!("{} {}", view.asked.study, view.run), view.course.took_s, &cases)
}

/// The suite of a comparison of a run with another one, by its lines.
///
/// # Panics
/// Never: it is written to memory.
pub fn of_comparison(a: &View, b: &View, against: &Against) -> String {
    let case = |line: &Quotient, class, end| Case { class, name: line.what.clone(), end };
    let slower = against.slower.iter().map(|line| {
        case(line, "compare", End::Failed(format!("slower: {}", line.ratio), Vec::new()))
    });
    let undecided = against
        .undecided
        .iter()
        .map(|line| case(line, "compare", End::Skipped(format!("undecided: {}", line.ratio))));
    let others = against.others.iter().map(|line| case(line, "compare", End::Passed));
    let runs = [validity(a), validity(b)].into_iter();
    let cases: Vec<Case> = runs.chain(slower).chain(undecided).chain(others).collect();
    suite(&format!("{} against {}", b.run, a.run), 0.0, &cases)
}

fn validity(view: &View) -> Case {
    let word = view.validity.heading();
    let end = match view.validity {
        Validity::Valid => End::Passed,
        Validity::Unreplicated => End::Skipped(view.reasons.join("; ")),
        Validity::NotSteady | Validity::Invalid => End::Failed(word.into(), view.reasons.clone()),
    };
    Case { class: "validity", name: format!("run {} may be used", view.run), end }
}

fn requirements(view: &View) -> impl Iterator<Item = Case> {
    let cases = |(words, rows): (&str, Vec<_>)| {
        let case = |(row, required): (&crate::view::Row, &crate::view::Required)| {
            let end = if required.is_met {
                End::Passed
            } else {
                End::Failed(format!("measured {}", required.shown), Vec::new())
            };
            let place = format!("{}, {}, {}", row.target, row.workload, row.load);
            Case {
                class: "requirement",
                name: format!("{words}: {} of {place}", row.operation),
                end,
            }
        };
        rows.into_iter().map(case).collect::<Vec<_>>()
    };
    requirements::by_words(view).into_iter().flat_map(cases).collect::<Vec<_>>().into_iter()
}

fn searches(view: &View) -> impl Iterator<Item = Case> {
    view.searches.iter().map(|search| {
        let end = match search.outcome {
            SearchOutcome::Found => End::Passed,
            _ => End::Failed(search.sentence.clone(), Vec::new()),
        };
        let limits = search.limits.join(" and ");
        let name = format!("a rate of {} with {limits} is found", search.target);
        Case { class: "search", name, end }
    })
}

fn claims(view: &View) -> impl Iterator<Item = Case> {
    // What a source publishes is the same in every run.
    view.claims.iter().filter(|claim| !claim.of_tables).map(|claim| {
        let end = match claim.verdict {
            ClaimVerdict::Confirmed => End::Passed,
            ClaimVerdict::Refuted => End::Failed(claim.note.clone(), vec![claim.text.clone()]),
            ClaimVerdict::Undecided | ClaimVerdict::NotRun => {
                End::Skipped(format!("{}: {}", claim.verdict, claim.note))
            }
        };
        let place = claim.workload.as_ref().map_or_else(String::new, |w| format!(" on {w}"));
        Case { class: "claim", name: format!("{}{place}", claim.id), end }
    })
}

fn suite(name: &str, took_s: f64, cases: &[Case]) -> String {
    let count =
        |is: fn(&End) -> bool| cases.iter().filter(|case| is(&case.end)).count().to_string();
    let failed = count(|end| matches!(end, End::Failed(..)));
    let skipped = count(|end| matches!(end, End::Skipped(_)));
    let (tests, time) = (cases.len().to_string(), format!("{took_s:.3}"));
    let counts = [("tests", tests.as_str()), ("failures", &failed), ("skipped", &skipped)];
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
    let write = |xml: &mut Writer<Vec<u8>>| -> io::Result<()> {
        xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
        let all = xml.create_element("testsuites").with_attributes(counts);
        all.write_inner_content(|xml| {
            let suite =
                xml.create_element("testsuite").with_attribute(("name", legal(name).as_str()));
            let suite = suite.with_attributes(counts).with_attribute(("time", time.as_str()));
            suite.write_inner_content(|xml| {
                cases.iter().try_for_each(|case| write_case(xml, case))
            })?;
            Ok(())
        })?;
        Ok(())
    };
    write(&mut xml).expect("memory takes everything");
    String::from_utf8_lossy(&xml.into_inner()).into_owned() + "\n"
}

fn write_case(xml: &mut Writer<Vec<u8>>, case: &Case) -> io::Result<()> {
    let (name, class) = (legal(&case.name), format!("cachedyno.{}", case.class));
    let element = xml.create_element("testcase");
    let element = element.with_attributes([("classname", class.as_str()), ("name", &name)]);
    match &case.end {
        End::Passed => element.write_empty()?,
        End::Skipped(why) => element.write_inner_content(|xml| {
            let why = legal(why);
            xml.create_element("skipped")
                .with_attribute(("message", why.as_str()))
                .write_empty()?;
            Ok(())
        })?,
        End::Failed(why, more) => element.write_inner_content(|xml| {
            let (why, more) = (legal(why), legal(&more.join("\n")));
            let failure = xml.create_element("failure").with_attribute(("message", why.as_str()));
            failure.write_text_content(BytesText::new(&more))?;
            Ok(())
        })?,
    };
    Ok(())
}

/// Removes characters that XML 1.0 does not allow: control characters except tab and line feed, and
/// two noncharacters.
fn legal(text: &str) -> String {
    let is_legal = |c: &char| {
        matches!(c, '\t' | '\n') || (*c >= ' ' && !matches!(c, '\u{7f}' | '\u{fffe}' | '\u{ffff}'))
    };
    text.chars().filter(is_legal).collect()
}
