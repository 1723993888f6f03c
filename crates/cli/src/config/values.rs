//! Owns the values of all keys with their origins, and the typed reading of one. That a key is
//! missing, or of another kind than asked for, cannot be: the table gives each a default.

use std::collections::BTreeMap;
use std::time::Duration;

use super::key::{KEYS, Key, Kind};
use super::problem::Origin;
use super::scalar;
use super::secret::Secret;

/// The value of a key.
#[derive(Clone, Debug)]
pub enum Value {
    /// Any text.
    Text(String),
    /// A whole number.
    Int(i64),
    /// A decimal fraction.
    Fraction(f64),
    /// `true` or `false`.
    Bool(bool),
    /// A length of time.
    Duration(Duration),
    /// Several texts, in order.
    List(Vec<String>),
    /// Texts by name, in the order given.
    Map(Vec<(String, String)>),
    /// A secret, if one was given.
    Secret(Option<Secret>),
}

/// A value for each key of the table, and where it came from.
#[derive(Clone, Debug)]
pub struct Config {
    values: BTreeMap<&'static str, (Value, Origin)>,
}

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident: $variant:ident($value:ident) => $out:expr, $type:ty, $none:expr;)*) => {
        $($(#[$doc])*
        #[must_use]
        pub fn $name(&self, path: &str) -> $type {
            match self.value(path) {
                Some(Value::$variant($value)) => $out,
                _ => {
                    debug_assert!(false, "{path} is no such key");
                    $none
                }
            }
        })*
    };
}

impl Config {
    /// Every key at its default.
    pub(super) fn with_defaults() -> Self {
        let values = KEYS.iter().map(|key| (key.path, (default_of(key), Origin::Default)));
        Self { values: values.collect() }
    }

    getters! {
        /// Reads a text.
        text: Text(value) => value, &str, "";
        /// Reads a whole number.
        int: Int(value) => *value, i64, 0;
        /// Reads a fraction.
        fraction: Fraction(value) => *value, f64, 0.0;
        /// Reads a yes or no.
        flag: Bool(value) => *value, bool, false;
        /// Reads a length of time.
        duration: Duration(value) => *value, Duration, Duration::ZERO;
        /// Reads a list.
        list: List(value) => value, &[String], &[];
        /// Reads texts by name.
        map: Map(value) => value, &[(String, String)], &[];
        /// Reads a secret.
        secret: Secret(value) => value.as_ref(), Option<&Secret>, None;
    }

    /// Gives the value of a key.
    #[must_use]
    pub fn value(&self, path: &str) -> Option<&Value> {
        self.values.get(path).map(|(value, _)| value)
    }

    /// Says where the value of a key came from.
    #[must_use]
    pub fn origin(&self, path: &str) -> Origin {
        self.values.get(path).map_or(Origin::Default, |(_, origin)| origin.clone())
    }

    /// Says whether somebody set the key.
    #[must_use]
    pub fn is_set(&self, path: &str) -> bool {
        self.origin(path) != Origin::Default
    }

    pub(super) fn set(&mut self, key: &'static Key, value: Value, origin: Origin) {
        self.values.insert(key.path, (value, origin));
    }
}

fn default_of(key: &Key) -> Value {
    if key.kind == Kind::Secret {
        return Value::Secret(None);
    }
    let parsed = scalar::parse(key.kind, key.default);
    debug_assert!(parsed.is_ok(), "the default of {} breaks its own rule: {parsed:?}", key.path);
    parsed.unwrap_or_else(|_| Value::Text(String::new()))
}
