//! Owns how a configuration is printed: a file that loads again, each key with its meaning or its
//! origin, secrets as stars.

use leasehold_sqlite::mask_url;
use serde_json::json;

use super::key::{Effect, KEYS, Key};
use super::problem::{Note, Origin, Problem};
use super::rules::{is_secret, written};
use super::values::{Config, Value};

/// Prints a file with every key at its default, and what each does. A key that has to be chosen stands there as a
/// comment with an example: as it is the file says nothing of it, and is not refused for what it says.
#[must_use]
pub fn defaults() -> String {
    let config = Config::with_defaults();
    let line = |key: &Key| match key.example {
        Some(example) => (format!("# {}", name_of(key)), example.to_owned()),
        None => (name_of(key).to_owned(), value_of(&config, key)),
    };
    render(line, |key| {
        let only = match key.effect {
            Effect::Both => String::new(),
            Effect::Postgres => " (PostgreSQL only)".to_owned(),
            Effect::Nothing(why) => format!(" (no effect: {why})"),
        };
        let choose = key.example.map_or("", |_| "a worker has none by default: ");
        format!("{choose}{}{only}", key.about)
    })
}

/// Prints the values with the origin of each.
#[must_use]
pub fn yaml(config: &Config) -> String {
    let line = |key: &Key| (name_of(key).to_owned(), value_of(config, key));
    render(line, |key| config.origin(key.path).to_string())
}

/// Prints the values with the origin of each, for programs.
#[must_use]
pub fn json(config: &Config) -> String {
    let keys = KEYS.iter().map(|key| {
        let value = match config.value(key.path) {
            Some(Value::Text(text)) => json!(mask_url(text)),
            Some(Value::Int(number)) => json!(number),
            Some(Value::Fraction(number)) => json!(number),
            Some(Value::Bool(flag)) => json!(flag),
            Some(Value::List(items)) => json!(items),
            Some(Value::Map(pairs)) => {
                pairs.iter().map(|(name, text)| (name.clone(), json!(text))).collect()
            }
            Some(Value::Secret(Some(_))) => json!("***"),
            Some(Value::Secret(None)) | None => json!(null),
            Some(value @ Value::Duration(_)) => json!(written(value)),
        };
        (
            key.path.to_owned(),
            json!({ "value": value, "origin": config.origin(key.path).to_string() }),
        )
    });
    let all: serde_json::Map<String, serde_json::Value> = keys.collect();
    format!("{:#}\n", serde_json::Value::Object(all))
}

/// Prints what is wrong and what is worth knowing, for programs.
#[must_use]
pub fn diagnostics(problems: &[Problem], notes: &[Note]) -> String {
    let wrong = problems.iter().map(|it| {
        json!({ "origin": place(&it.origin), "key": it.key, "value": it.value, "rule": it.rule })
    });
    let odd = notes
        .iter()
        .map(|it| json!({ "origin": place(&it.origin), "key": it.key, "text": it.text }));
    let (wrong, odd): (Vec<_>, Vec<_>) = (wrong.collect(), odd.collect());
    format!("{:#}\n", json!({ "problems": wrong, "notes": odd }))
}

fn place(origin: &Origin) -> serde_json::Value {
    match origin {
        Origin::Default => json!({ "default": true }),
        Origin::File { path, line, column } => {
            json!({ "file": path, "line": line, "column": column })
        }
        Origin::Environment(name) => json!({ "variable": name }),
    }
}

/// The name without its sections.
fn name_of(key: &Key) -> &'static str {
    key.path.rsplit('.').next().unwrap_or_default()
}

/// Writes a line for each key: how its name stands there, and its value; behind both a remark.
fn render(line: impl Fn(&Key) -> (String, String), remark: impl Fn(&Key) -> String) -> String {
    let mut out = String::new();
    let mut open: Vec<&str> = Vec::new();
    for key in KEYS {
        let mut sections: Vec<&str> = key.path.split('.').collect();
        sections.pop();
        let shared = open.iter().zip(&sections).take_while(|(have, want)| have == want).count();
        if shared == 0 && !out.is_empty() {
            out.push('\n');
        }
        for (depth, section) in sections.iter().enumerate().skip(shared) {
            out.push_str(&format!("{}{section}:\n", "  ".repeat(depth)));
        }
        let indent = "  ".repeat(sections.len());
        let (name, value) = line(key);
        out.push_str(&format!("{indent}{name}: {value}  # {}\n", remark(key)));
        open = sections;
    }
    out
}

fn value_of(config: &Config, key: &Key) -> String {
    match config.value(key.path) {
        Some(Value::Text(text)) => quoted(&mask_url(text)),
        Some(Value::List(items)) => {
            format!("[{}]", items.iter().map(|item| quoted(item)).collect::<Vec<_>>().join(", "))
        }
        Some(Value::Map(pairs)) => {
            let pairs =
                pairs.iter().map(|(name, text)| format!("{}: {}", quoted(name), quoted(text)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        Some(Value::Secret(Some(secret))) if is_secret(key) => {
            // A reference may be shown, and loads again; a secret of the variable itself not.
            let own = format!("env:{}", key.variable());
            if secret.source() == own { quoted("***") } else { quoted(secret.source()) }
        }
        Some(Value::Secret(_)) | None => quoted(""),
        Some(value) => written(value),
    }
}

/// Writes a text in double quotes, as JSON does; YAML reads it the same.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
