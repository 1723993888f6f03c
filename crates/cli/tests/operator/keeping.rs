//! What keeps a database sound: copies and their return, the look for broken rules, and keys.

use std::process::{Command, Output};
use std::sync::Arc;

use leasehold::{
    ClaimRequest, Control, Json, NewEvent, QueueName, QueueSettings, Settlement, StoreExt, Topic,
    Verdict, WorkerId,
};
use libtest_mimic::Failed;
use serde_json::Value;

use crate::desk::{Desk, at, job, rows, same};

/// PostgreSQL is told to use its own tools.
///
/// Proves: WQ-12
pub(crate) fn a_copy_comes_back_with_a_raised_epoch(desk: &Desk) -> Result<(), Failed> {
    desk.enqueue(job("q")?)?;
    std::fs::create_dir_all(&desk.folder)?;
    let path = |name: &str| desk.folder.join(name).display().to_string();
    let (copy, back) = (path("copy.db"), format!("sqlite:{}", path("back.db")));
    let out = desk.run(&["backup", &copy])?;
    if desk.url.starts_with("postgres") {
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        return same(
            &said,
            &Value::from(said.contains("pg_dump") && out.status.code() == Some(2)),
            true,
        );
    }
    same("copied", &Value::from(out.status.code()), 0)?;
    let restored = desk.json(&["restore", &copy, "--url", &back, "--above", "4"])?;
    same("epoch", at(&restored, "/epoch"), 5)?;
    same("jobs", at(&desk.json(&["status", "--url", &back])?, "/queues/rows/0/ready"), 1)?;
    same("again", &Value::from(desk.run(&["restore", &copy, "--url", &back])?.status.code()), 4)?;
    same("over", &Value::from(desk.run(&["backup", &copy])?.status.code()), 4)?;
    // However far the epoch is lifted.
    let far = format!("sqlite:{}", path("far.db"));
    let restored = desk.json(&["restore", &copy, "--url", &far, "--above", "32000"])?;
    same("epoch", at(&restored, "/epoch"), 32_001)?;
    a_copy_that_is_ended_leaves_nothing(desk, &path("cut.db"))
}

/// Whoever only looks needs no right to write: neither to the file nor to its folder, and the file is not
/// changed. The memory that writers share is out of reach here, for root too.
///
/// Proves: CLI-1
pub(crate) fn a_look_needs_no_right_to_write(desk: &Desk) -> Result<(), Failed> {
    let id = desk.enqueue(job("q")?)?.to_string();
    let mut url = desk.url.clone();
    if url.starts_with("sqlite:") {
        let copy = desk.folder.join("a copy.db");
        let out = desk.run(&["backup", &copy.display().to_string()])?;
        same("copied", &Value::from(out.status.code()), 0)?;
        // SQLite follows no link here.
        std::os::unix::fs::symlink("nowhere", desk.folder.join("a copy.db-shm"))?;
        url = copy.display().to_string();
        let out = desk.run(&["queues", "pause", "q", "--url", &url])?;
        same("acts", &Value::from(out.status.success()), false)?;
    }
    for look in [
        &["status"][..],
        &["jobs", "list"],
        &["jobs", "show", &id],
        &["jobs", "why", &id],
        &["queues", "list"],
        &["outbox", "list"],
        &["dead", "list"],
        &["keys", "list"],
        &["audit"],
        &["verify"],
    ] {
        let out = desk.run(&[look, &["--url", &url]].concat())?;
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        same(&format!("{look:?}: {said}"), &Value::from(out.status.code()), 0)?;
    }
    Ok(())
}

/// Whether the signal comes before the end or after it.
fn a_copy_that_is_ended_leaves_nothing(desk: &Desk, to: &str) -> Result<(), Failed> {
    desk.sql(include_str!("grow.sql"))?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(["backup", to]).env("STORE_URL", &desk.url).stdout(std::process::Stdio::null());
    let mut copying = command.spawn()?;
    let part = format!("{to}.part");
    let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let is_under_way = || std::path::Path::new(&part).exists();
    while !is_under_way() && copying.try_wait()?.is_none() && std::time::Instant::now() < end {
        std::thread::yield_now();
    }
    Command::new("kill").args(["-TERM", &copying.id().to_string()]).status()?;
    let ended = copying.wait()?;
    let is_whole = std::path::Path::new(to).exists();
    let is_told = ended.code() == Some(130) || (is_whole && ended.success());
    same(&ended.to_string(), &Value::from(is_told), true)?;
    same("a part is left", &Value::from(is_under_way()), false)
}

/// Every sort of row is there; then a dead letter goes behind the store's back.
///
/// Proves: GLO-1
pub(crate) fn verify_is_content_until_a_rule_is_broken(desk: &Desk) -> Result<(), Failed> {
    let queue = QueueName::new("q")?;
    let logged = Control::SetQueue(queue.clone(), QueueSettings::new().log(Some(true)));
    desk.wait(desk.store.control(logged))?;
    for _ in 0..6 {
        desk.enqueue(job("q")?)?;
    }
    desk.kill_one("q")?;
    let claim = || ClaimRequest::new(WorkerId::new(), [queue.clone()]);
    let done = desk.wait(desk.store.claim(claim()))?.pop().ok_or("no claim")?;
    desk.wait(desk.store.succeed(done.fence))?;
    let back = desk.wait(desk.store.claim(claim()))?.pop().ok_or("no claim")?;
    let release = Settlement::new(back.fence, Verdict::Release { delay: None });
    desk.wait(desk.store.settle_one(release))?;
    let _held = desk.wait(desk.store.claim(claim()))?.pop().ok_or("no claim")?;
    desk.wait(desk.store.publish_one(NewEvent::new(Topic::new("t")?, Json::parse("1")?)))?;
    let clean = desk.json(&["verify"])?;
    same("jobs", at(&clean, "/looked_at/jobs"), 6)?;
    same("events", at(&clean, "/looked_at/events"), 1)?;
    same("letters", at(&clean, "/looked_at/dead_letters"), 1)?;
    same("breaches", at(&clean, "/looked_at/breaches"), 0)?;
    if desk.url.starts_with("postgres") {
        return Ok(());
    }
    let behind = desk.wait(leasehold::sqlite::open(&desk.url))?;
    desk.wait(behind.transaction(|tx| {
        let gone = tx.execute_batch(include_str!("lose_dead_letters.sql"));
        gone.map_err(|error| {
            leasehold::Error::new(leasehold::ErrorKind::Corrupt, "break", error.to_string())
        })
    }))?;
    let out = desk.run(&["verify", "--json"])?;
    same("exit code", &Value::from(out.status.code()), 5)?;
    let said: Value = serde_json::from_slice(&out.stdout)?;
    same("broken", at(&said, "/breaches/rows/0/broken"), "given up without a dead letter")?;
    same("breaches", at(&said, "/looked_at/breaches"), 1)?;
    same("quick", at(&desk.json(&["verify", "--quick"])?, "/looked_at/breaches"), 0)
}

/// The job goes by its queue's age, its secret with it; what belongs to another job stays.
///
/// Proves: QUE-4, ENC-3
pub(crate) fn a_prune_takes_the_secrets_along(desk: &Desk) -> Result<(), Failed> {
    use leasehold::vault::{Binding, KekId, KeyRing, Places, Vault, VaultError};
    let ring = KeyRing::new(KekId::new("k")?, [7; 32])?;
    let vault = Vault::new(desk.store.clone(), Arc::new(ring));
    let jobs = [desk.enqueue(job("q")?)?, desk.enqueue(job("q")?)?];
    let of = |job: leasehold::JobId| Binding::new(job.to_string(), "r", 1);
    for job in jobs {
        desk.wait(vault.put(&of(job), b"marker-of-a-secret", Places::new()))?;
    }
    desk.kill_one("q")?;
    same("too young", at(&desk.json(&["prune"])?, "/pruned"), 0)?;
    let now = leasehold::PruneRequest::new().older_than(std::time::Duration::ZERO);
    desk.wait(desk.store.prune(now))?;
    same("secrets", at(&desk.json(&["prune"])?, "/pruned"), 1)?;
    let gone = desk.runtime.block_on(vault.open(&of(jobs[0])));
    same("gone", &Value::from(matches!(gone, Err(VaultError::Absent))), true)?;
    let left = desk.runtime.block_on(vault.open(&of(jobs[1])));
    same("left", &Value::from(left.is_ok()), true)
}

/// Proves: ENC-3
pub(crate) fn keys_are_listed_rotated_and_retired(desk: &Desk) -> Result<(), Failed> {
    use leasehold::vault::{Binding, KekId, KeyRing, Places, Vault};
    let ring = KeyRing::new(KekId::new("old")?, [7; 32])?;
    let vault = Vault::new(desk.store.clone(), Arc::new(ring));
    for job in ["a", "b", "c"] {
        let binding = Binding::new(job, "r", 1);
        desk.wait(vault.put(&binding, b"marker-of-a-secret", Places::new()))?;
    }
    let listed = desk.json(&["keys", "list"])?;
    same("key", at(&listed, "/vault/rows/0/key"), "old")?;
    same("secrets", at(&listed, "/vault/rows/0/secrets"), 3)?;
    same("age", at(&listed, "/vault/rows/0/days_in_use"), 0)?;
    same("overdue", at(&listed, "/vault/rows/0/overdue"), false)?;
    let keys = "new:CAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg=,old:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
    let with_ring = |arguments: &[&str]| -> Result<Output, Failed> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        let named = [arguments, &["--env", "RING", "--json"]].concat();
        Ok(command.args(named).env("STORE_URL", &desk.url).env("RING", keys).output()?)
    };
    let early = with_ring(&["keys", "retire", "old"])?;
    same("in use", &Value::from(early.status.code()), 4)?;
    for (key, why) in [("new", "is the active one"), ("nobody", "unknown key id")] {
        let out = with_ring(&["keys", "retire", key])?;
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        same(
            &said,
            &Value::from((out.status.code(), said.contains(why)) == (Some(4), true)),
            true,
        )?;
    }
    let rotated: Value = serde_json::from_slice(&with_ring(&["keys", "rotate"])?.stdout)?;
    same("rewrapped", at(&rotated, "/rewrapped"), 3)?;
    same("retire", &Value::from(with_ring(&["keys", "retire", "old"])?.status.code()), 0)?;
    let listed = desk.json(&["keys", "list"])?;
    same("new", at(&listed, "/vault/rows/0/secrets"), 3)?;
    same("retired", at(&listed, "/vault/rows/1/retired"), true)?;
    let made = desk.json(&["keys", "issue", "shop", "--kind", "print"])?;
    let (id, key) = (at(&made, "/id").clone(), at(&made, "/key").clone());
    let listed = desk.json(&["keys", "list"])?;
    same("api key", at(&listed, "/api_keys/rows/0/id"), id.clone())?;
    let shown = listed.to_string();
    let secret = key.as_str().and_then(|key| key.rsplit('_').next()).ok_or("no key")?;
    same("shown again", &Value::from(shown.contains(secret)), false)?;
    let id = id.as_str().ok_or("no id")?;
    desk.json(&["keys", "revoke", id])?;
    same("twice", &Value::from(desk.run(&["keys", "revoke", id])?.status.code()), 4)
}

/// After the epoch was raised no fence from before writes; the clock is set only while nothing is leased.
///
/// Proves: WQ-12, CLI-1
pub(crate) fn the_epoch_is_raised_and_the_clock_set(desk: &Desk) -> Result<(), Failed> {
    let _id = desk.enqueue(job("q")?)?;
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::new("q")?]);
    let claims = desk.wait(desk.store.claim(request))?;
    let fence = claims.first().ok_or("no claim")?.fence;
    let out = desk.run(&["reset-clock"])?;
    let wanted = if desk.url.starts_with("postgres") { 0 } else { 4 };
    same("leased", &Value::from(out.status.code()), wanted)?;

    let before = at(&desk.json(&["status"])?, "/store/epoch").as_i64().ok_or("no epoch")?;
    let raised = desk.json(&["raise-epoch", "--actor", "ada"])?;
    same("epoch", at(&raised, "/epoch"), before + 1)?;
    let stale = desk.runtime.block_on(desk.store.succeed(fence));
    same("stale", &Value::from(stale.is_err()), true)?;
    let said = desk.json(&["audit", "--by", "ada"])?;
    same("audited", &Value::from(rows(&said, "")?.len()), 1)?;
    Ok(())
}
