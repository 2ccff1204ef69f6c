//! Roles of servers over time, from events.

use model::{EventKind, TrialEvent};

use crate::view::{RoleSpan, ServerRole};

/// The roles of a server in a phase that began at `begun_ns` on the clock of the events, without
/// gaps.
pub(crate) fn spans(
    events: &[TrialEvent],
    server: &str,
    (begun_ns, length_ns): (u64, u64),
) -> Vec<RoleSpan> {
    let own: Vec<&TrialEvent> = events.iter().filter(|event| event.subject == server).collect();
    let mut now = Server { role: ServerRole::Unknown, away: None };
    let mut found: Vec<RoleSpan> = Vec::new();
    let at_s = |at_ns: u64| at_ns.saturating_sub(begun_ns).min(length_ns) as f64 / 1e9;
    let mut begins = |at_ns: u64, role: ServerRole| {
        let from_s = at_s(at_ns);
        if let Some(last) = found.last_mut() {
            if last.role == role {
                return;
            }
            last.to_s = from_s;
        }
        found.push(RoleSpan { from_s, to_s: length_ns as f64 / 1e9, role });
    };
    begins(begun_ns, now.shown());
    for (i, event) in own.iter().enumerate() {
        now.after(event.kind, &own[i + 1..]);
        begins(event.at_ns, now.shown());
    }
    found.retain(|span| span.to_s > span.from_s);
    found
}

/// The servers that were replaced by promoted ones: for each event in chronological order, the
/// former primary if the event is a promotion. A plan interrupts the service of one primary.
pub(crate) fn replaced<'a>(events: &[&'a TrialEvent]) -> Vec<Option<&'a str>> {
    let mut primary: Option<&'a str> = None;
    let each = events.iter().map(|event| {
        let is_promoted = event.kind == EventKind::Promoted;
        if event.kind.is_fault() {
            primary = Some(&event.subject);
        }
        let before = primary.filter(|before| is_promoted && *before != event.subject);
        if is_promoted {
            primary = Some(&event.subject);
        }
        before
    });
    each.collect()
}

/// State of a server.
struct Server {
    role: ServerRole,
    /// Why it does not answer.
    away: Option<ServerRole>,
}

impl Server {
    fn shown(&self) -> ServerRole {
        self.away.unwrap_or(self.role)
    }

    /// Changes with an event, which `later` ones of the same server follow.
    fn after(&mut self, kind: EventKind, later: &[&TrialEvent]) {
        let follows = |kind: EventKind| later.iter().any(|event| event.kind == kind);
        match kind {
            EventKind::IsPrimary | EventKind::Promoted => self.answers_as(ServerRole::Primary),
            EventKind::IsReplica | EventKind::ReplicaAttached => {
                self.answers_as(ServerRole::Replica);
            }
            EventKind::Demoted if !follows(EventKind::ReplicaAttached) => {
                self.answers_as(ServerRole::Replica);
            }
            EventKind::Demoted | EventKind::ReplicaDetached => self.answers_as(ServerRole::Behind),
            EventKind::IsSentinel => self.answers_as(ServerRole::Sentinel),
            EventKind::Killed | EventKind::ShutDown | EventKind::Ended => {
                self.away = Some(ServerRole::Gone);
            }
            EventKind::Hung => self.away = Some(ServerRole::Hangs),
            EventKind::Silent if self.away.is_none() => self.away = Some(ServerRole::Hangs),
            EventKind::Back => self.away = None,
            // A server that is restored answers a little later, unless nobody noticed its absence.
            EventKind::Restored if !follows(EventKind::Back) => self.away = None,
            _ => {}
        }
    }

    fn answers_as(&mut self, role: ServerRole) {
        (self.role, self.away) = (role, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn event((at_s, kind, subject): (u64, EventKind, &str)) -> TrialEvent {
        TrialEvent { at_ns: at_s * S, kind, subject: subject.into() }
    }

    /// A kill of `a`, which `b` replaces; `a` returns as its replica.
    fn kill() -> Vec<TrialEvent> {
        [
            (1, EventKind::IsPrimary, "a"),
            (1, EventKind::IsReplica, "b"),
            (1, EventKind::IsSentinel, "c"),
            (12, EventKind::Killed, "a"),
            (12, EventKind::ReplicaDetached, "b"),
            (14, EventKind::Promoted, "b"),
            (14, EventKind::Named, "b"),
            (15, EventKind::Restored, "a"),
            (16, EventKind::Back, "a"),
            (16, EventKind::Demoted, "a"),
            (17, EventKind::ReplicaAttached, "a"),
        ]
        .map(event)
        .into()
    }

    fn roles_of(events: &[TrialEvent], server: &str) -> Vec<(f64, f64, ServerRole)> {
        let spans = spans(events, server, (10 * S, 10 * S)).into_iter();
        spans.map(|span| (span.from_s, span.to_s, span.role)).collect()
    }

    #[test]
    fn roles_follow_a_kill() {
        use ServerRole::{Behind, Gone, Primary, Replica, Sentinel, Unknown};
        let events = kill();
        let of_a =
            [(0.0, 2.0, Primary), (2.0, 6.0, Gone), (6.0, 7.0, Behind), (7.0, 10.0, Replica)];
        assert_eq!(roles_of(&events, "a"), of_a);
        let of_b = [(0.0, 2.0, Replica), (2.0, 4.0, Behind), (4.0, 10.0, Primary)];
        assert_eq!(roles_of(&events, "b"), of_b);
        assert_eq!(roles_of(&events, "c"), [(0.0, 10.0, Sentinel)]);
        assert_eq!(roles_of(&events, "d"), [(0.0, 10.0, Unknown)]);
    }

    #[test]
    fn a_hang_ends_when_the_server_answers_or_is_restored() {
        use ServerRole::{Hangs, Primary};
        let is_primary = (1, EventKind::IsPrimary, "a");
        let hang = [is_primary, (12, EventKind::Hung, "a"), (13, EventKind::Restored, "a")];
        let short = hang.map(event);
        let all = [(0.0, 2.0, Primary), (2.0, 3.0, Hangs), (3.0, 10.0, Primary)];
        assert_eq!(roles_of(&short, "a"), all);
        let noticed = [&short[..], &[event((14, EventKind::Back, "a"))]].concat();
        assert_eq!(roles_of(&noticed, "a")[1], (2.0, 4.0, Hangs));
    }

    #[test]
    fn a_promotion_names_the_replaced_server() {
        let events = kill();
        let all = replaced(&events.iter().collect::<Vec<_>>());
        let named: Vec<(usize, &str)> =
            all.iter().enumerate().filter_map(|(i, name)| Some((i, (*name)?))).collect();
        assert_eq!(named, [(5, "a")]);
    }
}
