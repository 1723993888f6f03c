//! The worker's role: packs one file a job, stage by stage, each stage a write behind the fence.

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use leasehold::{
    CancellationToken, Context, Failure, FailureCode, Handled, HandlerError, JobKind, LeaseLength,
    StageName, Worker,
};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::files::File;
use crate::{child, files};

/// Every how many-th file the first upload fails, so that there is a retry to see.
const FLAKY: u64 = 25;

#[derive(Debug, Serialize)]
struct Packed {
    sha256: String,
    bytes: u64,
    packed_bytes: usize,
}

/// Works until its input ends; says each job it begins.
pub(crate) async fn work() -> Result<(), Box<dyn Error>> {
    let (url, place, slow) = child::settings()?;
    let store = leasehold::connect(&url).await?;
    let worker = Worker::builder(store)
        .queue(files::queue()?)
        .handler(JobKind::new("pack")?, move |context: Context, file: File| {
            pack(context, file, place.clone(), slow)
        })
        .slots(4)
        .lease(LeaseLength::from_millis(2_000)?)
        .upkeep(Some(Duration::from_millis(500)))
        .build();
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    std::thread::spawn(move || {
        let _end = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        stop.cancel(); // the director is gone
    });
    Ok(worker.run(shutdown).await?)
}

async fn pack(
    context: Context,
    file: File,
    place: PathBuf,
    slow: bool,
) -> Result<Handled, HandlerError> {
    context.advance(StageName::new("fetching")?).await?;
    child::say(&format!("begun {}", context.job().id));
    if slow {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let bytes = tokio::fs::read(&file.path).await?;

    context.advance(StageName::new("processing")?).await?;
    let (sha256, packed) = tokio::task::spawn_blocking(move || compress(&bytes)).await??;

    context.advance(StageName::new("uploading")?).await?;
    if context.job().attempt == 1 && file.bytes.is_multiple_of(FLAKY) {
        let failure = Failure::new(FailureCode::NetworkTimeout, "the upload went nowhere");
        return Err(failure.into());
    }
    upload(&place, &sha256, &packed)?;
    Ok(Handled::done_with(&Packed { sha256, bytes: file.bytes, packed_bytes: packed.len() }))
}

fn compress(bytes: &[u8]) -> std::io::Result<(String, Vec<u8>)> {
    let sha256 = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    Ok((sha256, encoder.finish()?))
}

/// Writes a file named by its content, so that writing it again is the same as writing it once.
fn upload(place: &Path, sha256: &str, packed: &[u8]) -> std::io::Result<()> {
    let folder = place.join("packed");
    std::fs::create_dir_all(&folder)?;
    let draft = folder.join(format!("{sha256}.{}", std::process::id()));
    std::fs::write(&draft, packed)?;
    std::fs::rename(draft, folder.join(format!("{sha256}.gz")))
}
