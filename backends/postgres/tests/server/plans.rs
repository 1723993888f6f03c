//! Owns the check that hot statements walk the index made for them, under custom and generic plans,
//! and that a claim keeps its limit under plans that nobody would choose.

use leasehold_postgres::tokio_postgres::{Client, SimpleQueryMessage};

use crate::place::{Place, fill};

pub(crate) const CLAIM: &str = include_str!("../../src/sql/claim.sql");
pub(crate) const CLAIM_KINDS: &str =
    "text, timestamptz, bigint, uuid, uuid, timestamptz, bigint, uuid[], boolean";

pub(crate) fn claim_values(limit: usize) -> String {
    format!(
        "'default', now(), {limit}, gen_random_uuid(), gen_random_uuid(), now() + interval '30 s', \
         30000, '{{}}', false"
    )
}

/// Rows where a wrong plan would hurt: most lie in the future, at a higher priority, or have ended.
async fn crowd(session: &Client, schema: &str) {
    let text = format!(
        "insert into \"{schema}\".jobs
        select gen_random_uuid(), 'default', 'k', 'standard', 1,
          case when i % 4 = 3 then 'succeeded' else 'waiting' end, 0,
          case when i % 4 = 0 then 100 else 0 end,
          now() + case when i % 4 = 0 then 1 else -1 end * interval '1 day' + i * interval '1 ms',
          false, false, false, 0, 5, 0, 0, null, null, null, null, null, null, 0, false, 0, 0, now(),
          now(), null, case when i % 4 = 3 then now() end
        from generate_series(1, 100000) i;
        insert into \"{schema}\".events
        select gen_random_uuid(), 't', 'key', 'k' || i, 1, '1', null,
          case when i % 2 = 0 then 'waiting' else 'delivered' end, true, now() + i * interval '1 s',
          0, 5, 0, null, null, null, null, null, null, null, now(), now(),
          case when i % 2 = 1 then now() end
        from generate_series(1, 20000) i;
        insert into \"{schema}\".low_water
        select queue, priority, min(run_at) from \"{schema}\".jobs
        where state = 'waiting' and not held group by 1, 2;
        analyze \"{schema}\".jobs; analyze \"{schema}\".low_water; analyze \"{schema}\".events"
    );
    session.batch_execute(&text).await.expect("a crowd");
}

async fn plan(
    session: &Client,
    schema: &str,
    kinds: &str,
    statement: &str,
    values: &str,
) -> String {
    let statement = statement.replace("leasehold.", &format!("\"{schema}\"."));
    session
        .batch_execute(&format!("deallocate all; prepare hot ({kinds}) as {statement}"))
        .await
        .expect("prepared");
    let explain = format!("explain (costs off) execute hot ({values})");
    let lines = session.simple_query(&explain).await.expect("a plan");
    let line = |it: &SimpleQueryMessage| match it {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    };
    lines.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}

/// Proves: WQ-3
pub(crate) async fn hot_statements_walk_their_index(place: Place) {
    let _store = place.store().await;
    let session = place.session().await;
    crowd(&session, &place.schema).await;
    let id = "'00000000-0000-0000-0000-000000000000'";
    let ids = format!("array[{id}]::uuid[]");
    let jobs_written = format!(
        "{ids}, '{{waiting}}', '{{0}}', array[now()], '{{f}}', '{{f}}', '{{0}}', '{{5}}', '{{0}}', \
         '{{0}}', '{{null}}', '{{null}}', '{{null}}', '{{null}}', '{{null}}', '{{null}}', '{{0}}', \
         '{{f}}', '{{0}}', '{{0}}', array[now()], '{{null}}', '{{null}}'"
    );
    let jobs_kinds = "uuid[], text[], smallint[], timestamptz[], boolean[], boolean[], bigint[], \
         bigint[], bigint[], bigint[], uuid[], text[], uuid[], timestamptz[], timestamptz[], \
         bigint[], bigint[], boolean[], bigint[], bigint[], timestamptz[], timestamptz[], \
         timestamptz[]";
    let claim = claim_values(100);
    let table: [(&str, &str, &str, &str); 9] = [
        (CLAIM, CLAIM_KINDS, &claim, "jobs_claimable"),
        (CLAIM, CLAIM_KINDS, &claim, "jobs_pkey"),
        (
            include_str!("../../src/sql/expired_jobs.sql"),
            "text, timestamptz, bigint",
            "'default', now(), 100",
            "jobs_leased",
        ),
        (
            include_str!("../../src/sql/count_leased.sql"),
            "text, timestamptz",
            "'default', now()",
            "jobs_leased",
        ),
        (
            include_str!("../../src/sql/lock_jobs.sql"),
            "uuid[], timestamptz",
            &format!("{ids}, null"),
            "jobs_pkey",
        ),
        (include_str!("../../src/sql/write_job.sql"), jobs_kinds, &jobs_written, "jobs_pkey"),
        (
            include_str!("../../src/sql/event_candidates.sql"),
            "timestamptz, text[], bigint",
            "now(), null, 10",
            "events_claimable",
        ),
        (
            include_str!("../../src/sql/prune_jobs.sql"),
            "text, text, timestamptz, bigint",
            "'default', 'succeeded', now() - interval '1 day', 100",
            "jobs_ended",
        ),
        (
            include_str!("../../src/sql/find_jobs.sql"),
            "uuid, text, text, text, text, bigint",
            &format!("{id}, null, null, null, null, 100"),
            "jobs_pkey",
        ),
    ];
    for mode in ["force_custom_plan", "force_generic_plan"] {
        session.batch_execute(&format!("set plan_cache_mode = {mode}")).await.expect("set");
        for (statement, kinds, values, index) in table {
            let plan = plan(&session, &place.schema, kinds, statement, values).await;
            assert!(plan.contains(index), "{mode}\n{statement}\n{plan}\nlacks {index}");
            for table in ["Seq Scan on jobs", "Seq Scan on events"] {
                assert!(!plan.contains(table), "{mode}\n{statement}\n{plan}\nreads all");
            }
        }
    }
}

/// Proves: WQ-3
pub(crate) async fn hostile_plans_never_claim_too_many(place: Place) {
    let store = place.store().await;
    let session = place.session().await;
    let nobodys_choice = "set enable_hashjoin = off; set enable_mergejoin = off;
        set enable_material = off; set enable_sort = off; set enable_seqscan = off;
        set enable_memoize = off";
    session.batch_execute(nobodys_choice).await.expect("set");
    let statement = CLAIM.replace("leasehold.", &format!("\"{}\".", place.schema));
    for analyzed in [false, true] {
        fill(&store, 20).await;
        if analyzed {
            let text = format!("analyze \"{}\".jobs", place.schema);
            session.batch_execute(&text).await.expect("analyzed");
        }
        for mode in ["force_custom_plan", "force_generic_plan"] {
            let prepare = format!(
                "set plan_cache_mode = {mode}; deallocate all; prepare hot ({CLAIM_KINDS}) as {statement}"
            );
            session.batch_execute(&prepare).await.expect("prepared");
            for limit in [1, 5] {
                let execute = format!("execute hot ({})", claim_values(limit));
                let claimed = session.simple_query(&execute).await.expect("claimed");
                let rows = claimed.iter().filter(|it| matches!(it, SimpleQueryMessage::Row(_)));
                assert_eq!(rows.count(), limit, "{mode}");
            }
        }
    }
}
