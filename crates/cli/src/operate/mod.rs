//! Owns the commands of an operator: which there are, and on which store each acts. Refuses to know how
//! an answer is printed.

pub(crate) mod answer;
mod audit;
mod copies;
mod dead;
mod jobs;
mod keys;
mod letters;
mod lift;
mod listing;
mod outbox;
mod queues;
mod status;
mod verify;
mod why;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use leasehold::{Actor, Maintenance, PruneRequest, Store};

use self::answer::Answer;
use crate::config;
use crate::failure::Fatal;
use crate::place;

/// Where the store is, and how the answer is printed.
#[derive(Clone, Debug, Args)]
#[group(skip)]
pub struct Place {
    /// The database: a path, sqlite:PATH or postgres://…; else STORE_URL or the configuration says
    #[arg(long, global = true, value_name = "URL")]
    url: Option<String>,
    /// The configuration, whose store section names the database
    #[arg(long, global = true, value_name = "PATH", conflicts_with = "url")]
    config: Option<PathBuf>,
    /// For programs: JSON in place of a table
    #[arg(long, global = true)]
    json: bool,
    /// Who asks, for the audit log
    #[arg(long, global = true, value_name = "NAME", env = "USER", hide_env_values = true)]
    actor: Option<String>,
}

/// What an operator asks for.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// How much is where: queues, workers, outbox, clock, warnings.
    Status {
        /// Where
        #[command(flatten)]
        place: Place,
        /// What beside the counts
        #[command(flatten)]
        look: status::Look,
    },
    /// Lists, shows, cancels, retries and wakes jobs.
    Jobs(Acting<jobs::Action>),
    /// Lists queues, and pauses, resumes and limits them.
    Queues(Acting<queues::Action>),
    /// Lists, shows and replays events of the outbox.
    Outbox(Acting<outbox::Action>),
    /// Lists, shows, replays, annotates and closes the dead letters of jobs.
    Dead(Acting<dead::Action>),
    /// Lists what a list of the configuration holds: the succeeded jobs, or the dead letters.
    List {
        /// Where
        #[command(flatten)]
        place: Place,
        /// The name that worker.completed_list or worker.dead_letter_list gives it
        name: String,
        /// Which part
        #[command(flatten)]
        page: PageOf,
    },
    /// Lists the audit log.
    Audit {
        /// Where
        #[command(flatten)]
        place: Place,
        /// Which entries
        #[command(flatten)]
        filter: audit::Filter,
    },
    /// Copies a SQLite database to a new file while others write.
    Backup {
        /// Where
        #[command(flatten)]
        place: Place,
        /// The new file
        to: PathBuf,
    },
    /// Makes a SQLite database from a copy; no fence or token from before lives again.
    Restore {
        /// The database to make; nothing may be there
        #[command(flatten)]
        place: Place,
        /// The copy
        from: PathBuf,
        /// The epoch of the database that the copy replaces, where it can still be read (`status`)
        #[arg(long)]
        above: Option<i64>,
    },
    /// Brings the schema of a database up to date; does nothing where it is.
    Migrate {
        /// Where
        #[command(flatten)]
        place: Place,
    },
    /// Makes every fence and token from before worthless; for a database that was brought back.
    RaiseEpoch {
        /// Where
        #[command(flatten)]
        place: Place,
    },
    /// Sets SQLite's clock to the machine's, back too; refused while anything is leased.
    ///
    /// For a store that was used while its machine's clock was ahead. PostgreSQL's server keeps its own clock.
    ResetClock {
        /// Where
        #[command(flatten)]
        place: Place,
    },
    /// Looks through the whole database for broken rules; changes nothing.
    ///
    /// May run beside anything else. Exits with 5 when a rule is broken.
    Verify {
        /// Where
        #[command(flatten)]
        place: Place,
        /// How much
        #[command(flatten)]
        scope: verify::Scope,
    },
    /// Lists, rotates and retires the vault's keys; lists, issues and revokes API keys.
    Keys(Acting<keys::Action>),
    /// Lets go of ended rows that are older than their queues keep them.
    Prune {
        /// Where
        #[command(flatten)]
        place: Place,
        /// The most rows of each sort in one call; calls go on until nothing is left
        #[arg(long, default_value_t = 1_000)]
        batch: usize,
    },
}

/// An action beside the place it acts on.
#[derive(Debug, Args)]
pub struct Acting<A: Subcommand> {
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    action: A,
}

/// A page of a listing.
#[derive(Clone, Debug, Args)]
pub struct PageOf {
    /// The most rows: 1 to 1,000
    #[arg(long, default_value_t = 50, value_parser = size)]
    limit: usize,
    /// Where the page before ended
    #[arg(long, value_name = "CURSOR")]
    after: Option<leasehold::Cursor>,
}

fn size(text: &str) -> Result<usize, String> {
    let size = text.parse().ok().filter(|size| (1..=1_000).contains(size));
    size.ok_or_else(|| "a number of rows is 1 to 1,000".to_owned())
}

impl PageOf {
    fn paging(&self) -> leasehold::Paging {
        leasehold::Paging { size: self.limit, after: self.after }
    }
}

/// Does what is asked, and prints the answer.
///
/// # Errors
/// The configuration's, the store's, and what cannot be printed.
pub async fn run(command: Command) -> Result<(), Fatal> {
    let (place, answer) = match command {
        Command::Status { place, look } => {
            let answer = status::show(&place.open_for(true).await?, look).await?;
            (place, answer)
        }
        Command::Jobs(Acting { place, action }) => {
            let (store, actor) = (place.open_for(action.looks()).await?, place.actor()?);
            (place, jobs::act(&store, action, actor).await?)
        }
        Command::Queues(Acting { place, action }) => {
            let (store, actor) = (place.open_for(action.looks()).await?, place.actor()?);
            (place, queues::act(&store, action, actor).await?)
        }
        Command::Outbox(Acting { place, action }) => {
            let (store, actor) = (place.open_for(action.looks()).await?, place.actor()?);
            (place, outbox::act(&store, action, actor).await?)
        }
        Command::Dead(Acting { place, action }) => {
            let store = place.open_for(action.looks()).await?;
            let (answer, refused) = dead::act(&store, action, place.actor()?).await?;
            answer.print(place.json)?;
            return if refused == 0 { Ok(()) } else { Err(Fatal::Refused(refused)) };
        }
        Command::List { place, name, page } => {
            let store = place.open_for(true).await?;
            let answer = listing::show(&store, &place.config()?, &name, &page).await?;
            (place, answer)
        }
        Command::Audit { place, filter } => {
            let store = place.open_for(true).await?;
            (place, audit::list(&store, filter).await?)
        }
        Command::Backup { place, to } => {
            let answer = copies::back_up(&place.url_there()?, to).await?;
            (place, answer)
        }
        Command::Restore { place, from, above } => {
            let answer = copies::restore(&place.url()?, &from, above, place.actor()?).await?;
            (place, answer)
        }
        Command::Migrate { place } => return place.migrate().await,
        Command::RaiseEpoch { place } => {
            let answer = lift::raise_epoch(&place.open().await?, place.actor()?).await?;
            (place, answer)
        }
        Command::ResetClock { place } => {
            let answer = lift::reset_clock(&place.open().await?, place.actor()?).await?;
            (place, answer)
        }
        Command::Verify { place, scope } => {
            let store = place.open_for(true).await?;
            let (answer, broken) = verify::check(&store, scope).await?;
            answer.print(place.json)?;
            return if broken == 0 { Ok(()) } else { Err(Fatal::Broken(broken)) };
        }
        Command::Keys(Acting { place, action }) => {
            let (store, actor) = (place.open_for(action.looks()).await?, place.actor()?);
            (place, keys::act(&store, action, actor).await?)
        }
        Command::Prune { place, batch } => {
            let answer = prune(&place.open().await?, batch).await?;
            (place, answer)
        }
    };
    answer.print(place.json)?;
    Ok(())
}

impl Place {
    async fn open(&self) -> Result<Arc<dyn Store>, Fatal> {
        self.open_for(false).await
    }

    async fn migrate(&self) -> Result<(), Fatal> {
        crate::connect::connect(&self.url()?).await.map(|_| ()).map_err(Fatal::from)
    }

    /// The database's URL, where there is one already.
    fn url_there(&self) -> Result<String, Fatal> {
        let url = self.url()?;
        crate::connect::if_there(&url)?;
        Ok(url)
    }

    /// Opens to act, or only to look.
    async fn open_for(&self, looks: bool) -> Result<Arc<dyn Store>, Fatal> {
        let url = self.url()?;
        Ok(match looks {
            true => crate::connect::connect_to_look(&url).await?,
            false => crate::connect::connect_existing(&url).await?,
        })
    }

    fn url(&self) -> Result<String, Fatal> {
        if let Some(url) = &self.url {
            return Ok(crate::connect::lowered(url));
        }
        Ok(place::url(&self.config()?)?)
    }

    /// The configuration; the defaults and the environment where no file is named.
    fn config(&self) -> Result<config::Config, Fatal> {
        Ok(config::load(self.config.as_deref(), &config::environment())?.config)
    }

    fn actor(&self) -> leasehold::Result<Actor> {
        Actor::new(
            self.actor.as_deref().filter(|name| !name.is_empty()).unwrap_or("leasehold command"),
        )
    }
}

async fn prune(store: &Arc<dyn Store>, batch: usize) -> leasehold::Result<Answer> {
    let mut rows = 0;
    loop {
        let pruned = store.prune(PruneRequest::new().limit(batch)).await?.total();
        rows += pruned;
        if pruned == 0 {
            rows += Maintenance::new(store.clone()).leftovers().await?;
            return Ok(Answer::facts([("pruned", rows.into())]));
        }
        crate::failure::tell(format!("{rows} rows pruned"));
    }
}
