//! Owns the report for people: one HTML page that needs nothing else, and runs nothing.

use std::fmt::Write;

use super::{Case, Group, Hurt, Report, escaped};

const HEAD: &str = "<meta charset=\"utf-8\">\n\
<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
<meta name=\"viewport\" content=\"width=device-width\">\n\
<style>\n\
body{font:16px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem;color:#1d2125}\n\
table{border-collapse:collapse;margin:1rem 0}\n\
td,th{padding:.2rem .9rem .2rem 0;border-bottom:1px solid #ddd;text-align:left}\n\
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}\n\
.good{color:#1a7f37}.bad{color:#b42318}\n\
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f6f6f6;padding:.6rem}\n\
summary{cursor:pointer;padding:.3rem 0}\n\
@media (prefers-color-scheme:dark){body{background:#16181b;color:#e6e6e6}td,th{border-color:#3a3f45}\
pre{background:#22262b}.good{color:#57c26f}.bad{color:#ff8a75}}\n\
</style>\n";

/// The report as a page.
pub fn text(report: &Report) -> String {
    let mut out = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n");
    let engine = escaped(&report.engine);
    let _ = writeln!(out, "{HEAD}<title>Leasehold on {engine}</title>\n</head>\n<body>");
    add_opening(&mut out, report);
    add_groups(&mut out, report);
    add_failures(&mut out, report);
    report.hurts.iter().for_each(|hurt| add_hurt(&mut out, hurt));
    add_operations(&mut out, report);
    add_cases(&mut out, report);
    out.push_str("</body>\n</html>\n");
    out
}

fn add_opening(out: &mut String, report: &Report) {
    let (all, failed) = (report.cases.len(), report.failures().count());
    let engine = escaped(&report.engine);
    let _ = writeln!(out, "<h1>Leasehold on {engine}</h1>\n<p>{}</p>", escaped(&report.version));
    let (class, words) = match failed {
        0 => ("good", "all passed"),
        _ => ("bad", "not all passed"),
    };
    let seconds = report.seconds;
    let _ = writeln!(
        out,
        "<p class=\"{class}\"><strong>{all} cases, {failed} failed: {words}</strong>, in {seconds:.0} s.</p>"
    );
    for note in &report.notes {
        let _ = writeln!(out, "<p>{}</p>", escaped(note));
    }
}

fn add_groups(out: &mut String, report: &Report) {
    out.push_str(
        "<h2>What was played</h2>\n<table>\n<tr><th>What</th><th class=\"n\">Cases</th>\
         <th class=\"n\">Failed</th><th class=\"n\">Seconds</th><th>Seeds</th></tr>\n",
    );
    for Group { name, title, played, failed, seconds, .. } in report.groups() {
        let seeds = report.seeds.get(name);
        let seeds = seeds.map(|seeds| format!("{} to before {}", seeds.start, seeds.end));
        let _ = writeln!(
            out,
            "<tr><td>{title}</td><td class=\"n\">{played}</td><td class=\"n\">{failed}</td>\
             <td class=\"n\">{seconds:.1}</td><td>{}</td></tr>",
            seeds.unwrap_or_default()
        );
    }
    out.push_str("</table>\n");
}

fn add_failures(out: &mut String, report: &Report) {
    for case in report.failures() {
        let why = escaped(case.failure.as_deref().unwrap_or_default());
        let (group, name) = (case.group, escaped(&case.name));
        let _ = writeln!(out, "<h3 class=\"bad\">{group}: {name}</h3>\n<pre>{why}</pre>");
    }
}

fn add_hurt(out: &mut String, hurt: &Hurt) {
    let name = escaped(&hurt.name);
    let _ = writeln!(out, "<h2>Faults: {name}</h2>\n<p>Seed {}.</p>\n<table>", hurt.seed);
    let faults = hurt.faults.iter().map(|(kind, number)| (*kind, *number));
    for (what, number) in faults.chain(hurt.figures.iter().copied()) {
        let _ = writeln!(out, "<tr><td>{what}</td><td class=\"n\">{number}</td></tr>");
    }
    out.push_str("</table>\n");
}

/// How the operations of each group ended, verb by verb.
fn add_operations(out: &mut String, report: &Report) {
    out.push_str("<h2>How the operations ended</h2>\n");
    let all = report.coverage.all();
    for group in report.groups() {
        let _ = writeln!(
            out,
            "<h3>{}</h3>\n<table>\n<tr><th>Verb</th><th class=\"n\">Operations</th>{}</tr>",
            group.title,
            group.shares.named().map(|(what, _)| format!("<th class=\"n\">{what}</th>")).concat()
        );
        let verbs = all.iter().filter(|(of, ..)| *of == group.name);
        let rows = verbs.map(|(_, verb, shares)| (*verb, *shares));
        for (verb, shares) in rows.chain([("all", group.shares)]) {
            let total = shares.total();
            let share = |number| format!("<td class=\"n\">{}</td>", percent(number, total));
            let cells = shares.named().map(|(_, number)| share(number)).concat();
            let _ = writeln!(out, "<tr><td>{verb}</td><td class=\"n\">{total}</td>{cells}</tr>");
        }
        out.push_str("</table>\n");
    }
}

/// A share in percent, with one decimal.
pub fn percent(number: u64, total: u64) -> String {
    let thousandths = (number * 1_000 + total / 2).checked_div(total).unwrap_or(0);
    match (number, thousandths) {
        (0, _) => "0".to_owned(),
        (_, 0) => "&lt; 0.1 %".to_owned(),
        _ => format!("{}.{} %", thousandths / 10, thousandths % 10),
    }
}

fn add_cases(out: &mut String, report: &Report) {
    for group in report.groups() {
        let cases = report.cases.iter().filter(|case| case.group == group.name);
        let lines: String = cases.map(line).collect();
        let title = group.title;
        let _ =
            writeln!(out, "<details>\n<summary>{title}</summary>\n<ul>\n{lines}</ul>\n</details>");
    }
}

fn line(case: &Case) -> String {
    let (class, word) = match case.failure {
        None => ("good", "passed"),
        Some(_) => ("bad", "failed"),
    };
    let (name, seconds) = (escaped(&case.name), case.seconds);
    format!("<li>{name}: <span class=\"{class}\">{word}</span>, {seconds:.1} s</li>\n")
}
