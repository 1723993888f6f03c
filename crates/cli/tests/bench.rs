//! Runs every workload of the bench at a tiny size on both engines and reads what it prints; says
//! nothing about speed. Engines that the environment does not name are ignored, and are a failure
//! when `LEASEHOLD_REQUIRE_ENGINES` is set.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Output};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

const NUMBERS: [&str; 3] = ["n", "seconds", "rate"];
const TIMES: [&str; 2] = ["p50_ms", "p99_ms"];
/// Every line that a whole run prints, and whether single calls are timed.
const LINES: [(&str, bool); 17] = [
    ("w1", true),
    ("w1_c64", true),
    ("w2_100", true),
    ("w2_1000", true),
    ("w3", false),
    ("w3_partitions", false),
    ("w4_from_call", true),
    ("w4_from_commit", true),
    ("w5_10k", true),
    ("w5_1m", true),
    ("w5_done10m", true),
    ("w5_future1m", true),
    ("w6_1", false),
    ("w6_2", false),
    ("w7_free", true),
    ("w7_held", true),
    ("memory", false),
];
const TINY: [&str; 10] =
    ["--jobs", "120", "--pickups", "3", "--rows", "300", "--in-hand", "50", "--processes", "1,2"];

fn main() -> ExitCode {
    let required = std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_some();
    let server = std::env::var("LEASEHOLD_TEST_POSTGRES_URL").ok();
    let ignored = server.is_none() && !required;
    let trials = vec![
        Trial::test("sqlite::every_workload_prints_its_line", || {
            let folder = Folder::new("lines");
            every_workload_prints_its_line("sqlite", &folder.file("jobs.db"), &folder)
        }),
        Trial::test("postgres::every_workload_prints_its_line", move || {
            let server = server.ok_or("no server: see scripts/test")?;
            let join = if server.contains('?') { '&' } else { '?' };
            let url = format!("{server}{join}schema=bench_smoke_{}", std::process::id());
            every_workload_prints_its_line("postgres", &url, &Folder::new("lines-pg"))
        })
        .with_ignored_flag(ignored),
        Trial::test("what_makes_no_sense_is_refused", what_makes_no_sense_is_refused),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Every field of every line is there, a second run is held against the first, and each family of
/// workloads has its picture.
fn every_workload_prints_its_line(engine: &str, url: &str, folder: &Folder) -> Result<(), Failed> {
    let ran = bench(url, &TINY)?;
    let text = String::from_utf8(ran.stdout.clone())?;
    ok(&ran)?;
    let lines: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    for (line, (name, timed)) in lines.iter().zip(LINES) {
        check(line, engine, name, timed).map_err(|why| format!("{why}: {line}"))?;
    }
    if lines.len() != LINES.len() {
        return Err(format!("{} lines, {} expected", lines.len(), LINES.len()).into());
    }
    let (earlier, plots) = (folder.file("earlier.jsonl"), folder.file("plots"));
    std::fs::write(&earlier, &text)?;
    let again = bench(url, &["w2_100", "--jobs", "120", "--compare", &earlier, "--plot", &plots])?;
    ok(&again)?;
    let text = String::from_utf8(again.stdout)?;
    let ratio: Value = serde_json::from_str(text.lines().nth(1).ok_or("no ratio")?)?;
    let positive = ratio.get("ratio").and_then(Value::as_f64).is_some_and(|ratio| ratio > 0.0);
    if !positive || ratio.get("workload").and_then(Value::as_str) != Some("w2_100") {
        return Err(format!("no ratio of w2_100: {ratio}").into());
    }
    for family in ["w1", "w2_100", "w4_from_call", "w5", "w6", "w7", "memory"] {
        let svg = std::fs::read_to_string(format!("{plots}/{family}.svg"))?;
        if !svg.starts_with("<svg") || !svg.trim_end().ends_with("</svg>") {
            return Err(format!("{family}.svg is no picture").into());
        }
    }
    Ok(())
}

fn check(line: &Value, engine: &str, name: &str, timed: bool) -> Result<(), String> {
    let field = |key: &str| line.get(key).ok_or(format!("{name} lacks {key}"));
    for (key, wanted) in [("peer", "leasehold"), ("engine", engine), ("workload", name)] {
        if field(key)?.as_str() != Some(wanted) {
            return Err(format!("{key} is not {wanted}"));
        }
    }
    for key in NUMBERS {
        if !field(key)?.as_f64().is_some_and(|number| number > 0.0) {
            return Err(format!("{name}: {key} is no number above 0"));
        }
    }
    for key in TIMES {
        if field(key)?.is_number() != timed {
            return Err(format!("{name}: {key} is wrong"));
        }
    }
    if name == "memory" && field("bytes")?.as_u64().is_none_or(|bytes| bytes == 0) {
        return Err("no size".to_owned());
    }
    Ok(())
}

fn what_makes_no_sense_is_refused() -> Result<(), Failed> {
    let folder = Folder::new("refused");
    let (url, nowhere) = (folder.file("jobs.db"), folder.file("nowhere.jsonl"));
    let table: [(&[&str], &str); 7] = [
        (&["--jobs", "0"], "--jobs"),
        (&["--rows", "many"], "--rows"),
        (&["--in-hand", "10001"], "--in-hand"),
        (&["--processes", "1,9"], "--processes"),
        (&["--slots", "0"], "--slots"),
        (&["w9"], "possible values"),
        (&["w1", "--compare", &nowhere], "nowhere.jsonl"),
    ];
    for (flags, word) in table {
        let ran = bench(&url, flags)?;
        let said = String::from_utf8_lossy(&ran.stderr);
        if ran.status.success() || !said.contains(word) {
            return Err(format!("{flags:?}: {} {said}", ran.status).into());
        }
    }
    let ran = bench(":memory:", &["w7", "--jobs", "20"])?;
    if ran.status.success() || !String::from_utf8_lossy(&ran.stderr).contains("second connection") {
        return Err("w7 needs a file".into());
    }
    Ok(())
}

fn bench(url: &str, flags: &[&str]) -> Result<Output, Failed> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    Ok(command.args(["bench", "--url", url]).args(flags).output()?)
}

fn ok(ran: &Output) -> Result<(), Failed> {
    if ran.status.success() {
        return Ok(());
    }
    Err(format!("{}: {}", ran.status, String::from_utf8_lossy(&ran.stderr)).into())
}

/// A folder of one test's own, gone at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let place = std::env::var_os("LEASEHOLD_TEST_DIR");
        let place = place.map_or_else(std::env::temp_dir, PathBuf::from);
        let folder = place.join(format!("leasehold-bench-{name}-{}", std::process::id()));
        // What is in the way shows itself when the first file is written.
        let _made = std::fs::create_dir_all(&folder);
        Self(folder)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A file that cannot be removed is no reason to fail.
        let _left = std::fs::remove_dir_all(&self.0);
    }
}
