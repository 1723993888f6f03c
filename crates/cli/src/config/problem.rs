//! Owns what is wrong, or odd, in a configuration, and how it reads. A value that may be a secret
//! never comes here.

use std::fmt;

/// Where a value stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// In a file, with line and column, both from 1.
    File {
        /// The path as it was given.
        path: String,
        /// The line.
        line: usize,
        /// The column.
        column: usize,
    },
    /// In an environment variable.
    Environment(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line, column } => write!(f, "{path}:{line}:{column}"),
            Self::Environment(name) => write!(f, "environment {name}"),
        }
    }
}

/// One breach of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub origin: Origin,
    /// Which key; empty when the file as a whole is meant.
    pub key: String,
    /// The value as it was written, cut at 80 characters; none where it may be a secret.
    pub value: Option<String>,
    /// What is asked for.
    pub rule: String,
}

impl Problem {
    /// A problem with a value that may be shown.
    pub(crate) fn of(origin: Origin, key: &str, value: &str, rule: impl Into<String>) -> Self {
        let mut shown: String = value.chars().take(80).collect();
        if shown.len() < value.len() {
            shown.push('…');
        }
        Self { origin, key: key.to_owned(), value: Some(shown), rule: rule.into() }
    }

    /// A problem whose value is not shown, or that has none.
    pub(crate) fn at(origin: Origin, key: &str, rule: impl Into<String>) -> Self {
        Self { origin, key: key.to_owned(), value: None, rule: rule.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        if let Some(value) = &self.value {
            write!(f, "{value:?}: ")?;
        }
        f.write_str(&self.rule)
    }
}

/// Everything that is wrong with a configuration; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// Something that is allowed and yet worth a line at start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Where; the default where nobody set it.
    pub origin: Origin,
    /// Which key or variable.
    pub key: String,
    /// What there is to know.
    pub text: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.origin, self.key, self.text)
    }
}
