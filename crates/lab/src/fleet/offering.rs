//! One load on all workers: they prepare it, start it at one time, and report until it is over.

use load::wire::{Observer, Offer, Part, Work};
use load::{Meter, Progress, Step, Unmetered};
use model::{Endpoint, ErrorClass, Failure};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use super::FleetError;
use super::clock::Reading;
use super::course::{Course, Reported};
use super::endpoint::SentEndpoint;
use super::joining::{Fleet, Gone, lock};
use super::link::{Arrived, End};
use super::member::Member;
use super::merged::{By, Contribution, Offered, Sum};
use super::messages::{Requests, SentEnd, SentJob, SentLoad, SentTask, ToDriver, ToWorker};
use super::strangers::Mail;
use crate::opening::{self, Opening, Those};
use crate::request_form::RequestForm;

/// Time from the last worker's readiness to the start of the load, and further time per worker:
/// every start message must arrive before.
const LEAD: Duration = Duration::from_millis(30);
const LEAD_EACH: Duration = Duration::from_micros(200);
/// How often the load is watched.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How often the meter is checked.
const CHECK_EVERY: Duration = Duration::from_millis(200);
/// How long the measurement of clocks, and the end of a load that was stopped, may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// How long workers may take to connect, besides the timeout of the load.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// A load for all workers.
pub(crate) struct Job<'a> {
    pub(crate) load: Load<'a>,
    /// Zero of the times of writes.
    pub(crate) since: Instant,
    /// Name of the phase.
    pub(crate) phase: &'a str,
}

/// What all workers do.
pub(crate) enum Load<'a> {
    /// Requests of event loops.
    Requests {
        endpoint: &'a Endpoint,
        requests: Requests,
        /// The whole load, with the threads of all workers.
        offer: &'a Offer,
        work: &'a Work,
    },
    /// Something that blocking clients do.
    Clients { opening: &'a Opening<Endpoint>, task: Task<'a> },
}

/// What all blocking clients do at one time.
#[derive(Clone, Copy)]
pub(crate) enum Task<'a> {
    /// They connect.
    Open,
    Fill,
    /// They run a step, a time after the start of the phase's measurement.
    Step(&'a Step, Option<Instant>),
    ReadBack,
}

impl Job<'_> {
    fn timeout_ns(&self) -> u64 {
        match &self.load {
            Load::Requests { offer, .. } => offer.timeout_ns,
            Load::Clients { opening, .. } => opening.options.timeout.as_nanos() as u64,
        }
    }

    /// Number of workers that take part, of so many.
    fn workers(&self, all: u32) -> u32 {
        match &self.load {
            Load::Requests { .. } => all,
            Load::Clients { opening, .. } => {
                opening::workers(&opening.workload, &opening.load, all)
            }
        }
    }

    /// Threads of worker `at` of `workers` that take part.
    fn threads(&self, at: u32, workers: u32) -> u32 {
        match &self.load {
            Load::Requests { offer, .. } => (offer.threads / workers.max(1)).max(1),
            Load::Clients { opening, .. } => {
                Those::of_process(opening.load.clients, (at, workers)).clients
            }
        }
    }

    /// True if workers on this machine share CPUs in this load that they do not share otherwise.
    fn shares_cpus(&self) -> bool {
        matches!(&self.load, Load::Clients { opening, .. } if !opening.more_cpus.is_empty())
    }

    /// What one worker would do alone. Errors: a file of TLS cannot be read.
    fn whole(&self) -> Result<SentLoad, FleetError> {
        Ok(match &self.load {
            Load::Requests { endpoint, requests, offer, .. } => SentLoad::Requests {
                endpoint: Box::new(SentEndpoint::of(endpoint)?),
                requests: Box::new(requests.clone()),
                offer: Box::new((*offer).clone()),
            },
            Load::Clients { opening, task } => SentLoad::Clients(match task {
                Task::Open => {
                    let sent = (*opening).clone().try_map(|one| SentEndpoint::of(&one))?;
                    SentTask::Open(Box::new(sent), Those::all(opening.load.clients))
                }
                Task::Fill => SentTask::Fill,
                Task::Step(step, _) => SentTask::Step(Box::new((*step).clone())),
                Task::ReadBack => SentTask::ReadBack,
            }),
        })
    }

    /// The part that worker `at` of `workers` has of the whole.
    fn part(&self, mut whole: SentLoad, (at, workers): (u32, u32), shares_cpus: bool) -> SentLoad {
        let threads = self.threads(at, workers);
        let own = |clients| Those::of_process(clients, (at, workers));
        match &mut whole {
            SentLoad::Requests { offer, .. } => {
                offer.part = Part { first: at * threads, threads: threads * workers };
                (offer.threads, offer.spin) = (threads, offer.spin && !shares_cpus);
            }
            SentLoad::Clients(SentTask::Open(opening, those)) => *those = own(opening.load.clients),
            SentLoad::Clients(SentTask::Step(step)) => {
                if let Load::Clients { opening, .. } = &self.load {
                    let all = opening.load.clients;
                    **step = step.of_clients(own(all).numbers(), all);
                }
            }
            SentLoad::Clients(SentTask::Fill | SentTask::ReadBack) => {}
        }
        whole
    }

    fn observer(&self, begins: Instant) -> Observer {
        match &self.load {
            Load::Requests { offer, work, .. } => Observer::new(offer, work, begins),
            Load::Clients { opening, task } => {
                let step = match task {
                    Task::Step(step, _) => Some(*step),
                    _ => None,
                };
                Observer::of_clients(opening.load.clients, step, begins)
            }
        }
    }

    /// What progress reports say of a part that is measured from an instant.
    fn reported(&self, measured_from: Instant) -> Reported<'_> {
        let (mut from_ns, mut planned_per_s) = (0, None);
        let is_measured = match &self.load {
            Load::Requests { requests, .. } => requests.are_measured(),
            Load::Clients { task: Task::Step(step, first), .. } => {
                planned_per_s = step.planned_per_s();
                let since = first.map(|first| measured_from.saturating_duration_since(first));
                from_ns = since.unwrap_or_default().as_nanos() as u64;
                true
            }
            Load::Clients { .. } => false,
        };
        let (phase, timeout_ns) = (self.phase, self.timeout_ns());
        Reported { phase, timeout_ns, from_ns, planned_per_s, is_measured }
    }

    /// True if a worker may have nothing to do.
    fn may_be_idle(&self) -> bool {
        matches!(&self.load, Load::Clients { task: Task::Fill, .. })
    }
}

impl Fleet {
    /// Offers requests that are all alike to a Redis server or cluster, `offer` with the threads of
    /// all workers, and merges what the workers measured.
    pub fn offer_alike(
        &self,
        (endpoint, form): (&Endpoint, &RequestForm),
        offer: &Offer,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Offered {
        let work = match form.work() {
            Ok(work) => work,
            Err(e) => {
                let failure = Some(failed(FleetError(e.to_string())));
                return Offered { failure, ..Offered::default() };
            }
        };
        let requests = Requests::Alike(form.clone());
        let (since, phase) = (Instant::now(), form.name.as_str());
        let load = Load::Requests { endpoint, requests, offer, work: &work };
        let job = Job { load, since, phase };
        self.offer(&job, stop, &mut Unmetered, progress)
    }

    /// Offers a load and merges what the workers measured.
    pub(crate) fn offer(
        &self,
        job: &Job<'_>,
        stop: &AtomicBool,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Offered {
        if let Some(message) = self.lost() {
            let failure = Some(Failure { class: ErrorClass::Lost, message });
            return Offered { failure, ..Offered::default() };
        }
        let inbox = lock(&self.inbox);
        let number = self.jobs.fetch_add(1, Ordering::Relaxed) + 1;
        let workers = job.workers(self.members.len() as u32);
        let mut offering = Offering {
            fleet: self,
            inbox: &inbox,
            number,
            workers,
            contributions: self.members.iter().map(|_| Contribution::default()).collect(),
            sum: Sum::new(job.may_be_idle()),
            failure: None,
            course: Course::of(self.members.len()),
        };
        for idle in workers as usize..self.members.len() {
            offering.contributions[idle].ended = Some(SentEnd::default());
            offering.course.end(idle);
        }
        let begins = match offering.prepare(job, stop) {
            Ok(Some(begins)) => begins,
            not_begun => {
                offering.end_prepared();
                let interrupted = not_begun.is_ok();
                return Offered { failure: not_begun.err(), interrupted, ..Offered::default() };
            }
        };
        let mut observer = job.observer(begins);
        offering.watch((job, &mut observer), stop, meter, progress);
        observer.end(meter);
        offering.clocks(|contribution| &mut contribution.after);
        let Offering { contributions, sum, failure, .. } = offering;
        let by = |(at, member): (u32, &Member)| By {
            name: member.name.clone(),
            threads: job.threads(at, workers),
            shares_cpus: member.shares_cpus || job.shares_cpus(),
        };
        let parts = (0..workers).zip(&self.members).map(by).zip(contributions);
        let mut offered = sum.complete(parts, (begins, job.since));
        observer.complete(&mut offered.phase);
        offered.failure = failure.or(offered.failure);
        offered.interrupted = stop.load(Ordering::Relaxed);
        offered
    }
}

/// A load in progress.
struct Offering<'a> {
    fleet: &'a Fleet,
    inbox: &'a Receiver<Mail<ToDriver>>,
    number: u64,
    /// Number of members that take part, the first ones.
    workers: u32,
    /// By member.
    contributions: Vec<Contribution>,
    sum: Sum,
    failure: Option<Failure>,
    course: Course,
}

impl Offering<'_> {
    fn members(&self) -> &[Member] {
        &self.fleet.members
    }

    fn send_all(&self, message: &ToWorker) {
        self.members().iter().for_each(|member| member.link.send(message));
    }

    fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Measures clocks, sends the job and starts it once all workers are connected. Returns the
    /// time of the start; `None` if the user stopped it.
    fn prepare(&mut self, job: &Job<'_>, stop: &AtomicBool) -> Result<Option<Instant>, Failure> {
        let whole = job.whole().map_err(failed)?;
        self.clocks(|contribution| &mut contribution.before);
        self.failure.take().map_or(Ok(()), Err)?;
        for (at, member) in (0..self.workers).zip(self.members()) {
            let shares_cpus = member.shares_cpus || job.shares_cpus();
            let job = SentJob {
                number: self.number,
                load: job.part(whole.clone(), (at, self.workers), shares_cpus),
                siblings: self.fleet.siblings(member, shares_cpus),
            };
            member.link.send(&ToWorker::Load { job: Box::new(job) });
        }
        let within = READY_WITHIN + Duration::from_nanos(job.timeout_ns());
        let is_ready = |c: &Contribution| c.ready || c.ended.is_some();
        self.take_until(within, stop, is_ready, "prepare its clients");
        self.failure.take().map_or(Ok(()), Err)?;
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let begins = Instant::now() + LEAD + LEAD_EACH * self.members().len() as u32;
        let taking_part = self.members().iter().take(self.workers as usize);
        for (member, contribution) in taking_part.zip(&self.contributions) {
            let Some(clock) = &contribution.before else { continue };
            let at_ns = u64::try_from(clock.worker_ns(begins)).unwrap_or(0);
            member.link.send(&ToWorker::Start { at_ns });
        }
        Ok(Some(begins))
    }

    /// Measures the clocks of all workers at once. A load that has failed is measured as well, by
    /// those that are still there.
    fn clocks(&mut self, slot: impl Fn(&mut Contribution) -> &mut Option<Reading>) {
        self.members().iter().for_each(|member| member.link.measure_clock());
        let until = Instant::now() + ANSWER_WITHIN;
        let is_missing = |c: &mut Contribution| !c.gone && slot(c).is_none();
        while let Some(unread) = self.contributions.iter_mut().position(is_missing) {
            match self.next(LOOK_EVERY) {
                Some((at, Arrived::Clock(reading))) => {
                    *slot(&mut self.contributions[at]) = Some(reading);
                }
                Some((at, arrived)) => self.take(at, arrived),
                None if Instant::now() > until => {
                    let message = format!("{} did not tell its time", self.members()[unread].name);
                    self.fail(Failure { class: ErrorClass::Other, message });
                    return;
                }
                None => {}
            }
        }
    }

    /// Takes what arrives until every contribution is `done`, something fails or `stop` is set.
    fn take_until(
        &mut self,
        within: Duration,
        stop: &AtomicBool,
        done: impl Fn(&Contribution) -> bool,
        doing: &str,
    ) {
        let until = Instant::now() + within;
        while self.failure.is_none() && !stop.load(Ordering::Relaxed) {
            let Some(late) = self.contributions.iter().position(|c| !done(c)) else { return };
            if Instant::now() > until {
                let name = self.members()[late].name.clone();
                let seconds = within.as_secs();
                let message = format!("{name} took more than {seconds} s to {doing}");
                self.fail(Failure { class: ErrorClass::Other, message });
            }
            if let Some((at, arrived)) = self.next(LOOK_EVERY) {
                self.take(at, arrived);
            }
        }
    }

    /// The next thing that arrives from a member within `wait`.
    fn next(&self, wait: Duration) -> Option<(usize, Arrived<ToDriver>)> {
        match self.inbox.recv_timeout(wait) {
            Ok((connection, arrived)) => {
                let at = self.members().iter().position(|m| m.connection == connection)?;
                Some((at, arrived))
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => None,
        }
    }

    /// A worker has left: the load fails.
    fn leave(&mut self, at: usize, why: End) {
        let gone = Gone { name: self.fleet.members[at].name.clone(), why };
        self.fail(Failure { class: ErrorClass::Lost, message: gone.to_string() });
        lock(&self.fleet.gone).get_or_insert(gone);
        self.contributions[at].ended.get_or_insert_default();
        self.contributions[at].gone = true;
        self.course.end(at);
    }

    fn take(&mut self, at: usize, arrived: Arrived<ToDriver>) {
        let name = &self.fleet.members[at].name;
        match arrived {
            Arrived::Message(ToDriver::Ready { job }) if job == self.number => {
                self.contributions[at].ready = true;
            }
            Arrived::Message(ToDriver::Progress { progress }) if progress.job == self.number => {
                self.course.take(at, *progress);
            }
            Arrived::Message(ToDriver::Ended { mut ended }) if ended.job == self.number => {
                self.sum.take(&mut ended);
                if let Some(Failure { class, message }) = &ended.failure {
                    let failure = Failure { class: *class, message: format!("{name}: {message}") };
                    self.fail(failure);
                }
                self.contributions[at].ended = Some(*ended);
                self.course.end(at);
            }
            Arrived::Gone(why) => self.leave(at, why),
            Arrived::Message(ToDriver::Leaves { why }) => self.leave(at, End::Other(why)),
            // Of an earlier load.
            Arrived::Message(_) | Arrived::Clock(_) => {}
        }
    }

    /// Takes readings and reports progress until the load is over.
    fn watch(
        &mut self,
        (job, observer): (&Job<'_>, &mut Observer),
        stop: &AtomicBool,
        meter: &mut dyn Meter,
        progress: &mut dyn FnMut(Progress<'_>),
    ) {
        let of = job.reported(observer.measured_from());
        let (mut stopping, mut check_at) = (None, Instant::now());
        while self.contributions.iter().any(|c| c.ended.is_none()) {
            if (self.failure.is_some() || stop.load(Ordering::Relaxed)) && stopping.is_none() {
                stopping = Some(Instant::now() + ANSWER_WITHIN);
                self.send_all(&ToWorker::Stop);
            }
            if stopping.is_some_and(|until| Instant::now() > until) {
                return;
            }
            let wait = observer.read_if_due(meter, LOOK_EVERY);
            if let Some((at, arrived)) = self.next(wait) {
                self.take(at, arrived);
            }
            if Instant::now() >= check_at {
                // It may ask another machine.
                check_at = Instant::now() + CHECK_EVERY;
                meter.check().unwrap_or_else(|failure| self.fail(failure));
            }
            self.course.report(&of, progress);
        }
    }

    /// After a load that did not start: ends what workers have prepared.
    fn end_prepared(&mut self) {
        self.send_all(&ToWorker::Stop);
        let until = Instant::now() + ANSWER_WITHIN;
        let is_over = |c: &Contribution| !c.ready || c.ended.is_some();
        while !self.contributions.iter().all(is_over) && Instant::now() < until {
            if let Some((at, arrived)) = self.next(LOOK_EVERY) {
                self.take(at, arrived);
            }
        }
    }
}

fn failed(FleetError(message): FleetError) -> Failure {
    Failure { class: ErrorClass::Other, message }
}
