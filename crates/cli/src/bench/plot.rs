//! Owns the pictures: one SVG for each family of workloads, a bar for each line, written by hand
//! since a bar chart needs no library.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use leasehold::{Error, ErrorKind, Result};

use super::compare::figure;
use super::report::Line;

const WIDTH: usize = 720;
const ROW: usize = 26;
const TOP: usize = 48;
const LEFT: usize = 250;
const BAR_MAX: f64 = 360.0;
const OWN: &str = "#2a78d6";
const OTHERS: &str = "#8b95a1";

/// Writes a file for each family of workloads into a folder, which is made where it is missing.
pub fn write(folder: &Path, lines: &[Line]) -> Result<()> {
    let unusable = |error: std::io::Error| {
        let why = format!("--plot {}: {error}", folder.display());
        Error::new(ErrorKind::Unavailable, "bench", why).with_source(error)
    };
    std::fs::create_dir_all(folder).map_err(unusable)?;
    let mut families: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
    for line in lines {
        families.entry(family(&line.workload)).or_default().push(line);
    }
    for (name, lines) in families {
        let path = folder.join(format!("{name}.svg"));
        std::fs::write(path, picture(name, &lines)).map_err(unusable)?;
    }
    Ok(())
}

/// Workloads that stand in one picture: those whose figures are meant to be seen side by side.
fn family(workload: &str) -> &str {
    match workload.split('_').next() {
        Some(first @ ("w5" | "w6" | "w7")) => first,
        _ => workload,
    }
}

fn picture(name: &str, lines: &[&Line]) -> String {
    let bars: Vec<(&Line, &str, f64)> = lines
        .iter()
        .filter_map(|line| figure(line).map(|(unit, value)| (*line, unit, value)))
        .collect();
    let unit = bars.first().map_or("", |(_, unit, _)| unit);
    let most = bars.iter().map(|(.., value)| *value).fold(0.0, f64::max);
    let height = TOP + ROW * bars.len() + 12;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"13\" role=\"img\">\n\
         <title>{0}, {1}</title>\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
         <text x=\"12\" y=\"26\" font-size=\"16\" fill=\"#1b1f24\">{0}: {1}</text>\n",
        escaped(name),
        escaped(unit)
    );
    for (at, (line, _, value)) in bars.iter().enumerate() {
        let top = TOP + ROW * at;
        let width = if most > 0.0 { value.max(0.0) / most * BAR_MAX } else { 0.0 };
        let colour = if line.peer == "leasehold" { OWN } else { OTHERS };
        let label = format!("{} {} {}", line.engine, line.workload, line.peer);
        let base = top + 16;
        // Writing into a string cannot fail.
        let _ = writeln!(
            svg,
            "<text x=\"12\" y=\"{base}\" fill=\"#1b1f24\">{}</text>\
             <rect x=\"{LEFT}\" y=\"{}\" width=\"{width:.1}\" height=\"18\" rx=\"2\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{base}\" fill=\"#1b1f24\">{}</text>",
            escaped(&label),
            top + 2,
            250.0 + width + 6.0,
            short(*value),
        );
    }
    svg += "</svg>\n";
    svg
}

fn short(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(peer: &str, workload: &str, rate: f64) -> Line {
        let text = format!(
            r#"{{"peer":"{peer}","engine":"sqlite","workload":"{workload}","n":1,"seconds":1.0,
            "rate":{rate},"p50_ms":null,"p99_ms":null}}"#
        );
        serde_json::from_str(&text).expect("a line")
    }

    /// The largest bar is the longest, the others keep its measure, and names cannot break out.
    #[test]
    fn bars_keep_their_measure() {
        let lines = [line("leasehold", "w6_1", 50.0), line("<raw>", "w6_2", 100.0)];
        let svg = picture("w6", &lines.iter().collect::<Vec<_>>());
        assert!(svg.contains("width=\"180.0\"") && svg.contains("width=\"360.0\""), "{svg}");
        assert!(svg.contains("&lt;raw&gt;") && !svg.contains("<raw>"));
        assert_eq!(family("w6_2"), "w6");
        assert_eq!(family("w2_100"), "w2_100");
    }
}
