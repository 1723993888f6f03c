//! The smallest whole worker: it runs until Ctrl-C, and gives back what it cannot finish.
//!
//! ```sh
//! cargo run --example worker [URL]
//! ```
#![allow(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;
use std::time::Duration;

use leasehold::{CancellationToken, Context, Handled, JobKind, Json, NewJob, StoreExt, Worker};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
struct Greeting {
    name: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or_else(|| ":memory:".to_owned());
    let store = leasehold::connect(&url).await?;
    let greet = JobKind::new("greet")?;
    for name in ["Ada", "Grace", "Katherine"] {
        let payload = Json::of(&Greeting { name: name.to_owned() })?;
        let enqueued = store.enqueue_one(NewJob::new(greet.clone(), payload)).await?;
        println!("enqueued {}", enqueued.job());
    }

    let worker = Worker::builder(store)
        .handler(greet, |context: Context, greeting: Greeting| async move {
            if greeting.name == "Grace" && context.job().attempt == 1 {
                return Err(std::io::Error::other("nobody at home").into()); // tried again later
            }
            println!("hello, {} (token {})", greeting.name, context.fencing_token());
            Ok(Handled::done())
        })
        .grace(Duration::from_secs(5))
        .build();

    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    tokio::spawn(async move {
        let _heard = tokio::signal::ctrl_c().await;
        stop.cancel();
    });
    println!("working; Ctrl-C ends it");
    worker.run(shutdown).await?;
    Ok(())
}
