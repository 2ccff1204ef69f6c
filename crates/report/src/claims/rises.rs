//! Rates that rise with the number of clients.

use model::study::claims::Rises;
use stats::Doubt;

use super::context::{Context, Kind};
use super::judged::{Judged, all_cases};
use crate::cases::Case;
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
        let (mut cases, mut doubt) = (Vec::new(), None);
        for target in &self.targets {
            for operation in &self.operations {
                for pair in self.clients.windows(2) {
                    let (from, to) = (pair[0], pair[1]);
                    let (ratio, blocks) =
                        context.growth_of_rate((target, operation), (from, to))?;
                    let own_doubt = Doubt::about(blocks);
                    let ends = ratio.interval().filter(|_| own_doubt.is_none());
                    doubt = doubt.or(own_doubt);
                    let place = format!("{operation} on {target} from {from} to {to} clients");
                    cases.push(Case { ratio, ends, place, caveat: String::new() });
                }
            }
        }
        let range = (self.min, f64::INFINITY);
        all_cases(&cases, range, (doubt, "operation"), |case| {
            format!(", where the rate changes by {}", show::ratio(case.ratio.center))
        })
    }
}
