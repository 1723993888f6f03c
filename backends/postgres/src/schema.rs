//! Owns the schema's name: its check, its quoted form, and the one rewriting of statements, in which
//! the token `leasehold.` becomes that name. Nothing relies on the search path.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use leasehold_core::{Error, Result};

/// What the files of statements call the schema.
const TOKEN: &str = "leasehold.";
/// A channel's name has a prefix, and PostgreSQL cuts identifiers at 63 bytes.
const BYTES_MAX: usize = 48;

/// A schema and the statements in its terms.
#[derive(Debug)]
pub(crate) struct Schema {
    name: String,
    texts: RwLock<BTreeMap<&'static str, Arc<str>>>,
}

impl Schema {
    /// Takes a name: letters, digits and `_`, not beginning with a digit or `pg_`.
    ///
    /// # Errors
    /// `Invalid` naming the rule.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
        let whole = name.chars().all(fits) && name.chars().next().is_some_and(begins);
        if !whole || name.len() > BYTES_MAX || name.starts_with("pg_") {
            let why = format!(
                "schema {name:?}: letters, digits and _, up to {BYTES_MAX}, not beginning with a digit or pg_"
            );
            return Err(Error::invalid("open", why));
        }
        Ok(Self { name: name.to_owned(), texts: RwLock::default() })
    }

    /// The name as it is.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The name as it stands in a statement.
    pub(crate) fn quoted(&self) -> String {
        format!("\"{}\"", self.name)
    }

    /// The channel on which wake-ups of this schema come.
    pub(crate) fn channel(&self) -> String {
        format!("leasehold_{}", self.name)
    }

    /// A text in this schema's terms.
    pub(crate) fn rewrite<'t>(&self, text: &'t str) -> Cow<'t, str> {
        Cow::Owned(text.replace(TOKEN, &format!("{}.", self.quoted())))
    }

    /// A statement in this schema's terms, rewritten once.
    pub(crate) fn statement(&self, name: &'static str, text: &'static str) -> Arc<str> {
        let known = self.texts.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        known.unwrap_or_else(|| {
            let mut texts = self.texts.write().unwrap_or_else(PoisonError::into_inner);
            let text = sent(name, text);
            Arc::clone(texts.entry(name).or_insert_with(|| Arc::from(&*self.rewrite(text))))
        })
    }
}

/// A text of that name, unless a test has altered it; the command has `lab`, and must not let anyone.
pub(crate) fn sent<'t>(_name: &str, text: &'t str) -> &'t str {
    #[cfg(all(feature = "lab", feature = "failpoints"))]
    let text = leasehold_core::lab::altered::text(_name, text);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: MIG-1
    #[test]
    fn a_name_that_could_be_anything_else_is_refused() {
        for name in ["leasehold", "Jobs_2", "_x"] {
            assert_eq!(Schema::new(name).expect(name).quoted(), format!("\"{name}\""));
        }
        let long = "x".repeat(49);
        for name in ["", "1x", "pg_jobs", "a.b", "a\"b", "a b", "a;drop", "é", long.as_str()] {
            assert!(Schema::new(name).is_err(), "{name}");
        }
    }

    /// Proves: MIG-1
    #[test]
    fn only_the_token_is_rewritten() {
        let schema = Schema::new("work").expect("a name");
        let text = "select 'leasehold' from leasehold.jobs";
        assert_eq!(schema.rewrite(text), "select 'leasehold' from \"work\".jobs");
        assert_eq!(&*schema.statement("x", text), &*schema.statement("x", text));
    }
}
