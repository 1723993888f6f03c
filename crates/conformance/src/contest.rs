//! Owns contests: many tasks over several stores on one database want the same document, the same
//! answer, the same tokens, the same version, and count what they got. Refuses to know the engine.

mod partitions;

use std::sync::Arc;

use leasehold_core::{
    BucketName, ErrorKind, Expected, IdempotencyKey, Json, Once, PutDocument, Rate, RecordId,
    Remembered, RequestHash, Result, Scope, Store, StoreExt, Take, Taken,
};

use crate::lab::job;

/// Tasks for each store.
const TASKS: usize = 4;

/// Runs every contest on stores that share one database.
///
/// # Errors
/// What the stores say beside the foreseen answers.
///
/// # Panics
/// When two have won what there is once, or something was lost.
pub async fn run(stores: &[Arc<dyn Store>]) -> Result<()> {
    counter_loses_no_step(stores).await?;
    answer_has_one_author(stores).await?;
    bucket_gives_its_burst(stores).await?;
    version_runs_once(stores).await?;
    partitions::keep_their_room_and_rate(stores).await
}

/// Runs a task so many times over each store, all at once; what they gave.
async fn all<T, F>(stores: &[Arc<dyn Store>], task: impl Fn(Arc<dyn Store>, usize) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let numbered = stores.iter().flat_map(|store| std::iter::repeat_n(store, TASKS)).enumerate();
    let tasks: Vec<_> =
        numbered.map(|(number, store)| tokio::spawn(task(Arc::clone(store), number))).collect();
    let mut gave = Vec::with_capacity(tasks.len());
    for task in tasks {
        gave.push(
            task.await.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic())),
        );
    }
    gave
}

async fn counter_loses_no_step(stores: &[Arc<dyn Store>]) -> Result<()> {
    const STEPS: usize = 15;
    let id = RecordId::new("contest", "counter")?;
    let done = all(stores, |store, _| {
        let id = id.clone();
        async move {
            let mut steps = 0;
            while steps < STEPS {
                let found = store.records().get(id.clone()).await?;
                let (expected, number) = match &found {
                    Some(found) => (Expected::Version(found.version), found.body.read::<usize>()?),
                    None => (Expected::Absent, 0),
                };
                let put = PutDocument::new(id.clone(), Json::of(&(number + 1))?).expected(expected);
                match store.records().put(put).await {
                    Ok(_) => steps += 1,
                    Err(error) if error.kind() == ErrorKind::Conflict => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(steps)
        }
    });
    let steps: usize = done.await.into_iter().sum::<Result<usize>>()?;
    let end = stores[0].records().get(id).await?.expect("a counter");
    assert_eq!(end.body, Json::of(&steps)?, "a step was lost");
    assert_eq!(usize::try_from(end.version), Ok(steps), "a version was given twice");
    Ok(())
}

async fn answer_has_one_author(stores: &[Arc<dyn Store>]) -> Result<()> {
    const KEYS: usize = 12;
    let won = all(stores, |store, number| async move {
        let mut won = Vec::new();
        for at in 0..KEYS {
            let key = IdempotencyKey::new(format!("key {at}"))?;
            let hash = RequestHash::of_job("contest", "", &Json::of(&at)?);
            let begin = Once::begin(Scope::global(), key.clone(), hash);
            if store.records().once(begin).await? == Remembered::New {
                let finish = Once::new(Scope::global(), key, hash, Json::of(&number)?);
                assert_eq!(store.records().once(finish).await?, Remembered::New);
                won.push((at, number));
            }
        }
        Ok(won)
    });
    let won: Vec<Vec<(usize, usize)>> = won.await.into_iter().collect::<Result<_>>()?;
    let mut won: Vec<(usize, usize)> = won.into_iter().flatten().collect();
    won.sort_unstable();
    let keys: Vec<usize> = won.iter().map(|(at, _)| *at).collect();
    assert_eq!(keys, (0..KEYS).collect::<Vec<_>>(), "each request has one author");
    for (at, author) in won {
        let key = IdempotencyKey::new(format!("key {at}"))?;
        let hash = RequestHash::of_job("contest", "", &Json::of(&at)?);
        let late = Once::new(Scope::global(), key, hash, Json::of("late")?);
        let stored = Remembered::Stored(Json::of(&author)?);
        assert_eq!(stores[0].records().once(late).await?, stored);
    }
    Ok(())
}

async fn bucket_gives_its_burst(stores: &[Arc<dyn Store>]) -> Result<()> {
    const BURST: u32 = 20;
    let granted = all(stores, |store, _| async move {
        let mut granted = 0_u32;
        for _ in 0..BURST {
            let bucket = BucketName::new("contest")?;
            let wish = Take::new(bucket, Rate::per_hour(1), BURST);
            granted += u32::from(store.records().take(wish).await? == Taken::Granted);
        }
        Ok(granted)
    });
    let granted: u32 = granted.await.into_iter().sum::<Result<u32>>()?;
    assert_eq!(granted, BURST, "the bucket gives what it holds, and all of it");
    Ok(())
}

async fn version_runs_once(stores: &[Arc<dyn Store>]) -> Result<()> {
    const VERSIONS: i64 = 8;
    let made = all(stores, |store, _| async move {
        let mut made = Vec::new();
        for version in 1..=VERSIONS {
            let asked = job(version).subject("contest", version).rerun();
            match store.enqueue_one(asked).await {
                Ok(enqueued) if enqueued.is_new() => made.push(version),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        Ok(made)
    });
    let made: Vec<Vec<i64>> = made.await.into_iter().collect::<Result<_>>()?;
    let mut made: Vec<i64> = made.into_iter().flatten().collect();
    made.sort_unstable();
    assert!(made.windows(2).all(|pair| pair[0] < pair[1]), "a version ran twice: {made:?}");
    assert_eq!(made.last(), Some(&VERSIONS), "the highest version ran");
    Ok(())
}
