//! Owns what operators do to dead letters and queues, and what is told of it afterwards.

use leasehold::{
    ClaimRequest, Control, Failure, FailureCode, QueueName, Settlement, StoreExt, Verdict, WorkerId,
};
use libtest_mimic::Failed;
use serde_json::Value;

use crate::desk::{Desk, at, job, rows, same};

/// Proves: DL-3, DL-5
pub(crate) fn dead_letters_are_replayed_and_closed(desk: &Desk) -> Result<(), Failed> {
    let ids = [desk.enqueue(job("d")?)?.to_string(), desk.enqueue(job("d")?)?.to_string()];
    desk.kill_one("d")?;
    desk.kill_one("d")?;
    let out = desk.run(&["dead", "replay", "--queue", "d", "--note", "mended"])?;
    same("without the word", &Value::from(out.status.code()), 2)?;
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    same(&said, &Value::from(said.contains("replay job")), false)?;
    let plan = ["dead", "replay", "--queue", "d", "--note", "mended", "--safe-to-repeat"];
    let planned = desk.json(&[&plan[..], &["--dry-run"]].concat())?;
    same("planned", &Value::from(rows(&planned, "")?.len()), 2)?;
    same("would", at(&planned, "/rows/0/outcome"), "would be replayed")?;
    same(
        "still dead",
        &Value::from(rows(&desk.json(&["dead", "list", "--state", "open"])?, "")?.len()),
        2,
    )?;
    let done = desk.json(&["dead", "resolve", &ids[1], "--note", "done by hand"])?;
    same("resolved", at(&done, "/outcome"), "done")?;
    let replayed = desk.json(&plan)?;
    same("replayed", at(&replayed, "/rows/0/outcome"), "replayed")?;
    same("one", &Value::from(rows(&replayed, "")?.len()), 1)?;
    same("waits", at(&desk.json(&["jobs", "show", &ids[0]])?, "/job/state"), "waiting")?;
    let shown = desk.json(&["dead", "show", &ids[0]])?;
    same("letter", at(&shown, "/letters/0/state"), "replaying")?;
    same("by", at(&shown, "/letters/0/changed_by"), "tester")?;
    let shown = desk.json(&["dead", "show", &ids[1]])?;
    same("closed", at(&shown, "/letters/0/state"), "resolved")?;
    let listed = |options: &[&str]| -> Result<usize, Failed> {
        Ok(rows(&desk.json(&[&["dead", "list"], options].concat())?, "")?.len())
    };
    same("not closed", &Value::from(listed(&[])?), 1)?;
    same("all", &Value::from(listed(&["--all"])?), 2)?;
    same("closed", &Value::from(listed(&["--state", "resolved"])?), 1)?;
    let again = |id: &str| -> Result<Value, Failed> {
        desk.json(&["dead", "replay", "--job", id, "--note", "n", "--safe-to-repeat"])
    };
    let told = again(&ids[0])?;
    same("again", at(&told, "/rows/0/outcome"), "is being replayed already")?;
    same("runs", at(&told, "/rows/0/runs_as"), ids[0].clone())?;
    same("shut", at(&again(&ids[1])?, "/rows/0/outcome"), "is resolved and stays closed")?;
    let request = ClaimRequest::new(WorkerId::new(), [QueueName::new("d")?]);
    let claim = desk.wait(desk.store.claim(request))?.pop().ok_or("no claim")?;
    desk.wait(desk.store.succeed(claim.fence))?;
    same("over", at(&again(&ids[0])?, "/rows/0/outcome"), "was replayed and is resolved")?;
    let third = desk.enqueue(job("d")?)?.to_string();
    desk.wait(desk.store.control(Control::Pause(QueueName::new("d")?)))?;
    let asleep = desk.json(&["jobs", "wake", &third])?;
    same("woken", at(&asleep, "/outcome"), "it was so already")
}

/// Letters of two classes, some of them closed, over pages of one.
///
/// Proves: DL-3
pub(crate) fn dead_letters_are_listed_by_class(desk: &Desk) -> Result<(), Failed> {
    let mut ids = Vec::new();
    for code in [FailureCode::SchemaInvalid, FailureCode::WorkerLost].repeat(3) {
        let id = desk.enqueue(job("d")?)?.to_string();
        let request = ClaimRequest::new(WorkerId::new(), [QueueName::new("d")?]);
        let claim = desk.wait(desk.store.claim(request))?.pop().ok_or("no claim")?;
        let verdict = Verdict::DeadLetter { failure: Failure::new(code, "no good") };
        desk.wait(desk.store.settle_one(Settlement::new(claim.fence, verdict)))?;
        ids.push(id);
    }
    let closed = ids.get(2).ok_or("no third job")?;
    desk.json(&["dead", "resolve", closed, "--note", "by hand"])?;
    let all = |options: &[&str]| -> Result<Vec<String>, Failed> {
        let (mut seen, mut after) = (Vec::new(), None::<String>);
        loop {
            let mut words = [&["dead", "list", "--limit", "1"][..], options].concat();
            words.extend(after.as_deref().into_iter().flat_map(|after| ["--after", after]));
            let page = desk.json(&words)?;
            for row in rows(&page, "")? {
                seen.push(at(row, "/job").as_str().ok_or("no job")?.to_owned());
            }
            after = match at(&page, "/next").as_str() {
                Some(next) => Some(next.to_owned()),
                None => return Ok(seen),
            };
        }
    };
    let class = FailureCode::SchemaInvalid.class().id();
    let of =
        |picked: &[usize]| picked.iter().filter_map(|at| ids.get(*at).cloned()).collect::<Vec<_>>();
    for (options, wanted) in [
        (&[][..], of(&[0, 1, 3, 4, 5])),
        (&["--all"], of(&[0, 1, 2, 3, 4, 5])),
        (&["--class", class], of(&[0, 4])),
        (&["--class", class, "--all"], of(&[0, 2, 4])),
        (&["--class", class, "--state", "resolved"], of(&[2])),
    ] {
        same(&format!("{options:?}"), &Value::from(all(options)?), wanted)?;
    }
    let listed = desk.json(&["dead", "list", "--limit", "2", "--class", class])?;
    same("two of a page", &Value::from(rows(&listed, "")?.len()), 2)?;
    same("class", at(&listed, "/rows/0/class"), class)
}

pub(crate) fn queues_are_paused_and_limited(desk: &Desk) -> Result<(), Failed> {
    desk.json(&["queues", "pause", "mail", "--create"])?;
    desk.json(&["queues", "limit", "mail", "--leases", "7", "--partition", "2"])?;
    desk.json(&["queues", "lease", "mail", "90"])?;
    desk.json(&["queues", "limit", "--leases", "9"])?;
    let listed = desk.json(&["queues", "list"])?;
    let row = at(&listed, "/rows/0").clone();
    for (name, wanted) in [
        ("paused", Value::from(true)),
        ("limit", 7.into()),
        ("lease_seconds", 90.0.into()),
        ("partition_limit", 2.into()),
    ] {
        same(name, at(&row, &format!("/{name}")), wanted)?;
    }
    same("store", at(&desk.json(&["status"])?, "/store/limit"), 9)?;
    desk.json(&["queues", "resume", "mail"])?;
    desk.json(&["queues", "limit", "mail", "--leases", "none"])?;
    let listed = desk.json(&["queues", "list"])?;
    same("paused", at(&listed, "/rows/0/paused"), false)?;
    same("limit", at(&listed, "/rows/0/limit"), Value::Null)?;
    same("kept", at(&listed, "/rows/0/partition_limit"), 2)?;
    desk.json(&["queues", "resume", "mail"])?;
    let entries = desk.json(&["audit"])?;
    let told = |row: &Value| {
        ["actor", "action", "target", "detail"].map(|name| at(row, &format!("/{name}")).clone())
    };
    let entries: Vec<_> = rows(&entries, "")?.iter().map(told).collect();
    let expected = [
        ("queue.pause", "queue mail", Value::Null),
        ("queue.limit", "queue mail", "{\"leases\":7,\"partition\":2}".into()),
        ("queue.lease", "queue mail", "{\"seconds\":90}".into()),
        ("store.limit", "store", "{\"leases\":9}".into()),
        ("queue.resume", "queue mail", Value::Null),
        ("queue.limit", "queue mail", "{\"leases\":null}".into()),
    ];
    let expected = expected.map(|(action, target, detail)| {
        [Value::from("tester"), action.into(), target.into(), detail]
    });
    same("audited", &Value::from(format!("{entries:?}")), format!("{expected:?}"))
}
