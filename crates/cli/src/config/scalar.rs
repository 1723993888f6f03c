//! Owns how a text becomes a value of a kind. The same rules hold for a file and an environment
//! variable, but that only a file knows quotes.

use super::duration;
use super::key::Kind;
use super::values::Value;

/// Reads one text as a value of a kind that is a single text.
///
/// # Errors
/// The rule that is broken.
pub(super) fn parse(kind: Kind, text: &str) -> Result<Value, String> {
    match kind {
        Kind::Text => self::text(text).map(Value::Text),
        Kind::Int(least, most) => int(text, least, most).map(Value::Int),
        Kind::Fraction => fraction(text).map(Value::Fraction),
        Kind::Bool => bool(text).map(Value::Bool),
        Kind::Duration => duration::parse(text).map(Value::Duration),
        Kind::List => list(text).map(Value::List),
        Kind::Map => map(text).map(Value::Map),
        Kind::Secret => Err("is a secret".to_owned()),
    }
}

/// Says whether a kind takes a quoted text in a file.
pub(super) fn takes_quotes(kind: Kind) -> bool {
    matches!(kind, Kind::Text | Kind::Duration | Kind::Secret | Kind::List | Kind::Map)
}

pub(super) fn text(text: &str) -> Result<String, String> {
    if text.contains("${") {
        return Err("nothing is replaced inside a value: set the key's own environment variable \
                    instead of ${…}"
            .to_owned());
    }
    match text.chars().find(|c| c.is_control()) {
        Some(c) => Err(format!("holds the control character U+{:04X}", c as u32)),
        None => Ok(text.to_owned()),
    }
}

fn int(text: &str, least: i64, most: i64) -> Result<i64, String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !plain || (digits.len() > 1 && digits.starts_with('0')) {
        return Err("is not a whole number in plain decimal digits".to_owned());
    }
    match text.parse::<i64>() {
        Ok(number) if number < least => Err(format!("must be at least {least}")),
        Ok(number) if number <= most => Ok(number),
        _ => Err(format!("must be at most {most}")),
    }
}

fn fraction(text: &str) -> Result<f64, String> {
    let shape = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<f64>() {
        Ok(number) if digits(shape.0) && digits(shape.1) => Ok(number),
        _ => Err("is not a decimal number such as 0.5".to_owned()),
    }
}

fn bool(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("must be true or false".to_owned()),
    }
}

fn list(joined: &str) -> Result<Vec<String>, String> {
    if joined.is_empty() {
        return Ok(Vec::new());
    }
    joined.split(',').map(|part| item(part.trim())).collect()
}

/// Checks one entry of a list.
pub(super) fn item(entry: &str) -> Result<String, String> {
    if entry.is_empty() {
        return Err("holds an empty entry".to_owned());
    }
    text(entry)
}

fn map(joined: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for part in joined.split(',').filter(|_| !joined.is_empty()) {
        let Some((name, value)) = part.split_once('=') else {
            return Err("is written name=text,name=text in an environment variable".to_owned());
        };
        let (name, value) = (item(name.trim())?, item(value.trim())?);
        if pairs.iter().any(|(have, _)| *have == name) {
            return Err(format!("names {name} twice"));
        }
        pairs.push((name, value));
    }
    Ok(pairs)
}
