//! Owns the writes of an interleaving: which verb, under which fence, by itself or inside a caller's
//! transaction, and whether the store's answer is the one its owner, or its late owner, must get.

use std::time::Duration;

use leasehold_core::lab::{Ending, Reply, Step};
use leasehold_core::{
    Error, ErrorKind, Fence, Progress, Renewal, Result, Settled, Settlement, StoreExt, Verdict,
};

use super::{Judged, Play, shown, text};
use crate::lab::{event, job, json, passing};

/// One write under a fence.
#[derive(Clone, Debug)]
enum Write {
    Renew,
    Progress,
    Settle(Verdict),
}

impl Write {
    fn as_str(&self) -> &'static str {
        match self {
            Self::Settle(verdict) => verdict.kind().as_str(),
            Self::Renew => "renew",
            Self::Progress => "progress",
        }
    }
}

fn other_answer() -> Error {
    Error::new(ErrorKind::Corrupt, "conformance", "an answer of another verb")
}

impl Play {
    fn draw_write(&mut self) -> Write {
        match self.draw.below(8) {
            0 => Write::Renew,
            1 => Write::Progress,
            2 => Write::Settle(Verdict::Release { delay: None }),
            3 => Write::Settle(Verdict::Snooze { delay: Duration::ZERO }),
            4..=5 => Write::Settle(Verdict::Retry { failure: passing(), delay: None }),
            _ => Write::Settle(Verdict::Succeed { result: Some(json(7)) }),
        }
    }

    /// Writes under some fence, live or dead; a dead one must change nothing.
    pub(super) async fn write(&mut self) -> Judged {
        let Some(fence) = self.draw.late(&self.fences).copied() else { return Ok(()) };
        let write = self.draw_write();
        let joined = self.draw.once_in(3);
        let owned = self.model.owns(&fence, self.clock.now());
        let how = if joined { ", joined" } else { "" };
        self.log.push(format!("{}{how} by {}, owned: {owned}", write.as_str(), shown(&fence)));
        if owned {
            self.kept = None;
            return self.accept(fence, write, joined).await;
        }
        let before = match self.kept.take() {
            Some(kept) => kept,
            None => self.store.dump().await.map_err(|error| text(&error))?,
        };
        self.refuse(fence, write, joined).await?;
        let after = self.store.dump().await.map_err(|error| text(&error))?;
        let difference = before.difference(&after);
        if !difference.is_empty() {
            return Err(format!("a stale fence changed the store:\n{difference}"));
        }
        self.kept = Some(after);
        Ok(())
    }

    async fn progress(&self, report: Progress, joined: bool) -> Result<()> {
        if !joined {
            return self.store.progress_one(report).await;
        }
        let mut replies =
            self.store.play(vec![Step::Progress(vec![report])], Ending::Commit).await?;
        match replies.pop() {
            Some(Reply::Progress(answers)) => answers?.pop().ok_or_else(other_answer)?,
            _ => Err(other_answer()),
        }
    }

    async fn settle(&self, settlement: Settlement, joined: bool) -> Result<Settled> {
        if !joined {
            return self.store.settle_one(settlement).await;
        }
        let script = vec![Step::Settle(vec![settlement])];
        match self.store.play(script, Ending::Commit).await?.pop() {
            Some(Reply::Settle(answers)) => answers?.pop().ok_or_else(other_answer)?,
            _ => Err(other_answer()),
        }
    }

    async fn accept(&mut self, fence: Fence, write: Write, joined: bool) -> Judged {
        let now = self.clock.now();
        match write {
            Write::Renew => match self.store.renew_one(fence).await {
                Ok(Renewal::Renewed { remaining, .. }) => {
                    self.model.renewed(&fence, now.plus(remaining));
                    Ok(())
                }
                other => Err(format!("an owner's renewal: {other:?}")),
            },
            Write::Progress => {
                let report = Progress::new(fence, self.model.step(&fence)).event(event(3));
                self.progress(report, joined).await.map_err(|error| text(&error))
            }
            Write::Settle(verdict) => {
                let kind = verdict.kind();
                match self.settle(Settlement::new(fence, verdict), joined).await {
                    Ok(settled) if !settled.repeated => {
                        self.model.settled(&fence, kind);
                        Ok(())
                    }
                    other => Err(format!("an owner's settlement: {other:?}")),
                }
            }
        }
    }

    async fn refuse(&mut self, fence: Fence, write: Write, joined: bool) -> Judged {
        let lost = |answer: Result<String>| match answer {
            Err(error) if error.is_fence_lost() => Ok(()),
            other => Err(format!("a stale fence: {other:?}")),
        };
        match write {
            Write::Renew => match self.store.renew_one(fence).await {
                Ok(Renewal::Lost(_)) => Ok(()),
                other => Err(format!("a stale renewal: {other:?}")),
            },
            Write::Progress => {
                let report = Progress::new(fence, 1).checkpoint(json(8)).event(event(4));
                lost(self.progress(report, joined).await.map(|()| "stored".to_owned()))
            }
            Write::Settle(verdict) => {
                let again = self.model.is_repeat(&fence, verdict.kind());
                let late = Settlement::new(fence, verdict).event(event(5)).job(job(6));
                match self.settle(late, joined).await {
                    Ok(settled) if settled.repeated && again => Ok(()),
                    Err(_) if again => Err("a repeat is refused".to_owned()),
                    answer => lost(answer.map(|settled| format!("{settled:?}"))),
                }
            }
        }
    }
}
