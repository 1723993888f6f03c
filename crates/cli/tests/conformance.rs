//! Runs `leasehold conformance` as a user would, beside a database that is in use: what it says, what it
//! writes, what it leaves. Engines that the environment does not name are ignored, and are a failure when
//! `LEASEHOLD_REQUIRE_ENGINES` is set.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Output};

use leasehold::{Error, ErrorKind, JobKind, Json, NewJob, StoreExt};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

type Play = fn(&Site) -> Result<(), Failed>;

const PLAYS: &[(&str, Play)] = &[
    ("a_right_store_passes_and_nothing_is_left", a_right_store_passes_and_nothing_is_left),
    ("a_wrong_store_fails_in_both_reports", a_wrong_store_fails_in_both_reports),
    ("a_database_out_of_reach_is_said", a_database_out_of_reach_is_said),
    ("a_report_without_a_place_is_refused_at_once", a_report_without_a_place_is_refused_at_once),
    ("nothing_played_is_no_success", nothing_played_is_no_success),
];

/// Where no report can be written nothing is played: the answer would come after all of it.
///
/// Proves: CLI-1, PAR-2
fn a_report_without_a_place_is_refused_at_once(site: &Site) -> Result<(), Failed> {
    std::fs::write(site.folder.join("report"), "in the way")?;
    let out = site.run(&[], &[])?;
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    let refused = out.status.code() == Some(1) && said.contains("write the report");
    let is_left = std::fs::read_to_string(site.folder.join("report"))? == "in the way";
    let touched = site.folder.join("live.db").exists();
    if refused && is_left && !touched && out.stdout.is_empty() {
        return Ok(());
    }
    Err(format!("{}: {said}", out.status).into())
}

fn main() -> ExitCode {
    let required = std::env::var_os("LEASEHOLD_REQUIRE_ENGINES").is_some();
    let server = std::env::var("LEASEHOLD_TEST_POSTGRES_URL").ok();
    let ignored = server.is_none() && !required;
    let mut trials = Vec::new();
    for (name, play) in PLAYS {
        trials.push(Trial::test(format!("sqlite::{name}"), move || play(&Site::sqlite(name)?)));
        let server = server.clone();
        let on_server =
            move || play(&Site::postgres(name, &server.ok_or("no server: see scripts/test")?)?);
        trials.push(Trial::test(format!("postgres::{name}"), on_server).with_ignored_flag(ignored));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// A folder for reports, and the URL of a database that is in use.
struct Site {
    url: String,
    folder: PathBuf,
    is_server: bool,
}

impl Site {
    fn sqlite(name: &str) -> Result<Self, Failed> {
        let folder = folder(&format!("sqlite-{name}"))?;
        let url = format!("sqlite:{}", folder.join("live.db").display());
        Ok(Self { url, folder, is_server: false })
    }

    fn postgres(name: &str, server: &str) -> Result<Self, Failed> {
        let join = if server.contains('?') { '&' } else { '?' };
        let schema: String =
            format!("live_{}_{name}", std::process::id()).chars().take(48).collect();
        let url = format!("{server}{join}schema={schema}&migrate=auto&pool_size=4");
        Ok(Self { url, folder: folder(&format!("postgres-{name}"))?, is_server: true })
    }

    fn run(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Result<Output, Failed> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command.args(["conformance", "--url", &self.url, "--json", "--report"]);
        command.arg(self.folder.join("report")).args(arguments);
        Ok(command.envs(environment.iter().copied()).output()?)
    }

    fn read(&self, name: &str) -> Result<String, Failed> {
        Ok(std::fs::read_to_string(self.folder.join("report").join(name))?)
    }

    /// The names of what lies beside the database.
    fn names(&self) -> Result<Vec<String>, Failed> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    }
}

fn nothing_played_is_no_success(site: &Site) -> Result<(), Failed> {
    let none = ["--only", "zzzz", "--schedules", "0", "--histories", "0", "--scripts", "0"];
    let out = site.run(&none, &[])?;
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert!(said.contains("zzzz"), "{said}");
    Ok(())
}

impl Drop for Site {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.folder);
    }
}

fn folder(name: &str) -> Result<PathBuf, Failed> {
    let folder = format!("leasehold-conformance-{}-{name}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn wait<T>(it: impl Future<Output = leasehold::Result<T>>) -> Result<T, Failed> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build()?;
    runtime.block_on(it).map_err(|error| error.to_string().into())
}

fn at(value: &Value, path: &str) -> u64 {
    value.pointer(path).and_then(Value::as_u64).unwrap_or(u64::MAX)
}

fn ensure(is_so: bool, why: impl FnOnce() -> String) -> Result<(), Failed> {
    if is_so { Ok(()) } else { Err(why().into()) }
}

fn shown(out: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}\n{}\n{}", out.status, text(&out.stdout), text(&out.stderr))
}

/// The number of cases and of failures that JUnit's head tells.
fn told(junit: &str) -> Result<(u64, u64), Failed> {
    let head = junit.lines().find(|line| line.starts_with("<testsuites")).ok_or("no head")?;
    let number = |name: &str| -> Option<u64> {
        head.split(&format!("{name}=\"")).nth(1)?.split('"').next()?.parse().ok()
    };
    Ok((number("tests").ok_or("no tests")?, number("failures").ok_or("no failures")?))
}

const SMALL: [&str; 8] =
    ["--only", "blobs::", "--schedules", "12", "--histories", "1", "--scripts", "2"];

/// A job of the database in use is as it was, and nothing but the report is there besides.
///
/// Proves: PAR-2
fn a_right_store_passes_and_nothing_is_left(site: &Site) -> Result<(), Failed> {
    let live = wait(async {
        let store = leasehold::connect(&site.url).await?;
        let job = NewJob::new(JobKind::new("live")?, Json::null());
        Ok(store.enqueue_one(job).await?.job())
    })?;
    let before = site.names()?;
    let out = site.run(&[&SMALL[..], &["--faults", "--unknown", "6"]].concat(), &[])?;
    ensure(out.status.code() == Some(0), || shown(&out))?;
    let answer: Value = serde_json::from_slice(&out.stdout)?;
    let (cases, failed) = told(&site.read("junit.xml")?)?;
    ensure(failed == 0 && at(&answer, "/run/failed") == 0, || answer.to_string())?;
    ensure(at(&answer, "/run/cases") == cases && cases > 10, || answer.to_string())?;
    let faults = answer.pointer("/faults/rows").and_then(Value::as_array).ok_or("no faults")?;
    let of = |what: &str| -> Vec<u64> {
        faults.iter().filter(|row| row["what"] == what).map(|row| at(row, "/number")).collect()
    };
    let loads = if site.is_server { 2 } else { 1 };
    ensure(of("unknown outcomes").len() == loads, || answer.to_string())?;
    ensure(of("unknown outcomes").iter().all(|number| *number > 5), || answer.to_string())?;
    ensure(of("acknowledged and lost") == vec![0; loads], || answer.to_string())?;
    let page = site.read("report.html")?;
    let words = ["http:", "https:", "src=", "href=", "url(", "<script"];
    let foreign: Vec<&&str> = words.iter().filter(|word| page.contains(**word)).collect();
    ensure(foreign.is_empty(), || format!("the page asks for {foreign:?}"))?;
    ensure(page.contains("0 failed: all passed") && page.contains("unknown outcomes"), || page)?;

    let names = site.names()?.into_iter().filter(|name| name != "report");
    let beside: Vec<String> = names.filter(|name| !name.starts_with("live.db-")).collect();
    let before: Vec<String> =
        before.into_iter().filter(|name| !name.starts_with("live.db-")).collect();
    ensure(beside == before, || format!("{beside:?}"))?;
    let note = answer.pointer("/run/notes/0").and_then(Value::as_str).ok_or("no note")?;
    if let Some(first) = note.split(' ').find(|word| word.starts_with("leasehold_conformance_")) {
        let own = site.url.replace("migrate=auto", "migrate=never");
        let url = own.split("schema=").next().map(|url| format!("{url}schema={first}"));
        let opened = wait(async { Ok(leasehold::connect(&url.unwrap_or_default()).await.err()) })?;
        ensure(opened.is_some_and(|why| why.kind() == ErrorKind::Unavailable), || first.into())?;
    }
    let still = wait(async {
        let store = leasehold::connect(&site.url).await?;
        let stats = store.stats().await?;
        let jobs: u64 = stats.queues.iter().map(|queue| queue.ready).sum();
        let found = store.job(live).await?.ok_or_else(|| Error::invalid("look", "no job"))?;
        Ok((jobs, found.claim_version.get()))
    })?;
    ensure(still == (1, 0), || format!("the database in use has changed: {still:?}"))
}

/// A statement that is wrong, so that blobs never end, is found, told in both reports and by the exit code.
///
/// Proves: PAR-2
fn a_wrong_store_fails_in_both_reports(site: &Site) -> Result<(), Failed> {
    let engine = if site.is_server { "postgres" } else { "sqlite" };
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../backends");
    let right = std::fs::read_to_string(format!("{root}/{engine}/src/sql/blob_load.sql"))?;
    let text = right.replace("(expires_at is null", "(key = key");
    ensure(text != right, || format!("not altered: {right}"))?;
    let altered = site.folder.join("altered.sql");
    std::fs::write(&altered, text)?;
    let path = altered.display().to_string();
    let environment =
        [("LEASEHOLD_ALTERED_STATEMENT", "blob_load"), ("LEASEHOLD_ALTERED_TEXT", &path)];
    let out = site.run(&SMALL, &environment)?;
    ensure(out.status.code() == Some(1), || shown(&out))?;
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    ensure(said.contains("FAILED scenarios: blobs::blob_ends_at_once"), || said)?;
    let answer: Value = serde_json::from_slice(&out.stdout)?;
    let junit = site.read("junit.xml")?;
    let (cases, failed) = told(&junit)?;
    ensure(failed > 0 && failed < cases, || junit.clone())?;
    ensure(at(&answer, "/run/failed") == failed, || answer.to_string())?;
    let elements = junit.matches("<failure message=").count();
    ensure(u64::try_from(elements) == Ok(failed), || junit.clone())?;
    // The place stands in the message, so that one finds the rule that broke.
    ensure(junit.contains("scenarios/blobs.rs"), || junit)?;
    let page = site.read("report.html")?;
    let heading = "<h3 class=\"bad\">scenarios: blobs::blob_ends_at_once</h3>";
    ensure(page.contains(heading), || page)?;
    let left: Vec<String> =
        site.names()?.into_iter().filter(|name| name.contains("_conf")).collect();
    ensure(left.is_empty(), || format!("{left:?}"))
}

fn a_database_out_of_reach_is_said(site: &Site) -> Result<(), Failed> {
    let nowhere = match site.is_server {
        true => "postgres://nobody@127.0.0.1/nowhere?host=/nowhere".to_owned(),
        false => format!("sqlite:{}", site.folder.join("no/such/folder/live.db").display()),
    };
    std::fs::write(site.folder.join("no"), "a file")?;
    let site = Site { url: nowhere, folder: site.folder.clone(), is_server: site.is_server };
    let out = site.run(&SMALL, &[])?;
    ensure(out.status.code() == Some(1), || shown(&out))?;
    let has_report = site.folder.join("report").exists();
    ensure(!has_report && out.stdout.is_empty(), || shown(&out))
}
