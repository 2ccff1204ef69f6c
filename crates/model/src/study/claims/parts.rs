//! Names and numbers of a claim, which its study checks.

use super::Expectation;

/// Names and numbers of a claim.
#[derive(Default)]
pub(in crate::study) struct Parts<'a> {
    pub(in crate::study) targets: Vec<&'a str>,
    pub(in crate::study) operations: Vec<&'a str>,
    /// Must be above 0.
    pub(in crate::study) numbers: Vec<f64>,
    pub(in crate::study) clients: Vec<u32>,
    /// A profile besides those of the claim.
    pub(in crate::study) profile: Option<&'a str>,
    /// Published tables.
    pub(in crate::study) tables: Vec<&'a str>,
    /// Columns that each of these tables has.
    pub(in crate::study) columns: Vec<&'a str>,
    /// Smallest and largest value that confirm the statement.
    pub(in crate::study) range: Option<(f64, f64)>,
}

impl Expectation {
    /// Its names and numbers.
    pub(in crate::study) fn parts(&self) -> Parts<'_> {
        let none = Parts::default;
        match self {
            Self::Ratio(r) => Parts {
                targets: vec![&r.a, &r.b],
                operations: r.operation.iter().map(String::as_str).collect(),
                numbers: r.shares.clone(),
                clients: r.clients.into_iter().collect(),
                range: Some((r.min, r.max.unwrap_or(f64::INFINITY))),
                ..none()
            },
            Self::Highest(e) | Self::Lowest(e) => Parts {
                targets: [&e.target].into_iter().chain(&e.among).map(String::as_str).collect(),
                operations: names(&e.operations),
                clients: e.clients.clone(),
                ..none()
            },
            Self::Narrowest(s) | Self::Widest(s) => Parts {
                targets: names(&s.among),
                operations: [&s.operation].into_iter().chain(&s.than).map(String::as_str).collect(),
                clients: vec![s.clients],
                ..none()
            },
            Self::Gains(g) => Parts {
                targets: vec![&g.a, &g.b],
                operations: names(&g.operations),
                clients: g.clients.clone(),
                numbers: vec![g.min],
                ..none()
            },
            Self::Growth(g) => Parts {
                targets: vec![&g.target],
                operations: vec![&g.operation],
                clients: vec![g.clients],
                ..none()
            },
            Self::Crossover(c) => Parts {
                targets: vec![&c.a, &c.b],
                operations: names(&c.operations),
                clients: c.clients.clone(),
                range: Some((c.min, c.max)),
                ..none()
            },
            Self::Within(w) => Parts {
                targets: vec![&w.target],
                operations: w.operation.iter().map(String::as_str).collect(),
                range: Some((w.min, w.max.unwrap_or(f64::INFINITY))),
                ..none()
            },
            Self::Fits(_) | Self::Monotone(_) => self.parts_of_tables(),
            Self::Order(_) | Self::Rises(_) | Self::Operations(_) | Self::Profiles(_) => {
                self.parts_of_lists()
            }
            of_ramps => of_ramps.parts_of_ramps(),
        }
    }

    /// Those of claims on each of several targets.
    fn parts_of_lists(&self) -> Parts<'_> {
        let none = Parts::default;
        match self {
            Self::Order(o) => Parts {
                targets: names(&o.targets),
                operations: names(&o.operations),
                clients: o.clients.clone(),
                ..none()
            },
            Self::Rises(r) => Parts {
                targets: names(&r.targets),
                operations: names(&r.operations),
                clients: r.clients.clone(),
                numbers: vec![r.min],
                ..none()
            },
            Self::Operations(o) => Parts {
                targets: names(&o.targets),
                operations: vec![&o.operation, &o.than],
                clients: vec![o.clients],
                range: Some((o.min, o.max.unwrap_or(f64::INFINITY))),
                ..none()
            },
            Self::Profiles(p) => Parts {
                targets: names(&p.targets),
                operations: vec![&p.operation],
                clients: vec![p.clients],
                profile: Some(&p.than),
                range: Some((p.min, p.max.unwrap_or(f64::INFINITY))),
                ..none()
            },
            _ => none(),
        }
    }

    fn parts_of_tables(&self) -> Parts<'_> {
        let none = Parts::default;
        match self {
            Self::Fits(f) => Parts {
                tables: names(&f.tables),
                columns: vec![&f.rate, &f.bandwidth],
                numbers: vec![f.bytes],
                ..none()
            },
            Self::Monotone(m) => Parts {
                tables: names(&m.tables),
                columns: names(&m.columns),
                range: Some((m.min, m.max.unwrap_or(f64::INFINITY))),
                ..none()
            },
            _ => none(),
        }
    }

    fn parts_of_ramps(&self) -> Parts<'_> {
        let none = Parts::default;
        match self {
            Self::Diverges(d) => {
                Parts { targets: vec![&d.a, &d.b], numbers: vec![d.low, d.high, d.min], ..none() }
            }
            Self::Slower(s) => Parts {
                targets: names(&s.targets),
                operations: vec![&s.operation, &s.than],
                numbers: s.shares.clone(),
                range: Some((s.min, s.max.unwrap_or(f64::INFINITY))),
                ..none()
            },
            Self::Steady(s) => Parts {
                targets: names(&s.targets),
                numbers: s.cpu.into_iter().chain([s.within]).collect(),
                ..none()
            },
            Self::Ceiling(c) => Parts {
                targets: vec![&c.target],
                operations: vec![&c.operation],
                range: Some((c.min_ms, c.max_ms)),
                ..none()
            },
            Self::Pick(p) => {
                Parts { targets: vec![&p.target, &p.over], numbers: vec![p.share], ..none() }
            }
            _ => none(),
        }
    }
}

fn names(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}
