//! Plays the suite for a report on a store that is right and on one that is not, and reads both reports.

use std::sync::Arc;

use async_trait::async_trait;
use leasehold_core::lab::{Dump, Ending, LabStore, ManualClock, Reply, Step};
use leasehold_core::memory::MemoryStore;
use leasehold_core::*;

use super::*;
use crate::hand_on::hand_on;
use crate::{Harness, start};

struct Memory {
    is_stuck: bool,
}

#[async_trait]
impl Harness for Memory {
    fn name(&self) -> &'static str {
        "memory <1>"
    }

    async fn store(&self) -> Result<Arc<dyn LabStore>> {
        let inner = Arc::new(MemoryStore::lab(start()));
        Ok(if self.is_stuck { Arc::new(Stuck { inner }) } else { inner })
    }
}

/// A store for which no time passes: its leases never lapse.
#[derive(Debug)]
struct Stuck {
    inner: Arc<MemoryStore>,
}

impl Stuck {
    async fn pass<T>(
        &self,
        _verb: &'static str,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        call.await
    }

    async fn read<T>(
        &self,
        _verb: &'static str,
        call: impl Future<Output = Result<T>> + Send,
    ) -> Result<T> {
        call.await
    }
}

hand_on!(Stuck);

#[async_trait]
impl LabStore for Stuck {
    fn clock(&self) -> Option<ManualClock> {
        Some(ManualClock::at(start()))
    }

    async fn dump(&self) -> Result<Dump> {
        self.inner.dump().await
    }

    async fn play(&self, script: Vec<Step>, ending: Ending) -> Result<Vec<Reply>> {
        self.inner.play(script, ending).await
    }
}

/// Plays the scenarios of a group, and a little of everything else.
fn played(is_stuck: bool) -> Report {
    let memory = |is_stuck| Arc::new(Memory { is_stuck }) as Arc<dyn Harness>;
    let mut report = Report::new("memory <1>", "a store & its clock");
    report.notes.push("nothing is left \u{1} behind".to_owned());
    let only = Some("reclaim::".to_owned());
    let programme = Programme { schedules: 25, histories: 2, scripts: 3, seed: 7, only };
    let mut heard = 0;
    let went = report.play(&memory(is_stuck), &memory(false), &programme, |case| {
        assert!(!case.name.is_empty());
        heard += 1;
        true
    });
    assert!(went && heard == report.cases.len());
    report
}

/// What an element of this name says of itself under another name, in order.
fn said_by(xml: &str, element: &str, attribute: &str) -> Vec<String> {
    let opening = format!("<{element} ");
    let tags = xml.split(&opening).skip(1).map(|rest| rest.split('>').next().unwrap_or(""));
    let value = |tag: &str| {
        let rest = tag.split(&format!("{attribute}=\"")).nth(1)?;
        rest.split('"').next().map(str::to_owned)
    };
    tags.filter_map(value).collect()
}

/// Reads XML to its end: every tag is closed in order, every value is quoted, every `&` is an entity.
fn assert_well_formed(xml: &str) {
    let body = xml.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n").expect("a head");
    assert!(body.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'), "a control character");
    for entity in body.split('&').skip(1) {
        let known = ["amp;", "lt;", "gt;", "quot;"].iter().any(|name| entity.starts_with(name));
        assert!(known, "no entity: {:.20}", entity);
    }
    let mut open: Vec<&str> = Vec::new();
    let mut roots = 0;
    for (at, piece) in body.split('<').enumerate().skip(1) {
        let (tag, text) = piece.split_once('>').unwrap_or_else(|| panic!("tag {at} has no end"));
        assert!(!text.contains('>'), "a bare > after {tag}");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "tag {at}");
        } else {
            assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
            let outside: String = tag.split('"').step_by(2).collect();
            let name = tag.split([' ', '/']).next().unwrap_or_default();
            let names = outside.trim_end_matches('/').split_whitespace().skip(1);
            assert!(names.clone().all(|name| name.ends_with('=')), "{tag}");
            assert_eq!(
                names.collect::<std::collections::BTreeSet<_>>().len(),
                tag.matches("=\"").count()
            );
            roots += usize::from(open.is_empty());
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
    }
    assert!(open.is_empty() && roots == 1, "{open:?} are open, {roots} roots");
}

fn sum(numbers: &[String]) -> usize {
    numbers.iter().map(|number| number.parse::<usize>().expect("a number")).sum()
}

/// Proves: PAR-2
#[test]
fn a_right_store_passes_and_both_reports_say_so() {
    let report = played(false);
    assert_eq!(report.failures().count(), 0, "{:?}", report.failures().next());
    let groups = report.groups();
    let played: Vec<(&str, usize)> =
        groups.iter().map(|group| (group.name, group.played)).collect();
    let scenarios = crate::scenarios().iter().filter(|it| it.name.contains("reclaim::")).count();
    assert!(scenarios > 3);
    let expected = [("scenarios", scenarios), ("schedules", 3), ("histories", 2), ("scripts", 3)];
    assert_eq!(played, expected);
    for group in &groups {
        assert!(group.shares.succeeded > 0 && group.shares.unknown == 0, "{group:?}");
    }
    let fenced = |name| groups.iter().find(|group| group.name == name).map(|it| it.shares.fenced);
    assert!(fenced("schedules") > Some(0) && fenced("histories") > Some(0), "{groups:?}");

    let junit = junit::text(&report);
    assert_well_formed(&junit);
    assert_eq!(said_by(&junit, "testsuites", "tests"), [report.cases.len().to_string()]);
    assert_eq!(said_by(&junit, "testsuites", "failures"), ["0"]);
    assert_eq!(sum(&said_by(&junit, "testsuite", "tests")), report.cases.len());
    assert_eq!(said_by(&junit, "testcase", "name").len(), report.cases.len());
    assert!(
        junit.contains("value=\"7 to before 32\"") && junit.contains("a store &amp; its clock")
    );

    let page = page::text(&report);
    assert!(page.contains("memory &lt;1&gt;") && page.contains("7 to before 32"), "{page}");
    assert!(page.contains("0 failed: all passed") && !page.contains("class=\"bad\""), "{page}");
}

/// Proves: PAR-2
#[test]
fn what_a_wrong_store_fails_stands_in_both_reports() {
    let report = played(true);
    let failed: Vec<&Case> = report.failures().collect();
    assert!(failed.iter().any(|case| case.group == "scenarios"), "{failed:?}");
    assert!(failed.len() < report.cases.len(), "not everything takes time");
    let junit = junit::text(&report);
    assert_well_formed(&junit);
    assert_eq!(said_by(&junit, "testsuites", "failures"), [failed.len().to_string()]);
    assert_eq!(sum(&said_by(&junit, "testsuite", "failures")), failed.len());
    assert_eq!(said_by(&junit, "failure", "message").len(), failed.len());
    let page = page::text(&report);
    let headings =
        failed.iter().map(|it| format!("<h3 class=\"bad\">{}: {}</h3>", it.group, it.name));
    for heading in headings {
        assert!(page.contains(&heading), "no {heading}");
    }
    assert!(page.contains(&format!("{} failed: not all passed", failed.len())), "{page}");
}

/// A page that asks for anything else is no page that can be kept.
#[test]
fn the_page_needs_nothing_else() {
    for page in [page::text(&played(false)), page::text(&played(true))] {
        for word in [
            "http:", "https:", "//", "src=", "href=", "url(", "@import", "<script", "<link", "<img",
        ] {
            assert!(!page.contains(word) || word == "//" && only_in_words(&page), "{word}");
        }
        assert!(page.contains("default-src 'none'"));
    }
}

/// Whether every `//` stands in what a case said.
fn only_in_words(page: &str) -> bool {
    let outside = page.split("<pre>").map(|part| part.rsplit("</pre>").next().unwrap_or(""));
    outside.skip(1).chain(page.split("<pre>").next()).all(|part| !part.contains("//"))
}

#[test]
fn a_case_that_panics_is_a_failure_of_its_own() {
    let mut report = Report::new("memory", "1");
    report.case("scenarios", "a::good".into(), || Ok(()));
    report.case("histories", "seed 7".into(), || panic!("two & two"));
    let failed: Vec<&str> = report.failures().filter_map(|it| it.failure.as_deref()).collect();
    assert!(failed.len() == 1 && failed[0].contains("two & two"), "{failed:?}");
    let told: Vec<(&str, usize)> = report.groups().iter().map(|it| (it.name, it.failed)).collect();
    assert_eq!(told, [("scenarios", 0), ("histories", 1)]);
}

#[test]
fn a_listener_may_end_the_run() {
    let memory: Arc<dyn Harness> = Arc::new(Memory { is_stuck: false });
    let programme =
        Programme { schedules: 0, histories: 0, scripts: 5, seed: 0, only: Some("-".into()) };
    let mut report = Report::new("memory", "1");
    assert!(!report.play(&memory, &memory, &programme, |_| false));
    assert_eq!(report.cases.len(), 1);
}

#[test]
fn shares_are_told_in_percent() {
    let told = [(0, 0), (0, 9), (1, 3), (1, 5_000), (9, 9)].map(|(n, of)| page::percent(n, of));
    assert_eq!(told, ["0", "0", "33.3 %", "&lt; 0.1 %", "100.0 %"]);
}
