//! The main job, on real input: every file of a folder is packed by worker processes, one of which is
//! killed and one paused on the way. Runs in CI.
//!
//! ```sh
//! cargo run --release --example quickstart [FOLDER] [--url URL] [--out DIR]
//! ```
//!
//! Each file becomes a job of the lifecycle `transcode`: fetching (read it), processing (compress and
//! hash it), uploading (write it to the output folder, named by its content). Stopped with Ctrl-C and
//! started again, it goes on where it was.
#![allow(clippy::print_stdout, reason = "a program for people")]

mod child;
mod files;
mod holder;
mod pack;
mod report;
mod run;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "usage: quickstart [FOLDER] [--url URL] [--out DIR]";

/// What the command line asks for.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The folder whose files are packed.
    folder: PathBuf,
    /// The database; `None`: an embedded one of its own, in the place.
    url: Option<String>,
    /// Where the packed files, the events and the embedded database are.
    place: PathBuf,
}

impl Settings {
    fn read() -> Result<Self, Box<dyn Error>> {
        let mut folder = None;
        let (mut url, mut place) = (None, None);
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--help" | "-h" => return Err(USAGE.into()),
                "--url" => url = Some(value()?),
                "--out" => place = Some(PathBuf::from(value()?)),
                _ if word.starts_with('-') => return Err(format!("{word} is unknown").into()),
                _ => folder = Some(PathBuf::from(word)),
            }
        }
        let folder = folder.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
        let folder = folder.canonicalize().map_err(|e| format!("{}: {e}", folder.display()))?;
        if !folder.is_dir() {
            return Err(format!("{} is not a folder", folder.display()).into());
        }
        let place = place.map(std::path::absolute).transpose()?;
        let place = place.unwrap_or_else(|| {
            let name: String = folder.display().to_string();
            let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
            std::env::temp_dir().join(format!("leasehold-quickstart{name}"))
        });
        Ok(Self { folder, url, place })
    }

    fn url(&self) -> String {
        match &self.url {
            // A service would migrate by the command, once; this is a first look.
            Some(url) if url.starts_with("postgres") && !url.contains("migrate=") => {
                let sign = if url.contains('?') { '&' } else { '?' };
                format!("{url}{sign}migrate=auto")
            }
            Some(url) => url.clone(),
            None => self.place.join("jobs.db").display().to_string(),
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let played = match std::env::var(child::ROLE).ok().as_deref() {
        Some("worker") => pack::work().await,
        Some(_) => holder::hold().await,
        None => direct().await,
    };
    match played {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quickstart: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn direct() -> Result<(), Box<dyn Error>> {
    let settings = Settings::read()?;
    tokio::select! {
        done = run::run(&settings) => done,
        _ = tokio::signal::ctrl_c() => {
            Err("stopped; run the same command again, and it goes on where it was".into())
        }
    }
}
