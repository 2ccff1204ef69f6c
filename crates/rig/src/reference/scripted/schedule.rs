//! Due times of replies, computed with a textbook queue model.
//!
//! `due = max(arrival, end of the previous request) + service`, with one end per server,
//! delayed by stalls. It does not read a clock: equal arrivals give equal due times.

use super::script::{Fault, Script, Service, Stall};
use stats::SplitMix64;

/// Purposes of random numbers.
const SERVICES: u64 = 1;
const FAULTS: u64 = 2;

/// An independent random number generator per purpose for the same seed.
fn numbers(seed: u64, purpose: u64) -> SplitMix64 {
    SplitMix64::new(SplitMix64::new(seed ^ purpose.wrapping_mul(0xd1b5_4a32_d192_ed03)).next_u64())
}

/// The queue of a scripted server. Times are nanoseconds of any one clock.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    service: Service,
    random: SplitMix64,
    /// Time at which each server becomes free.
    free_ns: Vec<u64>,
    /// Minimum time between two replies, and the time of the last one.
    gap_ns: u64,
    left_ns: u64,
    calendar: Calendar,
}

impl Schedule {
    pub(super) fn new(script: &Script) -> Self {
        Self {
            service: script.service,
            random: numbers(script.seed, SERVICES),
            free_ns: vec![0; script.servers.max(1)],
            gap_ns: script.rate_per_s.map_or(0, |rate| (1e9 / rate).round() as u64),
            left_ns: 0,
            calendar: Calendar { first_request_ns: None, stalls: script.stalls.clone() },
        }
    }

    /// Adds a request and returns the due time of its reply. Arrivals must not go back in time.
    pub(super) fn admit(&mut self, arrival_ns: u64) -> u64 {
        self.calendar.first_request_ns.get_or_insert(arrival_ns);
        let service_ns = self.draw_ns();
        let mut due_ns = arrival_ns;
        // There is at least one server; the first one to become free serves the request.
        if let Some(free_ns) = self.free_ns.iter_mut().min() {
            due_ns = self.calendar.after(arrival_ns.max(*free_ns), service_ns);
            *free_ns = due_ns;
        }
        if self.gap_ns > 0 {
            due_ns = self.calendar.after(due_ns.max(self.left_ns + self.gap_ns), 0);
            self.left_ns = due_ns;
        }
        due_ns
    }

    /// End of the stall at this time; `None` if there is none.
    pub(super) fn stalled_until(&self, now_ns: u64) -> Option<u64> {
        self.calendar.stalled_until(now_ns)
    }

    fn draw_ns(&mut self) -> u64 {
        match self.service {
            Service::None => 0,
            Service::Constant { ns } => ns,
            Service::Exponential { mean_ns } => self.random.exponential(mean_ns as f64) as u64,
            Service::Bimodal { fast_ns, slow_ns, slow_share } => {
                if self.random.open_unit() < slow_share { slow_ns } else { fast_ns }
            }
        }
    }
}

/// Stalls of the server.
#[derive(Clone, Debug)]
struct Calendar {
    /// Time of the first request; no stall starts before it.
    first_request_ns: Option<u64>,
    stalls: Vec<Stall>,
}

impl Calendar {
    /// End of `work_ns` of work that starts at `start_ns`. Work does not advance during stalls.
    /// Work that would finish when a stall starts finishes at its end.
    fn after(&self, start_ns: u64, mut work_ns: u64) -> u64 {
        let mut at_ns = start_ns;
        loop {
            while let Some(end_ns) = self.stalled_until(at_ns) {
                at_ns = end_ns;
            }
            match self.next_ns(at_ns) {
                Some(begin_ns) if at_ns + work_ns >= begin_ns => {
                    work_ns -= begin_ns - at_ns;
                    at_ns = begin_ns;
                }
                _ => return at_ns + work_ns,
            }
        }
    }

    fn stalled_until(&self, at_ns: u64) -> Option<u64> {
        let since_ns = at_ns.checked_sub(self.first_request_ns?)?;
        let end_ns = |stall: &Stall| match *stall {
            Stall::Every { for_ns, every_ns } => {
                let into_ns = since_ns % every_ns;
                (since_ns >= every_ns && into_ns < for_ns).then(|| at_ns - into_ns + for_ns)
            }
            Stall::Once { for_ns, after_ns } => {
                let into_ns = since_ns.checked_sub(after_ns)?;
                (into_ns < for_ns).then(|| at_ns - into_ns + for_ns)
            }
        };
        self.stalls.iter().filter_map(end_ns).max()
    }

    /// Start of the next stall after this time, at which there is none.
    fn next_ns(&self, at_ns: u64) -> Option<u64> {
        let since_ns = at_ns.checked_sub(self.first_request_ns?)?;
        let into_ns = |stall: &Stall| match *stall {
            Stall::Every { every_ns, .. } => Some((since_ns / every_ns + 1) * every_ns),
            Stall::Once { after_ns, .. } => (after_ns > since_ns).then_some(after_ns),
        };
        self.stalls.iter().filter_map(into_ns).min().map(|into_ns| at_ns - since_ns + into_ns)
    }
}

/// Draws the faults of requests.
#[derive(Clone, Debug)]
pub(super) struct FaultSampler {
    random: SplitMix64,
    /// Faults with the cumulative share up to and including each.
    faults: Vec<(Fault, f64)>,
}

impl FaultSampler {
    pub(super) fn new(script: &Script) -> Self {
        let mut end = 0.0;
        let upper = |(fault, share): &(Fault, f64)| {
            end += share;
            (fault.clone(), end)
        };
        let faults = script.faults.iter().map(upper).collect();
        Self { random: numbers(script.seed, FAULTS), faults }
    }

    /// The fault of the next request, if any.
    pub(super) fn draw(&mut self) -> Option<&Fault> {
        if self.faults.is_empty() {
            return None;
        }
        let drawn = self.random.open_unit();
        self.faults.iter().find(|(_, end)| drawn < *end).map(|(fault, _)| fault)
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
