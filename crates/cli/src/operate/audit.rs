//! Owns the listing of the audit log.

use std::sync::Arc;

use leasehold::{Actor, AuditFilter, AuditView, Result, Store};
use serde_json::{Value, json};

use super::PageOf;
use super::answer::Answer;

/// Which entries.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Filter {
    /// Only by this actor
    #[arg(long, value_name = "NAME")]
    by: Option<Actor>,
    /// Only of this action
    #[arg(long)]
    action: Option<String>,
    /// Only about this target
    #[arg(long)]
    target: Option<String>,
    #[command(flatten)]
    page: PageOf,
}

const COLUMNS: &[&str] = &["at", "actor", "action", "target", "detail"];

/// Lists entries, the oldest first.
pub(super) async fn list(store: &Arc<dyn Store>, filter: Filter) -> Result<Answer> {
    let Filter { by, action, target, page } = filter;
    let mut wanted = AuditFilter::new();
    (wanted.actor, wanted.action, wanted.target) = (by, action, target);
    let found = store.records().audit(wanted, page.paging()).await?;
    Ok(Answer::Rows {
        columns: COLUMNS,
        rows: found.items.iter().map(row).collect(),
        next: found.next,
    })
}

fn row(it: &AuditView) -> Vec<Value> {
    vec![
        json!(it.at.to_string()),
        json!(it.actor.as_str()),
        json!(it.action),
        json!(it.target),
        json!(it.detail),
    ]
}
