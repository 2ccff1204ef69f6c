//! What workers say of their machines. Equal facts are stated once, so that a record of a thousand
//! workers stays short.

use model::Condition;
use std::collections::BTreeMap;

/// Workers that are listed by name for one value of a fact.
const NAMED_MAX: usize = 3;

/// Facts about the machines of workers.
#[derive(Default)]
pub(super) struct Machines {
    /// By group and name of the fact, in order of appearance: each value with its warning and the
    /// workers that report it.
    facts: Vec<((String, String), Values)>,
    workers: usize,
}

type Values = BTreeMap<String, (Option<String>, Vec<String>)>;

impl Machines {
    /// Adds what a worker reports.
    pub(super) fn add(&mut self, worker: &str, facts: Vec<Condition>) {
        self.workers += 1;
        for Condition { group, name, value, warning } in facts {
            let known = self.facts.iter().position(|((g, n), _)| *g == group && *n == name);
            let at = known.unwrap_or_else(|| {
                self.facts.push(((group, name), Values::new()));
                self.facts.len() - 1
            });
            let (_, workers) =
                self.facts[at].1.entry(value).or_insert_with(|| (warning, Vec::new()));
            workers.push(worker.into());
        }
    }

    /// One fact for each value that some worker reports.
    pub(super) fn conditions(&self) -> Vec<Condition> {
        let of_fact = |((group, name), values): &((String, String), Values)| {
            let one = |(value, (warning, workers)): (&String, &(Option<String>, Vec<String>))| {
                let whose = self.whose(workers);
                Condition {
                    group: format!("{group} of {whose}"),
                    name: name.clone(),
                    value: value.clone(),
                    warning: warning.as_ref().map(|warning| format!("{whose}: {warning}")),
                }
            };
            values.iter().map(one).collect::<Vec<_>>()
        };
        self.facts.iter().flat_map(of_fact).collect()
    }

    fn whose(&self, workers: &[String]) -> String {
        if workers.len() == self.workers {
            return "all workers".into();
        }
        let named = workers[..workers.len().min(NAMED_MAX)].join(", ");
        match workers.len().saturating_sub(NAMED_MAX) {
            0 => named,
            more => format!("{named} and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(name: &str, value: &str, warning: Option<&str>) -> Condition {
        let warning = warning.map(String::from);
        Condition { group: "cpu".into(), name: name.into(), value: value.into(), warning }
    }

    #[test]
    fn equal_facts_are_stated_once_and_others_name_their_workers() {
        let mut machines = Machines::default();
        for number in 1..=6 {
            let governor = if number == 2 { "powersave" } else { "performance" };
            let warning = (number == 2).then_some("it slows down");
            let facts = vec![fact("model", "X", None), fact("governor", governor, warning)];
            machines.add(&format!("worker {number}"), facts);
        }
        let all = machines.conditions();
        let text: Vec<String> =
            all.iter().map(|c| format!("{}/{}: {}", c.group, c.name, c.value)).collect();
        assert_eq!(
            text,
            [
                "cpu of all workers/model: X",
                "cpu of worker 1, worker 3, worker 4 and 2 more/governor: performance",
                "cpu of worker 2/governor: powersave",
            ]
        );
        assert_eq!(all[2].warning.as_deref(), Some("worker 2: it slows down"));
        assert!(Machines::default().conditions().is_empty());
    }
}
