//! Owns the one statement that a test has altered: it says whether the suites notice. Refuses to know
//! what the statement means. The backends ask it only where `failpoints` is compiled in as well.

use std::sync::OnceLock;

/// Names the statement whose text is another one, as its file is called.
pub const STATEMENT: &str = "LEASEHOLD_ALTERED_STATEMENT";
/// Names the file that holds the other text.
pub const TEXT: &str = "LEASEHOLD_ALTERED_TEXT";

static ALTERED: OnceLock<Option<(String, String)>> = OnceLock::new();

fn altered() -> Option<(String, String)> {
    let name = std::env::var(STATEMENT).ok()?;
    let file = std::env::var_os(TEXT)?;
    // A test of an alteration that is not made would prove nothing.
    let text = std::fs::read_to_string(&file).unwrap_or_else(|error| {
        eprintln!("{TEXT} names {}, which cannot be read: {error}", file.display());
        std::process::abort()
    });
    Some((name, text))
}

/// A statement's text: the altered one where the environment has altered it.
pub fn text<'t>(name: &str, text: &'t str) -> &'t str {
    match ALTERED.get_or_init(altered) {
        Some((statement, altered)) if statement == name => altered,
        _ => text,
    }
}
