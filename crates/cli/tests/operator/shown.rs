//! What the commands print that speak of files, keys and the configuration, held in files; that a page names
//! every option; that lists have the names that the configuration gives them.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use leasehold::{ClaimRequest, QueueName, StoreExt, WorkerId};
use libtest_mimic::Failed;
use serde_json::Value;

use crate::answers::{as_it_was, helps, masked, said};
use crate::desk::{Desk, at, job, rows, same};

const FORMS: [&[&str]; 2] = [&[], &["--json"]];
/// Nothing that is printed may hold it.
const SECRET: &str = "Zq77-mark-of-a-secret";

/// A copy, its return, and the refusal of PostgreSQL, which has its own tools.
///
/// Proves: CLI-1
pub(crate) fn copies_are_as_they_were(desk: &Desk) -> Result<(), Failed> {
    desk.enqueue(job("q")?)?;
    let folder = desk.folder.join("copies");
    std::fs::create_dir_all(&folder)?;
    let is_server = desk.url.starts_with("postgres");
    let path = |name: &str| folder.join(name).display().to_string();
    let url = |name: &str| match is_server {
        true => "postgres://nobody@localhost/none".to_owned(),
        false => path(name),
    };
    let mut told = String::new();
    for (at, form) in FORMS.iter().enumerate() {
        let (copy, back) = (path(&format!("copy{at}.db")), url(&format!("back{at}.db")));
        for words in [
            &["backup", &copy][..],
            &["backup", &copy],
            &["restore", &copy, "--url", &back, "--above", "4"],
            &["restore", &copy, "--url", &back],
            &["restore", &path("absent.db"), "--url", &url("new.db")],
        ] {
            let all = [words, form].concat();
            told.push_str(&said(&all, desk.run(&all)?)?);
        }
    }
    let _gone = std::fs::remove_dir_all(&folder);
    let told = masked(&told.replace(&folder.display().to_string(), "FOLDER"))?;
    let engine = if is_server { "postgres" } else { "sqlite" };
    as_it_was(&format!("copies_{engine}"), &told);
    Ok(())
}

/// Proves: SEC-2
pub(crate) fn keys_are_as_they_were(desk: &Desk) -> Result<(), Failed> {
    use leasehold::vault::{Binding, KekId, KeyRing, Places, Vault};
    let ring = KeyRing::new(KekId::new("old")?, [7; 32])?;
    let vault = Vault::new(desk.store.clone(), std::sync::Arc::new(ring));
    let binding = Binding::new("a", "r", 1);
    desk.wait(vault.put(&binding, SECRET.as_bytes(), Places::new()))?;
    let keys = "new:CAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg=,old:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command.args(words).env("STORE_URL", &desk.url).env("RING", keys);
        command.env("USER", "tester").output()
    };
    let mut told = String::new();
    for words in [
        &["keys", "list"][..],
        &["keys", "retire", "old", "--env", "RING"],
        &["keys", "rotate", "--env", "RING"],
        &["keys", "retire", "old", "--env", "RING"],
        &["keys", "rotate"],
        &["keys", "issue", "shop", "--kind", "print"],
        &["keys", "list"],
    ] {
        for form in FORMS {
            let all = [words, form].concat();
            told.push_str(&said(&all, run(&all)?)?);
        }
    }
    let listed = desk.json(&["keys", "list"])?;
    let issued = rows(&listed, "api_keys")?;
    let ids: Vec<&str> = issued.iter().filter_map(|row| at(row, "/id").as_str()).collect();
    for (id, form) in ids.iter().zip(FORMS) {
        let all = [&["keys", "revoke", *id][..], form].concat();
        told.push_str(&said(&all, run(&all)?)?);
    }
    let key = regex::Regex::new(r"lhk_\w+_\w+")?;
    let mut told = key.replace_all(&told, "KEY").into_owned();
    for secret in keys.split(',').filter_map(|pair| pair.split(':').nth(1)).chain([SECRET]) {
        same(secret, &Value::from(told.contains(secret)), false)?;
    }
    for id in ids {
        told = told.replace(id, "KEY-ID");
    }
    as_it_was("keys", &masked(&told)?);
    Ok(())
}

/// Proves: DL-3
pub(crate) fn replays_are_as_they_were(desk: &Desk) -> Result<(), Failed> {
    let mut told = String::new();
    for form in FORMS {
        let id = desk.enqueue(job("mail")?)?.to_string();
        desk.kill_one("mail")?;
        let replay = ["dead", "replay", "--job", &id, "--note", "mended"];
        let vouched = [&replay[..], &["--safe-to-repeat"]].concat();
        for words in [&replay[..], &vouched, &vouched, &["dead", "list"], &["dead", "show", &id]] {
            let all = [words, form].concat();
            told.push_str(&said(&all, desk.run(&all)?)?);
        }
        let request = ClaimRequest::new(WorkerId::new(), [QueueName::new("mail")?]);
        let claim = desk.wait(desk.store.claim(request))?.pop().ok_or("no claim")?;
        desk.wait(desk.store.succeed(claim.fence))?;
        let all = [&["dead", "list"][..], form].concat();
        told.push_str(&said(&all, desk.run(&all)?)?);
        let closed = ["dead", "list", "--state", "resolved", "--job", &id];
        let all = [&closed[..], form].concat();
        told.push_str(&said(&all, desk.run(&all)?)?);
    }
    as_it_was("replays", &masked(&told)?);
    Ok(())
}

/// Proves: CFG-3
pub(crate) fn lists_have_the_names_of_the_configuration(desk: &Desk) -> Result<(), Failed> {
    let (done, dead) = (desk.enqueue(job("q")?)?, desk.enqueue(job("q")?)?);
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::new("q")?]);
    let claim = desk.wait(desk.store.claim(request))?.pop().ok_or("no claim")?;
    same("the first", &Value::from(claim.job.id.to_string()), done.to_string())?;
    desk.wait(desk.store.succeed(claim.fence))?;
    desk.kill_one("q")?;
    desk.enqueue(job("q")?)?;
    for (name, job) in [("completed", done), ("dead_letter", dead)] {
        let listed = desk.json(&["list", name])?;
        same(name, &Value::from(rows(&listed, "")?.len()), 1)?;
        same(name, at(&listed, "/rows/0/job"), job.to_string())?;
    }
    let list = |name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command.args(["list", name, "--json"]).env("STORE_URL", &desk.url);
        command.env("WORKER_COMPLETED_LIST", "finished").output()
    };
    let out = list("completed")?;
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    let told = said.contains("finished (worker.completed_list)") && out.status.code() == Some(4);
    same(&said, &Value::from(told), true)?;
    let out = list("finished")?;
    let listed: Value = serde_json::from_slice(&out.stdout)?;
    same("finished", at(&listed, "/rows/0/job"), done.to_string())
}

/// Proves: CFG-1, CFG-2, SEC-2, GLO-4
pub(crate) fn the_configuration_is_as_it_was() -> Result<(), Failed> {
    let folder = std::env::temp_dir().join(format!("leasehold-shown-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let told = configurations(&folder);
    let _gone = std::fs::remove_dir_all(&folder);
    let told = told?.replace(&folder.display().to_string(), "FOLDER");
    same("the secret", &Value::from(told.contains(SECRET)), false)?;
    // What a build without spans says of them.
    let spans = regex::Regex::new(r" \(no effect: this build sends no spans[^)]*\)")?;
    as_it_was("configuration", &spans.replace_all(&told, ""));
    Ok(())
}

fn configurations(folder: &Path) -> Result<String, Failed> {
    let (good, bad) = (folder.join("good.yaml"), folder.join("bad.yaml"));
    let text = "store:\n  addr: db.local:5432\n  username: me\n  password: env:DB_PASSWORD\n\
                worker:\n  count: 8\n  command: [gzip, --keep, \"{path}\"]\n";
    std::fs::write(&good, text)?;
    let text = "worker:\n  count: 0\n  hartbeat_ttl: 30s\nproducer:\n  rate_limit_per_sec: -1\n";
    std::fs::write(&bad, text)?;
    // Right in itself; what a role would start is not there, and a key has no effect.
    let late = folder.join("late.yaml");
    let text = format!(
        "store:\n  pool_size_multiplier: 3\nworker:\n  command: [{0}/none]\nproducer:\n  scan_dir: {0}\n",
        folder.display()
    );
    std::fs::write(&late, text)?;
    // What cannot be understood, what breaks a rule, what the machine lacks.
    let every = folder.join("every.yaml");
    let text = format!(
        "store: {{url: 'mysql://h/d'}}\nworker:\n  count: many\n  heartbeat_ttl: 1s\n  command: [{0}/none]\n\
         producer:\n  exclude_globs: ['a[']\n  scan_dir: {0}/none\n",
        folder.display()
    );
    std::fs::write(&every, text)?;
    let every = every.display().to_string();
    let [good, bad, late] = [good, bad, late].map(|path| path.display().to_string());
    let url = format!("postgres://me:{SECRET}@db.local/jobs?sslmode=require");
    let mut told = String::new();
    for (words, name, value) in [
        (&["config", "show", "--config", &good][..], "DB_PASSWORD", SECRET),
        (&["config", "show", "--config", &good, "--json"], "DB_PASSWORD", SECRET),
        (&["config", "show"], "STORE_URL", url.as_str()),
        (&["config", "show", "--json"], "STORE_PASSWORD", SECRET),
        (&["config", "show", "--config", &good], "OTHER", ""),
        (&["config", "check", "--config", &bad], "WORKER_HEARBEAT_TTL", "5s"),
        (&["config", "check", "--config", &bad, "--json"], "OTHER", ""),
        (&["config", "check", "--config", &late, "--json"], "WORKER_HEARBEAT_TTL", "5s"),
        (&["config", "check", "--config", &late], "WORKER_HEARBEAT_TTL", "5s"),
        (&["config", "check", "--config", &every], "WORKER_HEARBEAT_TTL", "5s"),
        (&["--role=all", "--config", &every], "OTHER", ""),
        (&["config", "show", "--defaults"], "OTHER", ""),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        let out = command.args(words).env_clear().env(name, value).output()?;
        told.push_str(&said(words, out)?);
    }
    Ok(told)
}

/// A folder that a scan could not look into is told before the start; root may, unless it gives that right up.
///
/// Proves: CFG-1
pub(crate) fn a_folder_that_cannot_be_listed_is_refused() -> Result<(), Failed> {
    let folder = std::env::temp_dir().join(format!("leasehold-closed-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("a"), "")?;
    let mode = |mode| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode));
    let told = [0o000, 0o444, 0o700].map(|bits| {
        mode(bits)?;
        let mut command = without_the_rights_of_root()?;
        command.args(["config", "check", "--role=producer"]).env("PRODUCER_SCAN_DIR", &folder);
        command.output()
    });
    mode(0o700)?;
    std::fs::remove_dir_all(&folder)?;
    let wanted = ["cannot be listed: Permission", "its files cannot be looked at: Permission", ""];
    for (told, wanted) in told.into_iter().zip(wanted) {
        let told = told?;
        let said = String::from_utf8_lossy(&told.stderr).into_owned();
        same(&said, &Value::from(said.contains(wanted)), true)?;
        same(&said, &Value::from(told.status.code()), if wanted.is_empty() { 0 } else { 3 })?;
    }
    Ok(())
}

/// The command, where root runs it without the right to look into every folder.
fn without_the_rights_of_root() -> std::io::Result<Command> {
    let command = env!("CARGO_BIN_EXE_leasehold");
    if std::fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(Command::new(command));
    }
    let rights = "-dac_override,-dac_read_search";
    let mut without = Command::new("setpriv");
    without.args(["--inh-caps", rights, "--bounding-set", rights, command]);
    Ok(without)
}

/// Where the server was looked for is told, and never who logs in.
///
/// Proves: GLO-4, ERR-1
pub(crate) fn a_server_that_is_away_is_named() -> Result<(), Failed> {
    // Nobody listens at a port that is given back.
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let url = format!("postgres://somebody:{SECRET}@127.0.0.1:{port}/jobs");
    for words in [&["status"][..], &["jobs", "list"], &["migrate"], &["verify"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        let out = command.args(words).env("STORE_URL", &url).output()?;
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        let place = format!(" at 127.0.0.1:{port}: unavailable: the server cannot be reached");
        same(&said, &Value::from(said.contains(&place)), true)?;
        same(&said, &Value::from(said.contains(SECRET) || said.contains("somebody")), false)?;
        same(&said, &Value::from(out.status.code()), 1)?;
    }
    Ok(())
}

/// Every option of every command stands in the page under the command's name.
///
/// Proves: CLI-1
pub(crate) fn every_option_stands_in_the_page() -> Result<(), Failed> {
    let out = Command::new(env!("CARGO_BIN_EXE_leasehold")).arg("man").output()?;
    let page = String::from_utf8(out.stdout)?.replace("\\-", "-");
    let option = regex::Regex::new(r"(?m)^ +(?:-\w, )?(--[a-z-]+)")?;
    let mut seen = 0;
    for (words, help) in helps()? {
        if help.contains("Commands:\n") && !words.is_empty() {
            continue;
        }
        let name = [&["leasehold".to_owned()][..], &words].concat().join(" ").to_uppercase();
        let head = format!(".SH \"{name}\"\n");
        let part = if words.is_empty() { Some(page.as_str()) } else { page.split(&head).nth(1) };
        let part = part.ok_or_else(|| format!("{head} is missing"))?;
        let end = part.find("\n.SH \"").unwrap_or(part.len());
        let part = part.get(..end).unwrap_or(part);
        let named: BTreeSet<&str> =
            option.captures_iter(&help).filter_map(|it| Some(it.get(1)?.as_str())).collect();
        for option in named.into_iter().filter(|option| *option != "--help") {
            seen += 1;
            same(&format!("{name} {option}"), &Value::from(part.contains(option)), true)?;
        }
    }
    same("options", &Value::from(seen > 100), true)
}
