//! Owns what ends the command early, the exit code that says which it was, and what is told beside the answer.

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;

use leasehold::ErrorKind;

use crate::config::Problems;

/// Tells people something on the standard error, where anybody listens; a reader that is gone changes nothing.
pub fn tell(what: impl fmt::Display) {
    let _unheard = writeln!(std::io::stderr(), "{what}");
}

/// Prints an answer. A reader that has seen enough, as `head` has, ends it quietly.
///
/// # Errors
/// `Unavailable` where standard output takes nothing.
pub fn print(text: &[u8]) -> leasehold::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(leasehold::Error::new(ErrorKind::Unavailable, "print", error.to_string()))
        }
        _ => Ok(()),
    }
}

/// What ended the command.
#[derive(Debug)]
pub enum Fatal {
    /// The configuration breaks rules.
    Configuration(Problems),
    /// A check found so many breaches, and has listed them.
    Broken(u64),
    /// So many dead letters were not replayed, each for the reason that is listed.
    Refused(usize),
    /// So many jobs were given up in a run that ends by itself.
    GivenUp(u64),
    /// The store refused, or could not be reached.
    Store(leasehold::Error),
    /// The conformance suite was not passed.
    Suite(String),
}

impl Fatal {
    /// 2 for wrong usage, as clap has it, 3 for a configuration, 4 for what is not there or not allowed as things are,
    /// 5 for a database that breaks rules, 6 for jobs that were given up, 1 for everything else.
    #[must_use]
    pub fn code(&self) -> ExitCode {
        match self {
            Self::Configuration(_) => ExitCode::from(3),
            Self::Suite(_) => ExitCode::FAILURE,
            Self::Broken(_) => ExitCode::from(5),
            Self::Refused(_) => ExitCode::from(4),
            Self::GivenUp(_) => ExitCode::from(6),
            Self::Store(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::IllegalTransition | ErrorKind::Conflict => {
                    ExitCode::from(4)
                }
                ErrorKind::Invalid => ExitCode::from(2),
                _ => ExitCode::FAILURE,
            },
        }
    }
}

impl fmt::Display for Fatal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configuration(problems) => {
                write!(f, "the configuration is not used:\n{problems}")
            }
            Self::Broken(1) => f.write_str("verify: 1 rule is broken"),
            Self::Broken(breaches) => write!(f, "verify: {breaches} rules are broken"),
            Self::Refused(1) => f.write_str("dead replay: 1 letter was refused"),
            Self::Refused(letters) => write!(f, "dead replay: {letters} letters were refused"),
            Self::GivenUp(1) => f.write_str("1 job was given up: leasehold dead list"),
            Self::GivenUp(jobs) => write!(f, "{jobs} jobs were given up: leasehold dead list"),
            Self::Store(error) => error.fmt(f),
            Self::Suite(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Fatal {}

impl From<Problems> for Fatal {
    fn from(problems: Problems) -> Self {
        Self::Configuration(problems)
    }
}

impl From<leasehold::Error> for Fatal {
    fn from(error: leasehold::Error) -> Self {
        Self::Store(error)
    }
}
