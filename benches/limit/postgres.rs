//! Owns the raw loops on PostgreSQL. Their schema is no part of Leasehold.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::future::{join_all, poll_fn};
use leasehold::JobId;
use leasehold_postgres::tokio_postgres::{AsyncMessage, Client, NoTls, Statement};
use tokio::sync::mpsc;

use crate::sqlite::between;
use crate::{Extra, Limit, Outcome, Pickup};
use leasehold_cli::bench::workload::{Payload, payload};

const TABLES: &str = "
    create table jobs (
      id uuid primary key,
      queue text not null,
      state text not null,
      priority smallint not null,
      run_at timestamptz not null,
      finished_at timestamptz,
      claim text,
      payload text not null
    ) with (fillfactor = 70);
    create index jobs_claimable on jobs (queue, priority desc, run_at, id) where state = 'waiting';
    create table log (
      job uuid not null, verb text not null, at timestamptz not null, primary key (job, verb)
    )";
const INSERT: &str = "
    insert into jobs (id, queue, state, priority, run_at, payload)
    values ($1::text::uuid, $2, 'waiting', 0, now(), $3)";
const INSERT_MANY: &str = "
    insert into jobs (id, queue, state, priority, run_at, payload)
    select id::uuid, $2, 'waiting', 0, now(), payload
    from unnest($1::text[], $3::text[]) as many (id, payload)";
const INSERT_AND_TELL: &str = "
    with one as (
      insert into jobs (id, queue, state, priority, run_at, payload)
      values ($1::text::uuid, $2, 'waiting', 0, now(), $3)
    )
    select pg_notify('raw', '')";
const CLAIM: &str = "
    with due as materialized (
      select id from jobs
      where state = 'waiting' and queue = $1 and run_at <= now()
      order by priority desc, run_at, id
      limit $2
      for no key update skip locked
    )
    update jobs set state = 'leased' where id = any (array (select id from due))
    returning id::text, payload";
const CLAIM_FENCED: &str = "
    with due as materialized (
      select id from jobs
      where state = 'waiting' and queue = $1 and run_at <= now()
      order by priority desc, run_at, id
      limit $2
      for no key update skip locked
    )
    update jobs set state = 'leased', claim = $3 where id = any (array (select id from due))
    returning id::text, payload";
const CLAIM_LOGGED: &str = "
    with due as materialized (
      select id from jobs
      where state = 'waiting' and queue = $1 and run_at <= now()
      order by priority desc, run_at, id
      limit $2
      for no key update skip locked
    ), taken as (
      update jobs set state = 'leased' where id = any (array (select id from due))
      returning id, payload
    ), logged as (
      insert into log (job, verb, at) select id, 'claim', now() from taken
    )
    select id::text, payload from taken";
const COMPLETE: &str = "
    update jobs set state = 'succeeded', finished_at = now() where id = any ($1::text[]::uuid[])";
const COMPLETE_FENCED: &str = "
    update jobs set state = 'succeeded', finished_at = now()
    where id = any ($1::text[]::uuid[]) and claim = $2";
const COMPLETE_LOGGED: &str = "
    with done as (
      update jobs set state = 'succeeded', finished_at = now()
      where id = any ($1::text[]::uuid[]) returning id
    )
    insert into log (job, verb, at) select id, 'complete', now() from done";
/// How long the system is left alone before each pick-up.
const IDLE: Duration = Duration::from_millis(30);
/// How many connections drain at once.
const DRAINING: usize = 2;

/// Connections to tables for the loops.
pub(crate) struct Raw {
    server: String,
    schema: String,
    session: Session,
}

/// One connection; what it hears stands in `heard`.
struct Session {
    client: Client,
    heard: mpsc::UnboundedReceiver<()>,
}

impl Session {
    async fn open(server: &str, schema: &str) -> Outcome<Self> {
        let (client, mut connection) =
            leasehold_postgres::tokio_postgres::connect(server, NoTls).await?;
        let (tell, heard) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if matches!(message, AsyncMessage::Notification(_)) {
                    // Nobody listens any more only after the measurement.
                    let _late = tell.send(());
                }
            }
        });
        client.batch_execute(&format!("set search_path = \"{schema}\"")).await?;
        Ok(Self { client, heard })
    }

    async fn drain(&self, queue: &str, batch: usize, extra: Extra) -> Outcome<(usize, usize)> {
        let (claim, complete) = match extra {
            Extra::Nothing => (CLAIM, COMPLETE),
            Extra::Log => (CLAIM_LOGGED, COMPLETE_LOGGED),
            Extra::Fence => (CLAIM_FENCED, COMPLETE_FENCED),
        };
        let claim = self.client.prepare(claim).await?;
        let complete = self.client.prepare(complete).await?;
        let (mut jobs, mut sum) = (0, 0);
        loop {
            let fence = (extra == Extra::Fence).then(|| JobId::new().to_string());
            let claimed = self.claim(&claim, queue, batch, fence.as_deref()).await?;
            if claimed.is_empty() {
                return Ok((jobs, sum));
            }
            jobs += claimed.len();
            sum += claimed.iter().map(|(_, number)| number).sum::<usize>();
            let ids: Vec<String> = claimed.into_iter().map(|(id, _)| id).collect();
            let wanted = u64::try_from(ids.len())?;
            let done = match fence {
                None => self.client.execute(&complete, &[&ids]).await?,
                Some(fence) => self.client.execute(&complete, &[&ids, &fence]).await?,
            };
            if extra != Extra::Log && done != wanted {
                return Err("a job was completed by somebody else".into());
            }
        }
    }

    async fn claim(
        &self,
        claim: &Statement,
        queue: &str,
        batch: usize,
        fence: Option<&str>,
    ) -> Outcome<Vec<(String, usize)>> {
        let batch = i64::try_from(batch)?;
        let rows = match fence {
            None => self.client.query(claim, &[&queue, &batch]).await?,
            Some(fence) => self.client.query(claim, &[&queue, &batch, &fence]).await?,
        };
        let read = |row: &leasehold_postgres::tokio_postgres::Row| -> Outcome<(String, usize)> {
            let number = serde_json::from_str::<Payload>(row.try_get(1)?)?.number;
            Ok((row.try_get(0)?, number))
        };
        rows.iter().map(read).collect()
    }

    async fn enqueue(&self, queue: &str, numbers: impl Iterator<Item = usize>) -> Outcome<()> {
        let insert = self.client.prepare(INSERT).await?;
        for number in numbers {
            let id = JobId::new().to_string();
            self.client.execute(&insert, &[&id, &queue, &payload(number)]).await?;
        }
        Ok(())
    }
}

impl Raw {
    pub(crate) async fn open(server: &str, number: usize) -> Outcome<Self> {
        let schema = format!("raw_{}_{number}", std::process::id());
        let session = Session::open(server, &schema).await?;
        session.client.batch_execute(&format!("create schema \"{schema}\"")).await?;
        session.client.batch_execute(TABLES).await?;
        Ok(Self { server: server.to_owned(), schema, session })
    }

    async fn sessions(&self, count: usize) -> Outcome<Vec<Session>> {
        let mut sessions = Vec::with_capacity(count);
        for _ in 0..count {
            sessions.push(Session::open(&self.server, &self.schema).await?);
        }
        Ok(sessions)
    }
}

/// Removes a schema and all that is in it.
pub(crate) async fn drop_schema(server: &str, schema: &str) -> Outcome<()> {
    let session = Session::open(server, schema).await?;
    Ok(session.client.batch_execute(&format!("drop schema \"{schema}\" cascade")).await?)
}

#[async_trait]
impl Limit for Raw {
    async fn enqueue(&mut self, queue: &str, jobs: usize, batch: usize) -> Outcome<()> {
        if batch == 1 {
            return self.session.enqueue(queue, 0..jobs).await;
        }
        let client = &self.session.client;
        let insert = client.prepare(INSERT_MANY).await?;
        for first in (0..jobs).step_by(batch) {
            let numbers = first..jobs.min(first + batch);
            let ids: Vec<String> = numbers.clone().map(|_| JobId::new().to_string()).collect();
            let payloads: Vec<String> = numbers.map(payload).collect();
            client.execute(&insert, &[&ids, &queue, &payloads]).await?;
        }
        Ok(())
    }

    async fn enqueue_from(&mut self, queue: &str, jobs: usize, clients: usize) -> Outcome<()> {
        let sessions = self.sessions(clients).await?;
        let numbers = |at: usize| (at..jobs).step_by(clients);
        let all = sessions.iter().enumerate().map(|(at, it)| it.enqueue(queue, numbers(at)));
        join_all(all).await.into_iter().collect()
    }

    async fn drain(&mut self, queue: &str, batch: usize, extra: Extra) -> Outcome<usize> {
        let sessions = self.sessions(DRAINING).await?;
        let (mut jobs, mut sum) = (0, 0);
        for drained in join_all(sessions.iter().map(|it| it.drain(queue, batch, extra))).await {
            let (more, numbers) = drained?;
            jobs += more;
            sum += numbers;
        }
        if sum != jobs * (jobs.max(1) - 1) / 2 {
            return Err("a job was drained twice or not at all".into());
        }
        Ok(jobs)
    }

    async fn pick_up(&mut self, queue: &str, jobs: usize) -> Outcome<Vec<Pickup>> {
        let mut listener = Session::open(&self.server, &self.schema).await?;
        listener.client.batch_execute("listen raw").await?;
        let claim = listener.client.prepare(CLAIM).await?;
        let insert = self.session.client.prepare(INSERT_AND_TELL).await?;
        let (tell, mut told) = mpsc::unbounded_channel();
        let name = queue.to_owned();
        let claimer = tokio::spawn(async move {
            while listener.heard.recv().await.is_some() {
                for (_, number) in listener.claim(&claim, &name, 1, None).await? {
                    if tell.send((number, Instant::now())).is_err() {
                        return Ok(());
                    }
                }
            }
            Outcome::Ok(())
        });
        let mut picked = Vec::with_capacity(jobs);
        for number in 0..jobs {
            tokio::time::sleep(IDLE).await;
            let (id, payload) = (JobId::new().to_string(), payload(number));
            let called = Instant::now();
            self.session.client.execute(&insert, &[&id, &queue, &payload]).await?;
            let returned = Instant::now();
            let heard = tokio::time::timeout(Duration::from_secs(30), told.recv()).await?;
            let (seen, begun) = heard.ok_or("the claimer stopped")?;
            if seen != number {
                return Err("another job was picked up".into());
            }
            picked.push((between(called, begun), between(returned, begun)));
        }
        claimer.abort();
        Ok(picked)
    }
}
