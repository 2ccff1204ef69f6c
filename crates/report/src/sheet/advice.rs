//! The advice: which store to pick by these measurements, and why.

use stats::Verdict;

use crate::section::{Block, Part, Section};
use crate::show;
use crate::table::{Cell, Column, Line, NONE, Table, Tone};
use crate::view::{AdviceView, Advised, Agreement, RankedView, RankingView, View};

/// The recommendation table, its reasons, and the order of all targets.
pub(crate) fn section(view: &View) -> Section {
    let Advised { advice, advice_basis, advice_notes, .. } = &view.advised;
    let mut blocks = Vec::new();
    if !advice.is_empty() {
        let columns = ["shop", "size (requests)", "default", "source", "here", "agreement"];
        let lines = folded(advice).iter().map(|rows| line(rows)).collect();
        blocks.push(Block::table(Table::new(columns.map(Column::words).into(), lines)));
        let mut texts = reasons(advice, |row| Some(&row.why));
        texts.extend(reasons(advice, |row| row.second.as_ref()));
        let texts = texts.into_iter().map(|(places, why)| format!("{places}: {why}"));
        let orders = orders(view);
        let orders = orders.into_iter().map(|(sizes, order)| format!("order, {sizes}: {order}"));
        let notes = advice_notes.iter().map(|note| format!("{} ({})", note.text, note.source));
        let facts = texts.chain(advice_basis.clone()).chain(orders).chain(notes);
        blocks.extend(facts.map(Block::item));
        blocks.push(Block::Part { part: Part::Weights });
    }
    Section { id: "advice", title: "Advice", blocks }
}

/// Groups of rows with the same load, answer and reason, in the order of their first rows.
fn folded(advice: &[AdviceView]) -> Vec<Vec<&AdviceView>> {
    let is_same = |a: &AdviceView, b: &AdviceView| {
        (a.clients, &a.factory, &a.source_recommends, &a.recommended, &a.why)
            == (b.clients, &b.factory, &b.source_recommends, &b.recommended, &b.why)
    };
    let mut groups: Vec<Vec<&AdviceView>> = Vec::new();
    for row in advice {
        match groups.iter_mut().find(|rows| is_same(rows[0], row)) {
            Some(rows) => rows.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

fn line(rows: &[&AdviceView]) -> Line {
    let advice = rows[0];
    let each = |name: fn(&AdviceView) -> &String| {
        let mut names: Vec<&str> = Vec::new();
        for row in rows {
            if !names.contains(&name(row).as_str()) {
                names.push(name(row));
            }
        }
        names.join(", ")
    };
    let tone = match advice.agreement {
        Agreement::Same => Tone::Good,
        Agreement::Different => Tone::Bad,
        Agreement::Undecided => Tone::Doubt,
    };
    let here = advice.recommended.as_deref();
    Line::plain([
        each(|row| &row.shop).into(),
        Cell::number(
            format!("{} ({})", each(|row| &row.size), advice.clients),
            advice.clients.into(),
        ),
        Cell::target(&advice.factory),
        Cell::target(&advice.source_recommends),
        here.map_or_else(|| NONE.into(), Cell::target),
        Cell::from(advice.agreement.to_string()).toned(tone),
    ])
}

/// Each sentence once, with all its rows.
fn reasons(
    advice: &[AdviceView],
    read: fn(&AdviceView) -> Option<&String>,
) -> Vec<(String, String)> {
    let mut reasons: Vec<(String, String)> = Vec::new();
    for row in advice {
        let Some(sentence) = read(row) else { continue };
        let place = format!("{}, {}", row.shop, row.size);
        match reasons.iter_mut().find(|(_, why)| why == sentence) {
            Some((places, _)) => *places += &format!("; {place}"),
            None => reasons.push((place, sentence.clone())),
        }
    }
    let has_all = advice.iter().all(|row| read(row).is_some());
    if let ([(places, _)], 2.., true) = (reasons.as_mut_slice(), advice.len(), has_all) {
        *places = "every shop".into();
    }
    reasons
}

/// Verdict of a ranked target against the first, unless it is slower, which the order already says.
fn level(ranked: &RankedView) -> Option<Verdict> {
    ranked.verdict.filter(|verdict| *verdict != Verdict::Slower)
}

/// For each shop size, all targets by score with their ratio to the best, and whether the order is
/// decided.
fn orders(view: &View) -> Vec<(String, String)> {
    let order = |ranking: &RankingView| {
        let place = |ranked: &RankedView| {
            let ratio = ranked.ratio.as_ref().map_or(String::new(), |v| {
                let doubt = level(ranked).filter(|_| ranking.doubt.is_none());
                let doubt = doubt.map_or(String::new(), |verdict| format!(" ({verdict})"));
                format!(" {}{doubt}", show::ratio_value(v))
            });
            format!("{}{ratio}", ranked.target)
        };
        let prefix = match &ranking.doubt {
            Some(doubt) => format!("not decided ({doubt}): "),
            None if ranking.targets.iter().any(|r| level(r).is_some()) => "no clear best: ".into(),
            None => String::new(),
        };
        let targets: Vec<String> = ranking.targets.iter().map(place).collect();
        let size = format!("{} ({})", ranking.sizes.join(", "), ranking.clients);
        (size, prefix + &targets.join(", "))
    };
    view.advised.rankings.iter().map(order).collect()
}
