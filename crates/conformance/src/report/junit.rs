//! Owns the report that build servers read: JUnit's XML, a suite for each group of cases.

use std::fmt::Write;

use super::{Case, Report, escaped};

/// The report as JUnit XML.
pub fn text(report: &Report) -> String {
    let counts = counts(report.cases.len(), report.failures().count(), report.seconds);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(out, "<testsuites name=\"leasehold conformance\" {counts}>");
    for group in report.groups() {
        add_suite(&mut out, report, &group);
    }
    out.push_str("</testsuites>\n");
    out
}

fn counts(tests: usize, failures: usize, seconds: f64) -> String {
    format!(
        "tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"0\" time=\"{seconds:.1}\""
    )
}

fn add_suite(out: &mut String, report: &Report, group: &super::Group) {
    let counts = counts(group.played, group.failed, group.seconds);
    let _ = writeln!(out, "<testsuite name=\"{}\" {counts}>\n<properties>", group.name);
    let mut property = |name: &str, value: &str| {
        let value = escaped(value);
        let _ = writeln!(out, "<property name=\"{name}\" value=\"{value}\"/>");
    };
    property("engine", &report.engine);
    property("version", &report.version);
    if let Some(seeds) = report.seeds.get(group.name) {
        property("seeds", &format!("{} to before {}", seeds.start, seeds.end));
    }
    for (what, number) in group.shares.named() {
        property(&format!("operations {what}"), &number.to_string());
    }
    out.push_str("</properties>\n");
    for case in report.cases.iter().filter(|case| case.group == group.name) {
        add_case(out, report, case);
    }
    out.push_str("</testsuite>\n");
}

fn add_case(out: &mut String, report: &Report, case: &Case) {
    let class = escaped(&format!("{}.{}", report.engine, case.group));
    let (name, time) = (escaped(&case.name), case.seconds);
    let _ = write!(out, "<testcase classname=\"{class}\" name=\"{name}\" time=\"{time:.1}\"");
    let _ = match &case.failure {
        None => writeln!(out, "/>"),
        Some(why) => {
            let first = escaped(why.lines().next().unwrap_or(""));
            writeln!(out, "><failure message=\"{first}\">{}</failure></testcase>", escaped(why))
        }
    };
}
