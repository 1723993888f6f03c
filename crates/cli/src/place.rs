//! Owns how the `store` section becomes a URL. The URL may hold a password and is never shown.

use leasehold::{Error, Result};

use crate::config::{Config, Problem, Problems};

/// Gives the URL of the store.
///
/// # Errors
/// `Invalid` where a password or user goes with a URL that has one already.
pub(crate) fn url(config: &Config) -> Result<String> {
    let addr = config.text("store.addr");
    let url = if addr.is_empty() {
        crate::connect::lowered(config.text("store.url"))
    } else {
        let database = escaped(config.text("store.db"));
        format!("postgres://{addr}/{database}")
    };
    if !crate::connect::is_postgres(&url) {
        return Ok(url);
    }
    let mut parameters = Vec::new();
    let username = config.text("store.username");
    if !username.is_empty() {
        parameters.push(format!("user={}", escaped(username)));
    }
    if let Some(password) = config.secret("store.password") {
        parameters.push(format!("password={}", escaped(password.expose())));
    }
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let multiplier = usize::try_from(config.int("store.pool_size_multiplier")).unwrap_or(1);
    let has = |name: &str| url.split(['?', '&']).skip(1).any(|part| part.starts_with(name));
    if !has("pool_size=") {
        parameters.push(format!("pool_size={}", processors.saturating_mul(multiplier)));
    }
    if !has("connect_timeout=") {
        let wait = config.duration("store.dial_timeout").as_secs().max(1);
        parameters.push(format!("connect_timeout={wait}"));
    }
    let authority =
        url.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or(""));
    let user_in_url = authority.rsplit_once('@').map_or("", |(user, _)| user);
    if user_in_url.contains(':') && config.secret("store.password").is_some() {
        return Err(Error::invalid(
            "open store",
            "store.url and store.password both hold a password",
        ));
    }
    let join = if url.contains('?') { '&' } else { '?' };
    Ok(format!("{url}{join}{}", parameters.join("&")))
}

/// Checks that the engine understands where its store is; opens nothing.
///
/// # Errors
/// A URL that is none of a store, a password that is given twice.
pub(crate) fn check(config: &Config) -> Result<(), Problems> {
    let key = if config.text("store.addr").is_empty() { "store.url" } else { "store.addr" };
    let problem = |error: Error| {
        Problems(vec![Problem::at(config.origin(key), key, error.message().to_owned())])
    };
    leasehold::read_url(&url(config).map_err(problem)?).map_err(problem)
}

/// Percent-encodes everything that could mean something in a URL.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    fn of(environment: &[(&str, &str)]) -> String {
        let environment: Vec<_> =
            environment.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        url(&config::load(None, &environment).unwrap().config).unwrap()
    }

    /// Proves: CFG-3
    #[test]
    fn the_connection_keys_have_their_meaning() {
        assert_eq!(of(&[]), "sqlite:leasehold.db");
        let processors = std::thread::available_parallelism().unwrap().get();
        let addr = of(&[
            ("STORE_ADDR", "db.local:5433"),
            ("STORE_DB", "a b"),
            ("STORE_USERNAME", "me@x"),
            ("STORE_PASSWORD", "p&ss/1"),
            ("STORE_POOL_SIZE_MULTIPLIER", "3"),
            ("STORE_DIAL_TIMEOUT", "7s"),
        ]);
        let pool = processors * 3;
        assert_eq!(
            addr,
            format!(
                "postgres://db.local:5433/a%20b?user=me%40x&password=p%26ss%2F1&pool_size={pool}&connect_timeout=7"
            )
        );
        let url = of(&[("STORE_URL", "postgres://u@h/d?pool_size=9&sslmode=require")]);
        assert_eq!(url, "postgres://u@h/d?pool_size=9&sslmode=require&connect_timeout=10");
    }
}
