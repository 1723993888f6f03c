//! Owns the check that each statement finds its rows by an index, looks at no more of them than it was
//! asked for, and gives the same ones, whatever the planner was told; and that a claim keeps its limit then.

use std::collections::BTreeMap;

use leasehold_postgres::tokio_postgres::{Client, SimpleQueryMessage};
use serde_json::Value;

use crate::book;
use crate::contents;
use crate::crowd::{GROWING, analyze, crowd, is_short, rows, within};
use crate::place::{Place, fill};
use crate::statements::{ITEMS, Said, Sort, statements};

pub(crate) const CLAIM: &str = include_str!("../../src/sql/claim.sql");
pub(crate) const CLAIM_KINDS: &str =
    "text, timestamptz, bigint, uuid, uuid, timestamptz, bigint, uuid[], boolean";

pub(crate) fn claim_values(limit: usize) -> String {
    format!(
        "'default', now(), {limit}, gen_random_uuid(), gen_random_uuid(), now() + interval '30 s', \
         30000, '{{}}', false"
    )
}

const ALONE: &str = include_str!("../../src/sql/claim_alone.sql");
const ALONE_KINDS: &str = "text, timestamptz, bigint, uuid, uuid, bigint, bigint, text[]";

fn alone_values(limit: usize) -> String {
    format!(
        "'default', null, {limit}, gen_random_uuid(), gen_random_uuid(), null, 30000, '{{standard 1}}'"
    )
}

/// What a planner may be told; with all ways to walk an index forbidden nothing could walk one.
const TOLD: [&str; 24] = [
    "",
    "set plan_cache_mode = force_generic_plan",
    "set plan_cache_mode = force_custom_plan",
    "set enable_hashjoin = off",
    "set enable_mergejoin = off",
    "set enable_nestloop = off",
    "set enable_nestloop = off; set plan_cache_mode = force_generic_plan",
    "set enable_hashjoin = off; set enable_mergejoin = off",
    "set enable_hashjoin = off; set enable_mergejoin = off; set enable_material = off;
     set enable_sort = off; set enable_seqscan = off; set enable_memoize = off",
    "set enable_sort = off",
    "set enable_incremental_sort = off",
    "set enable_hashagg = off",
    "set enable_material = off",
    "set enable_memoize = off",
    "set enable_seqscan = off",
    "set enable_bitmapscan = off",
    "set enable_indexonlyscan = off",
    "set enable_seqscan = off; set enable_bitmapscan = off",
    "set random_page_cost = 1; set plan_cache_mode = force_generic_plan",
    "set random_page_cost = 10",
    "set effective_cache_size = '1MB'; set work_mem = '64kB'",
    "set join_collapse_limit = 1; set from_collapse_limit = 1",
    "set parallel_setup_cost = 0; set parallel_tuple_cost = 0; set min_parallel_table_scan_size = 0;
     set min_parallel_index_scan_size = 0; set max_parallel_workers_per_gather = 4",
    "set enable_seqscan = off; set plan_cache_mode = force_generic_plan",
];

/// Off the claim path, and about waits: where nothing is known of a table of millions of rows, a planner
/// that has been told odd prices takes their equality for a large part of it, and reads it whole.
const UNKNOWN: [&str; 3] = ["count_parents", "prune_jobs", "prune_waited"];
/// Up to so many rows they too go by their index without statistics.
const UNKNOWN_MAX: u64 = 100_000;

/// Rows looked at, and pages, for so many items asked for.
const ROWS_MAX: u64 = 12 * ITEMS + 100;
const PAGES_MAX: u64 = 60 * ITEMS + 1_000;

/// Proves: WQ-3
pub(crate) async fn statements_visit_what_they_are_asked_for(place: Place) {
    let _store = place.store().await;
    let session = place.session().await;
    crowd(&session, &place.schema, rows()).await;
    let now = contents::now(&session).await;
    let statements = statements(&session, &place.schema).await.into_iter();
    let statements: Vec<Said> = statements.map(|said| contents::pinned(said, &now)).collect();
    let (mut problems, mut book) = (Vec::new(), Vec::new());
    let (mut rows_of, mut contents_of) = (BTreeMap::new(), BTreeMap::new());
    for analyzed in [false, true] {
        if analyzed {
            analyze(&session, &place.schema).await;
        }
        // Without statistics a few will do; the nightly run takes all.
        let told = if analyzed || !is_short() { &TOLD[..] } else { &TOLD[..7] };
        for told in told {
            session.batch_execute("reset all; deallocate all").await.expect("reset");
            session.batch_execute(told).await.expect("told");
            let plain = analyzed && told.is_empty();
            let known = analyzed && !told.contains("generic") && !told.contains("indexonly");
            let asked = |said: &&Said| match said.sort {
                Sort::Path if UNKNOWN.contains(&&*said.name) => analyzed || rows() <= UNKNOWN_MAX,
                Sort::Path => true,
                Sort::Page => known,
                Sort::Count => plain,
            };
            for said in statements.iter().filter(asked) {
                let plan = plan(&session, &place.schema, said).await;
                if let Some(why) = judge(said, &plan) {
                    problems.push(format!("{} [{told}] analyzed {analyzed}: {why}", said.name));
                }
                let rows = answered(&plan);
                let first = *rows_of.entry(said.name.clone()).or_insert(rows);
                if rows != first {
                    let why = format!("{rows} rows, and {first} under another plan");
                    problems.push(format!("{} [{told}] analyzed {analyzed}: {why}", said.name));
                }
                let found = contents::contents(&session, said).await;
                if let Some(why) = contents::difference(contents_of.get(&said.name), &found) {
                    problems.push(format!("{} [{told}] analyzed {analyzed}: {why}", said.name));
                }
                contents_of.entry(said.name.clone()).or_insert(found);
                if plain {
                    book.push((said.name.clone(), plan));
                }
            }
        }
    }
    if let Some(path) = book::wanted() {
        let version = session.query_one("show server_version", &[]).await.expect("a version");
        book::write(&path, version.get(0), &book);
    }
    assert!(problems.is_empty(), "{}\n{} problems", problems.join("\n"), problems.len());
}

/// Runs a statement, and takes back what it did; its plan.
async fn plan(session: &Client, schema: &str, said: &Said) -> Value {
    let statement = within(schema, &said.text);
    let values = if said.values.is_empty() { String::new() } else { format!("({})", said.values) };
    let text = format!(
        "prepare \"{0}\" as {statement}; begin;
         explain (analyze, buffers, costs off, timing off, summary off, format json)
         execute \"{0}\" {values}",
        said.name
    );
    let answers = session.simple_query(&text).await;
    let answers = answers.unwrap_or_else(|error| panic!("{}: {error:?}", said.name));
    session.batch_execute("rollback").await.expect("rolled back");
    let found = answers.iter().find_map(|it| match it {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    let mut plan: Value = serde_json::from_str(found.expect("a plan")).expect("JSON");
    plan[0]["Plan"].take()
}

/// How many rows a statement gave, or else wrote.
fn answered(plan: &Value) -> u64 {
    let writes = plan["Node Type"] == "ModifyTable" && plan["Actual Rows"].as_f64() == Some(0.0);
    let node = if writes { &plan["Plans"][0] } else { plan };
    node["Actual Rows"].as_f64().unwrap_or(0.0).round() as u64
}

/// What is wrong with a plan.
fn judge(said: &Said, plan: &Value) -> Option<String> {
    let figure = |node: &Value, name: &str| node[name].as_f64().unwrap_or(0.0);
    let mut all = Vec::new();
    nodes(plan, &mut all);
    let mut looked_at = 0.0;
    for node in all {
        let Some(table) = node["Relation Name"].as_str() else { continue };
        if node["Node Type"] == "ModifyTable" || !GROWING.contains(&table) {
            continue;
        }
        if node["Node Type"] == "Seq Scan" && figure(node, "Actual Loops") > 0.0 {
            return Some(format!("reads all of {table}\n{plan:#}"));
        }
        let each = ["Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck"];
        let each: f64 = each.iter().map(|name| figure(node, name)).sum();
        looked_at += each * figure(node, "Actual Loops");
    }
    if said.sort == Sort::Count {
        return None;
    }
    let pages = figure(plan, "Shared Hit Blocks") + figure(plan, "Shared Read Blocks");
    if looked_at > ROWS_MAX as f64 || pages > PAGES_MAX as f64 {
        return Some(format!("looks at {looked_at} rows, {pages} pages\n{plan:#}"));
    }
    let answered = figure(plan, "Actual Rows");
    let claims = ["claim", "claim_alone"].contains(&&*said.name);
    (claims && answered != ITEMS as f64).then(|| format!("claims {answered} jobs"))
}

fn nodes<'p>(plan: &'p Value, all: &mut Vec<&'p Value>) {
    all.push(plan);
    for below in plan["Plans"].as_array().into_iter().flatten() {
        nodes(below, all);
    }
}

/// Proves: WQ-3
pub(crate) async fn hostile_plans_never_claim_too_many(place: Place) {
    let store = place.store().await;
    let session = place.session().await;
    let (statement, alone) = (within(&place.schema, CLAIM), within(&place.schema, ALONE));
    for analyzed in [false, true] {
        fill(&store, 40).await;
        if analyzed {
            let text = format!("analyze \"{}\".jobs", place.schema);
            session.batch_execute(&text).await.expect("analyzed");
        }
        for told in TOLD {
            let prepare = format!("prepare hot ({CLAIM_KINDS}) as {statement}");
            let prepare_alone = format!("prepare alone ({ALONE_KINDS}) as {alone}");
            for text in ["reset all; deallocate all", told, &prepare, &prepare_alone] {
                session.batch_execute(text).await.expect("prepared");
            }
            for (name, limit) in [("hot", 1), ("hot", 5), ("alone", 1), ("alone", 5)] {
                session.batch_execute("begin").await.expect("begun");
                let values = if name == "hot" { claim_values(limit) } else { alone_values(limit) };
                let execute = format!("execute {name} ({values})");
                let claimed = session.simple_query(&execute).await.expect("claimed");
                session.batch_execute("rollback").await.expect("rolled back");
                let rows = claimed.iter().filter(|it| matches!(it, SimpleQueryMessage::Row(_)));
                assert_eq!(rows.count(), limit, "{name} {told}");
            }
        }
    }
}
