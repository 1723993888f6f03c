//! Owns when a schedule ticks: the expression in its time zone, and which ticks are due. Reads no clock.

use std::time::Duration;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::parser::{CronParser, Seconds};
use leasehold_core::{Error, Result, Timestamp};

use super::schedule::{Missed, Schedule};

/// The most ticks of one schedule in one round.
pub(super) const TICKS_MAX: usize = 100;
/// One step of the store's clock.
const MOMENT: Duration = Duration::from_micros(1);

/// A cron expression in a time zone.
#[derive(Debug)]
pub(super) struct Calendar {
    cron: Cron,
    zone: Tz,
}

impl Calendar {
    pub(super) fn new(text: &str, zone: &str) -> Result<Self> {
        let parser = CronParser::builder().seconds(Seconds::Optional).build();
        let cron = parser.parse(text).map_err(|error| {
            let why = format!("cron expression {text:?}: {error}");
            Error::invalid("schedule", why)
        })?;
        let zone = zone.parse().map_err(|_| {
            Error::invalid("schedule", format!("{zone:?} is not the name of a time zone"))
        })?;
        let calendar = Self { cron, zone };
        let ever = calendar.next(Timestamp::from_micros(0)?);
        ever.map(|_| calendar).ok_or_else(|| {
            Error::invalid("schedule", format!("cron expression {text:?}: no day ever fits it"))
        })
    }

    fn local(&self, at: Timestamp) -> Option<DateTime<Tz>> {
        Some(DateTime::<Utc>::from_timestamp_micros(at.as_micros())?.with_timezone(&self.zone))
    }

    /// The first tick after an instant; `None` when there is none any more.
    pub(super) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let tick = self.cron.find_next_occurrence(&self.local(after)?, false).ok()?;
        Timestamp::from_micros(tick.timestamp_micros()).ok().filter(|tick| *tick > after)
    }

    /// The last tick at or before an instant.
    fn last(&self, until: Timestamp) -> Option<Timestamp> {
        let tick = self.cron.find_previous_occurrence(&self.local(until)?, true).ok()?;
        Timestamp::from_micros(tick.timestamp_micros()).ok().filter(|tick| *tick <= until)
    }

    /// The ticks after `seen` that are to run now, in order, at most [`TICKS_MAX`].
    pub(super) fn due(
        &self,
        schedule: &Schedule,
        seen: Timestamp,
        now: Timestamp,
    ) -> Vec<Timestamp> {
        let mut ticks = Vec::new();
        // Ticks up to here are missed.
        let late = seen.max(now.minus(schedule.grace).minus(MOMENT));
        let mut from = if schedule.missed == Missed::All { seen } else { late };
        if schedule.missed == Missed::Once && late > seen {
            ticks.extend(self.last(late).filter(|tick| *tick > seen));
        }
        while ticks.len() < TICKS_MAX
            && let Some(tick) = self.next(from).filter(|tick| *tick <= now)
        {
            ticks.push(tick);
            from = tick;
        }
        ticks
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::{JobKind, Json};

    use super::*;

    fn at(text: &str) -> Timestamp {
        let time: DateTime<Utc> = text.parse().unwrap();
        Timestamp::from_micros(time.timestamp_micros()).unwrap()
    }

    fn schedule(cron: &str, zone: &str) -> Schedule {
        let (kind, payload) = (JobKind::new("report").unwrap(), Json::parse("1").unwrap());
        Schedule::new("report", cron, zone, kind, payload).unwrap().missed(Missed::All)
    }

    /// The ticks of a span, as text without the date's zeros.
    fn ticks(cron: &str, zone: &str, from: &str, to: &str) -> Vec<String> {
        let schedule = schedule(cron, zone);
        let due = schedule.calendar().unwrap().due(&schedule, at(from), at(to));
        due.iter().map(|tick| tick.to_string().replace(":00.000000Z", "Z")).collect()
    }

    /// Proves: QUE-3
    #[test]
    fn ticks_follow_the_zone() {
        let (from, to) = ("2026-01-09T00:00:00Z", "2026-01-10T12:00:00Z");
        assert_eq!(
            ticks("30 2 * * *", "Europe/Paris", from, to),
            ["2026-01-09T01:30Z", "2026-01-10T01:30Z"]
        );
        assert_eq!(ticks("30 2 * * *", "Asia/Kolkata", from, to), ["2026-01-09T21:00Z"]);
        assert_eq!(
            ticks("0 9 * * MON", "UTC", from, "2026-01-13T00:00:00Z"),
            ["2026-01-12T09:00Z"]
        );
        assert_eq!(ticks("*/20 * * * * *", "UTC", from, "2026-01-09T00:01:00Z").len(), 3);
    }

    /// On the last Sunday of March the clocks of Paris leap from 2 to 3.
    ///
    /// Proves: QUE-3
    #[test]
    fn time_that_is_leapt_over_runs_right_after() {
        let (from, to) = ("2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z");
        let paris = |cron| ticks(cron, "Europe/Paris", from, to);
        assert_eq!(paris("30 2 * * *"), ["2026-03-29T01:00Z", "2026-03-30T00:30Z"]);
        assert_eq!(paris("0 3 * * *"), ["2026-03-29T01:00Z", "2026-03-30T01:00Z"]);
        let paris =
            ticks("*/30 * * * *", "Europe/Paris", "2026-03-29T00:00:00Z", "2026-03-29T02:00:00Z");
        let half_hours = ["2026-03-29T00:30Z", "2026-03-29T01:00Z", "2026-03-29T01:30Z"];
        assert_eq!(paris, [&half_hours[..], &["2026-03-29T02:00Z"]].concat());
    }

    /// On the last Sunday of October the hour from 2 to 3 comes twice in Paris.
    ///
    /// Proves: QUE-3
    #[test]
    fn time_that_comes_twice_runs_once_unless_at_intervals() {
        let (from, to) = ("2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z");
        assert_eq!(
            ticks("30 2 * * *", "Europe/Paris", from, to),
            ["2026-10-25T00:30Z", "2026-10-26T01:30Z"]
        );
        let (from, to) = ("2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z");
        assert_eq!(
            ticks("*/30 * * * *", "Europe/Paris", from, to),
            ["2026-10-25T00:30Z", "2026-10-25T01:00Z", "2026-10-25T01:30Z", "2026-10-25T02:00Z"]
        );
    }

    /// Proves: QUE-3
    #[test]
    fn missed_ticks_are_treated_as_told() {
        let (seen, now) = (at("2026-01-09T00:00:00Z"), at("2026-01-09T05:10:00Z"));
        let due = |missed| {
            let hourly =
                schedule("0 * * * *", "UTC").missed(missed).grace(Duration::from_secs(900));
            let due = hourly.calendar().unwrap().due(&hourly, seen, now);
            due.iter().map(|tick| (*tick).since(seen).as_secs() / 3600).collect::<Vec<_>>()
        };
        assert_eq!(due(Missed::All), [1, 2, 3, 4, 5]);
        assert_eq!(due(Missed::Once), [4, 5]);
        assert_eq!(due(Missed::Skip), [5]);
    }

    /// Proves: QUE-3
    #[test]
    fn one_round_is_bounded_and_the_next_goes_on() {
        let minutely = schedule("* * * * *", "UTC");
        let (seen, now) = (at("2026-01-09T00:00:00Z"), at("2026-01-09T05:00:00Z"));
        let calendar = minutely.calendar().unwrap();
        let first = calendar.due(&minutely, seen, now);
        assert_eq!(first.len(), TICKS_MAX);
        let next = calendar.due(&minutely, first[TICKS_MAX - 1], now);
        assert_eq!(next[0], at("2026-01-09T01:41:00Z"));
        assert!(calendar.due(&minutely, now, seen).is_empty());
    }

    /// Proves: QUE-3
    #[test]
    fn nonsense_is_refused_with_what_it_was() {
        let new = |cron: &str, zone: &str| {
            let (kind, payload) = (JobKind::new("report").unwrap(), Json::parse("1").unwrap());
            Schedule::new("report", cron, zone, kind, payload).unwrap_err()
        };
        assert!(new("61 * * * *", "UTC").message().contains("61"));
        assert!(new("* * *", "UTC").message().contains("* * *"));
        assert!(new("0 0 30 2 *", "UTC").message().contains("no day ever fits"));
        assert!(new("* * * * *", "Mars/Olympus").message().contains("Mars/Olympus"));
    }
}
