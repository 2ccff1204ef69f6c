//! Rates that rise with the number of clients.

use model::study::claims::Rises;

use super::context::{Context, Kind};
use super::judged::{Judged, all_measured};
use crate::show;

impl Kind for Rises {
    fn expected(&self) -> String {
        let Self { targets, operations, clients, min } = self;
        let by =
            if *min > 1.0 { format!(" at least {}", show::ratio(*min)) } else { String::new() };
        let clients: Vec<String> = clients.iter().map(ToString::to_string).collect();
        format!(
            "rates of {} rise{by} from {} clients ({})",
            targets.join(" and "),
            clients.join(" to "),
            operations.join(", ")
        )
    }

    fn judge(&self, context: &Context<'_>) -> Result<Judged, Judged> {
        let mut grown = Vec::new();
        for target in &self.targets {
            for operation in &self.operations {
                for pair in self.clients.windows(2) {
                    let (from, to) = (pair[0], pair[1]);
                    let place = format!("{operation} on {target} from {from} to {to} clients");
                    let ratio = context.growth_of_rate((target, operation), (from, to));
                    grown.push(ratio.map(|ratio| (place, ratio)));
                }
            }
        }
        let range = (self.min, f64::INFINITY);
        all_measured(grown.into_iter(), range, "operation", |case| {
            format!(", where the rate changes by {}", show::ratio(case.ratio.center))
        })
    }
}
