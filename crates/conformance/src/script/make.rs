//! Owns how requests are made of chance and of what the table remembers: fresh ones, repeats, and
//! ones that come too late.

use std::time::Duration;

use leasehold_core::lab::{Ending, Step};
use leasehold_core::{
    Actor, Admission, ClaimId, ClaimRequest, Control, EventClaimRequest, EventId, EventSettlement,
    EventVerdict, Failure, FailureCode, IdempotencyKey, JobFilter, JobId, JobKind, Json,
    LeaseLength, LifecycleName, NewEvent, NewJob, OnFailure, OrderKey, Ordering, Paging,
    PartitionName, Progress, PruneRequest, Query, QueueName, QueueSettings, Rate, ReclaimRequest,
    RenewRequest, Scope, Settlement, StageName, StartRate, Topic, Verdict, WorkerId,
};

use super::draw::Draw;
use super::letters;
use super::records::{self, once};
use super::request::Request;
use super::table::Table;

impl Request {
    /// Draws the next step.
    pub(super) fn draw(draw: &mut Draw, table: &Table) -> Self {
        match draw.below(41) {
            0..=6 => Self::Enqueue(jobs(draw, table)),
            7..=13 => Self::Claim(claim(draw, table)),
            14..=15 => Self::Renew(renew(draw, &table.fences)),
            16..=18 => Self::Progress(reports(draw, table)),
            19..=24 => Self::Settle(settlements(draw, table)),
            25 => Self::Reclaim(reclaim(draw)),
            26 => Self::Publish(events(draw, table)),
            27..=28 => Self::ClaimEvents(claim_events(draw)),
            29 => Self::RenewEvents(renew(draw, &table.event_fences)),
            30..=31 => Self::SettleEvents(event_settlements(draw, table)),
            32 => Self::Control(control(draw, table)),
            33 => Self::Find(find(draw, table)),
            34 => Self::Stats,
            35 => Self::Prune(prune(draw)),
            36 if draw.once_in(2) => Self::Once(once(draw)),
            36 => Self::Record(records::step(draw)),
            37 => joined(draw, table),
            38 => Self::Control(letters::act(draw, table)),
            _ => Self::Advance(Duration::from_millis(draw.below(9_000) as u64)),
        }
    }
}

fn queue(draw: &mut Draw) -> QueueName {
    QueueName::new(["alpha", "Beta", "gamma"][draw.below(3)]).expect("a queue")
}

fn worker(draw: &mut Draw) -> WorkerId {
    WorkerId::from_uuid(uuid::Uuid::from_u128(1 + draw.below(3) as u128))
}

fn json(draw: &mut Draw) -> Json {
    Json::parse(format!("{{\"n\": {}}}", draw.below(3))).expect("JSON")
}

/// As [`json`], and one in three so long that an engine may keep it apart.
fn payload(draw: &mut Draw) -> Json {
    let n = draw.below(3);
    let note = if n == 2 { "x".repeat(1_000) } else { String::new() };
    Json::parse(format!("{{\"n\": {n}, \"note\": \"{note}\"}}")).expect("JSON")
}

fn failure(draw: &mut Draw) -> Failure {
    let codes = [
        FailureCode::NetworkTimeout,
        FailureCode::RateLimited,
        FailureCode::SchemaInvalid,
        FailureCode::Panic,
    ];
    Failure::new(codes[draw.below(codes.len())], "went wrong")
}

fn delay(draw: &mut Draw) -> Option<Duration> {
    (!draw.once_in(2)).then(|| draw.seconds(5))
}

fn job(draw: &mut Draw, table: &Table) -> NewJob {
    if draw.once_in(12)
        && let Some(known) = draw.late(&table.jobs)
    {
        return known.clone();
    }
    let kind = JobKind::new(["resize", "mail"][draw.below(2)]).expect("a kind");
    let mut job = NewJob::new(kind, payload(draw)).id(JobId::from_uuid(draw.id()));
    job = job.queue(queue(draw)).priority([-5, 0, 0, 0, 7][draw.below(5)]);
    let lifecycles = ["standard", "standard", "work_queue", "transcode", "review"];
    let lifecycle = lifecycles[draw.below(lifecycles.len())];
    job = job.lifecycle(LifecycleName::new(lifecycle).expect("a lifecycle"));
    if draw.once_in(2) {
        job = job.max_attempts(1 + draw.below(3) as u16);
    }
    if draw.once_in(4) {
        job = job.delay(draw.seconds(6));
    }
    if draw.once_in(2) {
        let name = ["a", "b", "c d"][draw.below(3)];
        job = job.partition(PartitionName::new(name).expect("a partition"));
    }
    if draw.once_in(4) {
        let key = format!("key {}", draw.below(6));
        job = job.key(IdempotencyKey::new(key).expect("a key"));
        if draw.once_in(2) {
            job = job.scope(Scope::new("tenant").expect("a scope"));
        }
        if draw.once_in(3) {
            job = job.key_ttl(draw.seconds(20));
        }
    }
    if draw.once_in(5) {
        job = job.subject("change", draw.below(9) as i64);
        if draw.once_in(2) {
            job = job.subject("again", draw.below(4) as i64).rerun();
        }
    }
    if draw.once_in(3)
        && let Some(parent) = draw.late(&table.job_ids())
    {
        let policy = on_failure(draw, &job);
        job = job.after(*parent, policy);
    }
    job
}

/// Mostly a policy that the job's lifecycle allows.
fn on_failure(draw: &mut Draw, job: &NewJob) -> OnFailure {
    let cancels = job.lifecycle == LifecycleName::standard() || draw.once_in(20);
    if cancels { OnFailure::ALL[draw.below(3)] } else { OnFailure::Run }
}

fn jobs(draw: &mut Draw, table: &Table) -> Vec<NewJob> {
    let mut jobs: Vec<NewJob> = (0..1 + draw.below(4)).map(|_| job(draw, table)).collect();
    // Some of a call wait for others of it, before or behind them; now and then in a circle.
    for _ in 0..draw.below(4) {
        let (child, parent) = (draw.below(jobs.len()), draw.below(jobs.len()));
        if child == parent || (child < parent && !draw.once_in(6)) {
            continue;
        }
        let (parent, waiting) = (jobs[parent].id, jobs[child].clone());
        let policy = on_failure(draw, &waiting);
        jobs[child] = waiting.after(parent, policy);
    }
    jobs
}

fn claim(draw: &mut Draw, table: &Table) -> ClaimRequest {
    if draw.once_in(8)
        && let Some(last) = table.claims.last()
    {
        return last.clone().repeat();
    }
    let queues: Vec<QueueName> = (0..1 + draw.below(3)).map(|_| queue(draw)).collect();
    let request = ClaimRequest::new(worker(draw), queues).limit(1 + draw.below(4));
    let request = request.claim_id(ClaimId::from_uuid(draw.id()));
    match draw.once_in(3) {
        true => request,
        false => request.lease(lease(draw)),
    }
}

fn lease(draw: &mut Draw) -> LeaseLength {
    LeaseLength::from_millis(1_000 + draw.below(9_000) as u64).expect("a lease")
}

fn renew<F: Copy>(draw: &mut Draw, fences: &[F]) -> RenewRequest<F> {
    let some: Vec<F> = (0..draw.below(4)).filter_map(|_| draw.late(fences).copied()).collect();
    let request = RenewRequest::new(some);
    if draw.once_in(2) { request } else { request.lease(lease(draw)) }
}

fn reports(draw: &mut Draw, table: &Table) -> Vec<Progress> {
    let mut out = Vec::new();
    for _ in 0..1 + draw.below(2) {
        let Some(fence) = draw.late(&table.fences).copied() else { continue };
        let mut report = Progress::new(fence, draw.below(4) as u32);
        if draw.once_in(2) {
            report = report.checkpoint(json(draw));
        }
        if draw.once_in(2) {
            let stages = ["fetching", "processing", "uploading", "llm", "notify", "running"];
            let stage = stages[draw.below(stages.len())];
            report = report.advance(StageName::new(stage).expect("a stage"));
        }
        if draw.once_in(3) {
            report = report.event(event(draw, table));
        }
        out.push(report);
    }
    out
}

fn verdict(draw: &mut Draw) -> Verdict {
    match draw.below(10) {
        9 => Verdict::Rest { failure: failure(draw) },
        0..=2 => Verdict::Succeed { result: draw.once_in(2).then(|| json(draw)) },
        3..=4 => Verdict::Retry { failure: failure(draw), delay: delay(draw) },
        5 => Verdict::Snooze { delay: draw.seconds(5) },
        6 => Verdict::Release { delay: delay(draw) },
        7 if draw.once_in(2) => Verdict::Fail { failure: failure(draw) },
        7 => Verdict::DeadLetter { failure: failure(draw) },
        _ => Verdict::Cancel { reason: draw.once_in(2).then(|| "no longer wanted".to_owned()) },
    }
}

fn settlements(draw: &mut Draw, table: &Table) -> Vec<Settlement> {
    let mut out = Vec::new();
    for _ in 0..1 + draw.below(3) {
        if draw.once_in(5)
            && let Some(sent) = draw.late(&table.settled)
        {
            out.push(sent.clone());
            continue;
        }
        let Some(fence) = draw.late(&table.fences).copied() else { continue };
        let mut settlement = Settlement::new(fence, verdict(draw));
        if draw.once_in(4) {
            settlement = settlement.event(event(draw, table));
        }
        if draw.once_in(4) {
            let follow_on = job(draw, table);
            settlement = match draw.once_in(3) {
                true => {
                    let policy = on_failure(draw, &follow_on);
                    settlement.job(follow_on.after(fence.job(), policy))
                }
                false => settlement.job(follow_on),
            };
        }
        if draw.once_in(6) {
            settlement = settlement.checkpoint(json(draw));
        }
        out.push(settlement);
    }
    out
}

fn reclaim(draw: &mut Draw) -> ReclaimRequest {
    let request = match draw.below(3) {
        0 => ReclaimRequest::jobs(),
        1 => ReclaimRequest::events(),
        _ => ReclaimRequest::queues([queue(draw), queue(draw)]),
    };
    request.limit(1 + draw.below(6))
}

fn event(draw: &mut Draw, table: &Table) -> NewEvent {
    if draw.once_in(12)
        && let Some(known) = draw.late(&table.events)
    {
        return known.clone();
    }
    let topic = Topic::new(["mail", "audit"][draw.below(2)]).expect("a topic");
    let event = NewEvent::new(topic, json(draw)).id(EventId::from_uuid(draw.id()));
    let event = event.max_attempts(1 + draw.below(3) as u16);
    match draw.below(4) {
        0 => event,
        1 => event.ordering(Ordering::Unordered),
        2 => match draw.late(&table.job_ids()) {
            Some(job) => event.ordering(Ordering::Job(*job)),
            None => event,
        },
        _ => {
            let key = OrderKey::new(["one", "two"][draw.below(2)]).expect("a key");
            event.ordering(Ordering::Key(key))
        }
    }
}

fn events(draw: &mut Draw, table: &Table) -> Vec<NewEvent> {
    (0..1 + draw.below(3)).map(|_| event(draw, table)).collect()
}

fn claim_events(draw: &mut Draw) -> EventClaimRequest {
    let request = EventClaimRequest::new(worker(draw)).limit(1 + draw.below(4));
    let request = request.claim_id(ClaimId::from_uuid(draw.id())).lease(lease(draw));
    match draw.once_in(4) {
        true => request.topics([Topic::new("mail").expect("a topic")]),
        false => request,
    }
}

fn event_settlements(draw: &mut Draw, table: &Table) -> Vec<EventSettlement> {
    let mut out = Vec::new();
    for _ in 0..1 + draw.below(2) {
        let Some(fence) = draw.late(&table.event_fences).copied() else { continue };
        let verdict = match draw.below(6) {
            0..=2 => EventVerdict::Delivered,
            3 => EventVerdict::Retry { failure: failure(draw), delay: delay(draw) },
            4 => EventVerdict::DeadLetter { failure: failure(draw) },
            _ => EventVerdict::Release { delay: delay(draw) },
        };
        out.push(EventSettlement::new(fence, verdict));
    }
    out
}

fn control(draw: &mut Draw, table: &Table) -> Control {
    let actor = Actor::new("operator").expect("an actor");
    let limit = |draw: &mut Draw| (!draw.once_in(3)).then(|| draw.below(4) as u32);
    let job = draw.late(&table.job_ids()).copied().unwrap_or_else(|| JobId::from_uuid(draw.id()));
    match draw.below(14) {
        12..=13 => Control::Wake { job, actor },
        0 => Control::Pause(queue(draw)),
        1..=2 => Control::Resume(queue(draw)),
        3 => {
            let settings = QueueSettings::new().limit(limit(draw)).lease(lease(draw));
            let settings = settings.log(draw.once_in(2).then_some(true));
            Control::SetQueue(queue(draw), partition_limits(draw, settings))
        }
        4 => Control::SetStoreLimit(limit(draw)),
        5 => {
            let topic = Topic::new("audit").expect("a topic");
            Control::SetTopic { topic, ordered: draw.once_in(2) }
        }
        6..=7 => Control::RequestCancel { job, actor, reason: Some("stop".to_owned()) },
        8 => Control::Retry { job, actor },
        9..=10 => {
            let event = draw.late(&table.event_ids()).copied();
            let event = event.unwrap_or_else(|| EventId::from_uuid(draw.id()));
            Control::ReplayEvent { event, actor }
        }
        _ if draw.once_in(4) => Control::BumpEpoch { actor },
        _ => Control::Introduce { worker: worker(draw), name: "host/1".to_owned() },
    }
}

fn partition_limits(draw: &mut Draw, settings: QueueSettings) -> QueueSettings {
    let limit = (!draw.once_in(3)).then(|| draw.below(3) as u32);
    let rate = Rate::per_minute(1 + draw.below(40) as u32);
    let rate = (!draw.once_in(3)).then(|| StartRate::new(rate, 1 + draw.below(3) as u32));
    let rate = rate.map(|rate| rate.expect("a rate"));
    settings.partition_limit(limit).partition_rate(rate)
}

fn find(draw: &mut Draw, table: &Table) -> Query {
    let paging = Paging::first(1 + draw.below(5));
    let filter = JobFilter::new();
    if draw.once_in(4)
        && let Some(job) = draw.late(&table.job_ids())
    {
        return match draw.below(3) {
            0 => Query::Parents(*job, paging),
            1 => Query::Children(*job, paging),
            _ => Query::ParentCounts(*job),
        };
    }
    match draw.below(6) {
        0 if draw.once_in(3) => {
            let name = PartitionName::new("b").expect("a partition");
            Query::Jobs(filter.partition(name), paging)
        }
        0 => Query::Jobs(filter.queue(queue(draw)), paging),
        1 => Query::Jobs(filter, paging),
        2 => Query::Events(leasehold_core::EventFilter::new(), paging),
        3 if draw.once_in(2) => Query::DeadLetters(None, paging),
        3 => letters::find(draw, paging),
        4 => match draw.late(&table.job_ids()) {
            Some(job) => Query::Transitions(*job, paging),
            None => Query::Queues,
        },
        _ => Query::Queues,
    }
}

fn prune(draw: &mut Draw) -> PruneRequest {
    let request = PruneRequest::new().limit(1 + draw.below(4));
    if draw.once_in(2) { request } else { request.older_than(draw.seconds(10)) }
}

fn joined(draw: &mut Draw, table: &Table) -> Request {
    let mut depth = 0;
    let mut steps = Vec::new();
    for _ in 0..1 + draw.below(5) {
        steps.push(match draw.below(9) {
            0 => Step::OwnRow(format!("row {}", draw.below(100))),
            1..=2 => Step::Enqueue(jobs(draw, table)),
            3 => Step::Publish(events(draw, table)),
            4 => Step::Progress(reports(draw, table)),
            5 => Step::Settle(settlements(draw, table)),
            6 if draw.once_in(4) => {
                Step::Admit(Admission::new([once(draw)]).jobs(jobs(draw, table)))
            }
            6 if draw.once_in(2) => Step::Once(once(draw)),
            6 => Step::Record(records::step(draw)),
            7 if depth > 0 => {
                depth -= 1;
                if draw.once_in(2) { Step::RollbackToSavepoint } else { Step::ReleaseSavepoint }
            }
            _ => {
                depth += 1;
                Step::Savepoint
            }
        });
    }
    let endings = [Ending::Commit, Ending::Commit, Ending::RollBack, Ending::Drop];
    Request::Joined(steps, endings[draw.below(endings.len())])
}
