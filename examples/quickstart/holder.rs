//! The zombie's role: takes one job, is paused past its lease, and then tries to end the job.

use std::error::Error;

use leasehold::{ClaimRequest, LeaseLength, StoreExt, WorkerId};

use crate::{child, files};

pub(crate) async fn hold() -> Result<(), Box<dyn Error>> {
    let (url, ..) = child::settings()?;
    let store = leasehold::connect(&url).await?;
    let request = ClaimRequest::new(WorkerId::new(), [files::queue()?]);
    let claims = store.claim(request.lease(LeaseLength::from_millis(1_000)?)).await?;
    let Some(claim) = claims.first() else {
        child::say("nothing to hold");
        return Ok(());
    };
    child::say(&format!("holding {}", claim.job.id));
    std::io::stdin().read_line(&mut String::new())?;
    match store.succeed(claim.fence).await {
        Ok(_) => child::say("accepted"),
        Err(error) => child::say(&format!("refused {error}")),
    }
    Ok(())
}
