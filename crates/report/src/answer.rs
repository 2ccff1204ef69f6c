//! The answer to the study's question, in sentences: which target wins, by how much, and with what
//! confidence. All outputs share it.

use model::{Load, Schedule};
use stats::compare::FEWEST_BLOCKS;

use stats::Verdict;

use crate::alone::SoleTarget;
use crate::highest;
use crate::hits;
use crate::search::per_s;
use crate::show;
use crate::standings::{Against, Group, Outcome, Standings, standings};
use crate::tiers;
use crate::view::{Answer, Comparison, Piece, PieceStyle, SearchView, Sentence, Value, View};

/// Maximum number of profile and load pairs that each get their own sentence in the summary.
const PLACES_MAX: usize = 2;

/// Names of operations within a sentence.
const DOING: [(&str, &str); 7] = [
    ("write", "writing"),
    ("read", "reading"),
    ("change", "changing"),
    ("mixed", "the mix"),
    ("page", "a whole page"),
    ("with-gc", "pages with deletion of expired sessions"),
    ("without-gc", "pages without it"),
];

type Pieces = Vec<Piece>;

fn plain(text: impl Into<String>) -> Piece {
    Piece::new(PieceStyle::Plain, text)
}

fn target(name: &str) -> Piece {
    Piece::new(PieceStyle::Target, name)
}

fn figure(text: impl Into<String>) -> Piece {
    Piece::new(PieceStyle::Figure, text)
}

fn doubt(text: impl Into<String>) -> Piece {
    Piece::new(PieceStyle::Doubt, text)
}

/// The answer of a judged run; `alone` are the targets without a comparison.
pub(crate) fn answer(view: &View, alone: &[SoleTarget]) -> Answer {
    let tables = standings(view);
    // Shares of a rate are not ranked: the answer says which one survives a fault.
    let is_share = |table: &&Standings<'_>| matches!(table.load.schedule, Schedule::Share(_));
    let ranked = tables.iter().filter(|table| !is_share(table));
    let places: Vec<Sentence> = ranked.map(|table| of_place(view, alone, table)).collect();
    let found = found(view);
    if places.len() <= PLACES_MAX.max(alone.len()) {
        return Answer { summary: found.into_iter().chain(places).collect(), places: Vec::new() };
    }
    let over_all = Sentence { place: String::new(), pieces: summary(view, &tables) };
    Answer { summary: found.into_iter().chain([over_all]).collect(), places }
}

/// How the targets of searches and ramps compare, the sentence of each, and how caches help.
fn found(view: &View) -> Vec<Sentence> {
    let own = |name: &str, sentence: &str, place: &str| Sentence {
        place: place.into(),
        pieces: with_name(name, sentence),
    };
    let profiles = view.ramps.iter().map(|ramp| ramp.workload.as_str());
    let has_many = profiles.clone().any(|profile| Some(profile) != profiles.clone().next());
    let searches = view.searches.iter().map(|search| own(&search.target, &search.sentence, ""));
    let ramps = view
        .ramps
        .iter()
        .map(|ramp| own(&ramp.target, &ramp.sentence, if has_many { &ramp.workload } else { "" }));
    let helps = view.ramps.iter().filter_map(|ramp| {
        let helps = ramp.helps.as_ref()?;
        let place = if has_many { ramp.workload.as_str() } else { "" };
        Some(own(&ramp.target, &helps.sentence, place))
    });
    let limits = tiers::sentences(view);
    let limits = limits.iter().map(|(target, sentence)| own(target, sentence, ""));
    let peaks =
        peaks(view).map(|text| Sentence { place: String::new(), pieces: vec![plain(text)] });
    let survivals =
        view.happened.survivals.iter().map(|one| own(&one.target, &one.sentence, &one.workload));
    survivals
        .chain(sustained(view, has_many))
        .chain(searches)
        .chain(ramps)
        .chain(helps)
        .chain(peaks)
        .chain(limits)
        .collect()
}

/// How the targets of searches and ramps compare: a sentence for each pair of targets.
fn sustained(view: &View, has_many: bool) -> Vec<Sentence> {
    let all: Vec<(&Comparison, &'static str)> =
        view.comparisons.iter().filter_map(|c| Some((c, highest::what(c)?))).collect();
    let most = all.iter().map(|(c, _)| c.blocks as usize).max().unwrap_or(FEWEST_BLOCKS);
    if most < FEWEST_BLOCKS {
        let s = if most == 1 { "" } else { "s" };
        let why = format!(" between them: {most} block{s}, {FEWEST_BLOCKS} are needed");
        let pieces = vec![doubt("no winner can be named"), plain(why)];
        return vec![Sentence { place: String::new(), pieces }];
    }
    let same = |(x, _): &(&Comparison, &str), (y, _): &(&Comparison, &str)| {
        (&x.workload, &x.a, &x.b) == (&y.workload, &y.a, &y.b)
    };
    let sentence = |pair: &[(&Comparison, &'static str)]| Sentence {
        place: if has_many { pair[0].0.workload.clone() } else { String::new() },
        pieces: of_pair(view, pair),
    };
    all.chunk_by(same).map(sentence).collect()
}

/// `memcached sustains more than redis (highest rate reached 1.65× [1.50, 1.81]); undecided between
/// memcached and redis: memcached / redis knee 0.98× [0.90, 1.07]`.
fn of_pair(view: &View, pair: &[(&Comparison, &'static str)]) -> Pieces {
    let (a, b) = (pair[0].0.a.as_str(), pair[0].0.b.as_str());
    let of = |verdict: Verdict| pair.iter().filter(move |(c, _)| c.verdict == verdict);
    let figures = |verdict, turned: bool| {
        let one = |(c, what): &(&Comparison, &'static str)| {
            let ratio = if turned { c.ratio.inverse() } else { c.ratio };
            vec![plain(format!("{what} ")), figure(show::ratio_value(&ratio))]
        };
        joined(of(verdict).map(one).collect(), ", ", ", ")
    };
    let mut clauses = Vec::new();
    for (verdict, winner, loser) in [(Verdict::Faster, a, b), (Verdict::Slower, b, a)] {
        if of(verdict).next().is_some() {
            let who = vec![target(winner), plain(" sustains more than "), target(loser)];
            let by = figures(verdict, verdict == Verdict::Slower);
            clauses.push([who, vec![plain(" (")], by, vec![plain(")")]].concat());
        }
    }
    let both = vec![target(a), plain(" and "), target(b)];
    if of(Verdict::Equal).next().is_some() {
        let zone = show::percent(view.asked.equivalence_zone);
        let equal = vec![plain(" are equal "), figure(format!("within ±{zone}")), plain(" (")];
        let by = figures(Verdict::Equal, false);
        clauses.push([both.clone(), equal, by, vec![plain(")")]].concat());
    }
    if of(Verdict::Undecided).next().is_some() {
        let label = if clauses.is_empty() { "no winner can be named" } else { "undecided" };
        let label = vec![doubt(label), plain(" between ")];
        let mut reasons: Vec<&str> =
            of(Verdict::Undecided).filter_map(|(c, _)| c.doubt.as_deref()).collect();
        reasons.dedup();
        let why = if reasons.is_empty() {
            Pieces::new()
        } else {
            vec![plain(format!(" ({})", reasons.join("; ")))]
        };
        let by = figures(Verdict::Undecided, false);
        clauses.push([label, both, vec![plain(": ")], quotient(a, b), by, why].concat());
    }
    joined(clauses, "; ", "; ")
}

/// The pieces of a sentence that starts with the name of a target.
fn with_name(name: &str, sentence: &str) -> Pieces {
    match sentence.strip_prefix(name) {
        Some(rest) => vec![target(name), plain(rest)],
        None => vec![plain(sentence)],
    }
}

/// `peak, ignoring the limits: 160,000/s`; with several searches, each with its target.
fn peaks(view: &View) -> Option<String> {
    let one = |search: &SearchView| {
        let of =
            if view.searches.len() > 1 { format!("{} ", search.target) } else { String::new() };
        Some(of + &per_s(search.peak_per_s?))
    };
    let all: Vec<String> = view.searches.iter().filter_map(one).collect();
    (!all.is_empty()).then(|| format!("peak, ignoring the limits: {}", all.join(", ")))
}

/// The result at one profile and load.
fn of_place(view: &View, alone: &[SoleTarget], table: &Standings<'_>) -> Sentence {
    let place = format!("{}, {}", table.workload, table.load);
    let same = |workload: &str, load: &Load| workload == table.workload && load == table.load;
    let pieces = match alone.iter().find(|alone| same(&alone.workload, &alone.load)) {
        Some(alone) => with_name(&alone.target, &alone.sentence),
        None => compared(view, &table.whole()),
    };
    Sentence { place, pieces }
}

/// Comparison of the targets at one profile and load.
fn compared(view: &View, groups: &[&Group<'_>]) -> Pieces {
    let of = |outcome| groups.iter().filter(move |g| g.outcome == Some(outcome)).copied();
    let fastest: Vec<&Group<'_>> = of(Outcome::Fastest).collect();
    let mut clauses = winners(&by_best(&fastest), |won| {
        joined(won.iter().map(|group| ahead_of_next(view, group)).collect(), ", ", " and ")
    });
    let zone = show::percent(view.asked.equivalence_zone);
    let equal: Vec<&Group<'_>> = of(Outcome::Equal).collect();
    let same = |a: &&Group<'_>, b: &&Group<'_>| tied(a) == tied(b);
    clauses.extend(equal.chunk_by(same).map(|alike| {
        let within = figure(format!("within ±{zone}"));
        let middle = [plain(" are equal "), within, plain(" at ")];
        let at = alike
            .iter()
            .map(|g| [vec![plain(doing(g.operation))], ratio(g, Pieces::new())].concat());
        [tied(alike[0]), middle.to_vec(), joined(at.collect(), ", ", " and ")].concat()
    }));
    let mut reasons: Vec<&str> =
        of(Outcome::Undecided).filter_map(|g| reason(g, view.asked.equivalence_zone)).collect();
    reasons.dedup();
    let open: Vec<Pieces> = of(Outcome::Undecided).map(undecided).collect();
    if !open.is_empty() {
        let why = reasons.into_iter().map(|why| plain(format!(", {why}"))).collect();
        let open = joined(open, "; ", "; ");
        clauses.push([vec![doubt("undecided"), plain(": ")], open, why].concat());
    }
    let alone: Vec<&Group<'_>> = of(Outcome::Alone).collect();
    if !alone.is_empty() {
        let what = show::listed(&alone.iter().map(|g| doing(g.operation)).collect::<Vec<_>>());
        let who = by_best(&alone).into_iter().map(|(name, _)| vec![target(name)]).collect();
        let who = joined(who, ", ", " and ");
        // Others have too few blocks.
        let is_partial = alone.iter().any(|group| group.standings.len() > 1);
        let on = if is_partial { "in enough blocks on" } else { "on" };
        let what = vec![plain(format!("{what} was only measured {on} "))];
        clauses.push([what, who].concat());
    }
    if clauses.is_empty() {
        return no_winner(view);
    }
    joined(clauses, "; ", "; ")
}

/// `redis is fastest at …`, then `files at …` for each further target and what it is best at.
fn winners<'a>(
    best: &[(&'a str, Vec<&Group<'a>>)],
    at: impl Fn(&[&Group<'a>]) -> Pieces,
) -> Vec<Pieces> {
    let clause = |(i, (name, won)): (usize, &(&'a str, Vec<&Group<'a>>))| {
        let verb = if i == 0 { " is fastest at " } else { " at " };
        [vec![target(name), plain(verb)], at(won)].concat()
    };
    best.iter().enumerate().map(clause).collect()
}

/// `reading (1.35× [1.30, 1.40] as fast as files)`; also what a target found that misses more.
fn ahead_of_next(view: &View, group: &Group<'_>) -> Pieces {
    let mut pieces = vec![plain(doing(group.operation))];
    if let Some((next, ratio)) = group.next() {
        let by = figure(show::ratio_value(&ratio));
        let next = target(&next.row.target);
        pieces.extend([plain(" ("), by, plain(" as fast as "), next]);
        pieces.extend(hits::of_fastest(view, group).map(|share| found_only(&[share])));
        pieces.push(plain(")"));
    }
    pieces
}

/// What a target found that is fast because it misses.
fn found_only(shares: &[f64]) -> Piece {
    let least = shares.iter().copied().fold(1.0, f64::min);
    doubt(format!(", but found only {} of what it read", show::share_of_all(least)))
}

/// A statement that no winner can be named, with the reason.
fn no_winner(view: &View) -> Pieces {
    let why = match view.course.blocks {
        1 => ": 1 block gives no interval".into(),
        blocks if (1..FEWEST_BLOCKS as u32).contains(&blocks) => {
            format!(": {blocks} blocks give no interval")
        }
        _ => ": nothing could be compared".into(),
    };
    vec![doubt("no winner can be named"), plain(why)]
}

/// Why an operation is undecided although the interval alone would decide it.
fn reason<'a>(group: &'a Group<'_>, zone: f64) -> Option<&'a str> {
    let is_outside_zone = |ratio: &Value| {
        ratio.interval().is_some_and(|(lo, hi)| lo > 1.0 + zone || hi < 1.0 / (1.0 + zone))
    };
    group.standings.iter().find_map(|s| match &s.against {
        Against::Other { verdict: Verdict::Undecided, ratio, doubt } if is_outside_zone(ratio) => {
            doubt.as_deref()
        }
        _ => None,
    })
}

/// The targets between which an operation is undecided.
fn undecided(group: &Group<'_>) -> Pieces {
    let between = vec![plain(format!("{} between ", doing(group.operation)))];
    let of = match (group.best(), group.next()) {
        // The ratio of one pair of several targets needs its names.
        (Some(best), Some((next, _))) if group.tied().count() > 2 => {
            quotient(&best.row.target, &next.row.target)
        }
        _ => Pieces::new(),
    };
    [between, tied(group), ratio(group, of)].concat()
}

/// The best target and those that may be as fast.
fn tied(group: &Group<'_>) -> Pieces {
    let names = group.tied().map(|standing| vec![target(&standing.row.target)]);
    joined(names.collect(), ", ", " and ")
}

/// ` (1.02× [0.98, 1.06])`: the ratio of the best to the next, after the words `of`.
fn ratio(group: &Group<'_>, of: Pieces) -> Pieces {
    let ratio = group.next().map(|(_, ratio)| figure(show::ratio_value(&ratio)));
    let words = |ratio| [vec![plain(" (")], of, vec![ratio, plain(")")]].concat();
    ratio.map_or_else(Pieces::new, words)
}

/// `redis / memcached `, before a ratio.
fn quotient(a: &str, b: &str) -> Pieces {
    vec![target(a), plain(" / "), target(b), plain(" ")]
}

/// Groups by their best target, in order of first occurrence.
fn by_best<'a, 'b>(groups: &[&'b Group<'a>]) -> Vec<(&'a str, Vec<&'b Group<'a>>)> {
    let mut found: Vec<(&str, Vec<&Group<'_>>)> = Vec::new();
    for group in groups {
        let Some(best) = group.best() else { continue };
        match found.iter_mut().find(|(name, _)| *name == best.row.target) {
            Some((_, own)) => own.push(group),
            None => found.push((&best.row.target, vec![group])),
        }
    }
    found
}

/// Summary over many profiles and loads: which target is fastest at which operation, in how many
/// cases and by how much.
fn summary(view: &View, tables: &[Standings<'_>]) -> Pieces {
    let groups: Vec<&Group<'_>> = tables.iter().flat_map(Standings::whole).collect();
    let of = |outcome| groups.iter().filter(move |g| g.outcome == Some(outcome)).copied();
    let fastest: Vec<&Group<'_>> = of(Outcome::Fastest).collect();
    let mut best = by_best(&fastest);
    best.sort_by_key(|(_, won)| std::cmp::Reverse(won.len()));
    let mut clauses = winners(&best, |won| over_cases(view, &groups, won));
    let zone = show::percent(view.asked.equivalence_zone);
    let others = [
        (Outcome::Equal, plain(format!("equal within ±{zone}"))),
        (Outcome::Undecided, doubt("undecided")),
        (Outcome::Alone, plain("only measured on one target")),
    ];
    for (outcome, label) in others {
        let own: Vec<&Group<'_>> = of(outcome).collect();
        if !own.is_empty() {
            let counted = counted(&groups, &own, |_| Pieces::new());
            clauses.push([vec![label, plain(": ")], counted].concat());
        }
    }
    if clauses.is_empty() { no_winner(view) } else { joined(clauses, "; ", "; ") }
}

/// `reading (1.35× to 4.30× as fast as the next) and writing in 3 of 4 cases (…)`.
fn over_cases(view: &View, all: &[&Group<'_>], won: &[&Group<'_>]) -> Pieces {
    counted(all, won, |own| {
        let leads = own.iter().filter_map(|group| Some(group.next()?.1));
        let leads: Vec<f64> = leads.map(|Value { center, .. }| center).collect();
        let ends = [leads.iter().copied().reduce(f64::min), leads.into_iter().reduce(f64::max)];
        let [Some(least), Some(most)] = ends else { return Pieces::new() };
        let [least, most] = [least, most].map(show::ratio);
        let by = if least == most { least } else { format!("{least} to {most}") };
        let mut pieces = vec![plain(" ("), figure(by), plain(" as fast as the next")];
        let shares: Vec<f64> = own.iter().filter_map(|g| hits::of_fastest(view, g)).collect();
        pieces.extend((!shares.is_empty()).then(|| found_only(&shares)));
        pieces.push(plain(")"));
        pieces
    })
}

/// The operations of `some` groups, each with its number of cases among `all` and the lead in
/// brackets from `by`.
fn counted<'a>(
    all: &[&Group<'a>],
    some: &[&Group<'a>],
    by: impl Fn(&[&Group<'a>]) -> Pieces,
) -> Pieces {
    let mut operations: Vec<&str> = Vec::new();
    for group in some {
        if !operations.contains(&group.operation) {
            operations.push(group.operation);
        }
    }
    let clause = |operation: &&str| {
        let own: Vec<&Group<'a>> =
            some.iter().filter(|g| g.operation == *operation).copied().collect();
        let cases = all.iter().filter(|g| g.operation == *operation && g.outcome.is_some()).count();
        let mut pieces = vec![plain(doing(operation))];
        if own.len() < cases {
            pieces.push(plain(format!(" in {} of {cases} cases", own.len())));
        }
        pieces.extend(by(&own));
        pieces
    };
    joined(operations.iter().map(clause).collect(), ", ", " and ")
}

fn doing(operation: &str) -> String {
    let known = DOING.iter().find(|(own, _)| *own == operation);
    known.map_or(operation, |(_, doing)| doing).into()
}

/// Joins parts with `between`, and the final one with `last`.
fn joined(parts: Vec<Pieces>, between: &str, last: &str) -> Pieces {
    let count = parts.len();
    let mut all = Pieces::new();
    for (i, part) in parts.into_iter().enumerate() {
        if i > 0 {
            all.push(plain(if i + 1 == count { last } else { between }));
        }
        all.extend(part);
    }
    all
}
