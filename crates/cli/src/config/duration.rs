//! Owns how a duration is written: whole numbers, each with its unit, the larger unit first.

use std::time::Duration;

const UNITS: [(&str, u64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

/// Reads `30s`, `200ms`, `1m30s`; more than nothing and no sign.
///
/// # Errors
/// What is wrong, and how it would be written.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    const HOW: &str =
        "a duration is a whole number with its unit (us, ms, s, m, h or d), such as 30s";
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("has no unit: {HOW}"));
    }
    let mut rest = text;
    let mut micros = 0_u64;
    let mut smallest = u64::MAX;
    while !rest.is_empty() {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, tail) = rest.split_at(digits);
        let letters = tail.len() - tail.trim_start_matches(|c: char| c.is_ascii_lowercase()).len();
        let (unit, tail) = tail.split_at(letters);
        let size = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, size)| *size);
        let (Ok(number), Some(size)) = (number.parse::<u64>(), size) else {
            return Err(format!("is not understood: {HOW}"));
        };
        if size >= smallest {
            return Err(format!("has its units out of order: {HOW}, or 1m30s"));
        }
        smallest = size;
        micros = number
            .checked_mul(size)
            .and_then(|part| micros.checked_add(part))
            .filter(|sum| *sum <= 36_500 * 86_400_000_000)
            .ok_or_else(|| "is longer than a hundred years".to_owned())?;
        rest = tail;
    }
    match micros {
        0 if text.is_empty() => Err(format!("is empty: {HOW}")),
        0 => Err("must be more than nothing".to_owned()),
        _ => Ok(Duration::from_micros(micros)),
    }
}

/// Writes a duration so that [`parse`] reads it again.
pub(super) fn write(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let seconds = 1_000_000;
    // A whole number of seconds below two minutes reads better as seconds: 90s, 60s.
    if rest < 120 * seconds && rest.is_multiple_of(seconds) {
        return format!("{}s", rest / seconds);
    }
    let mut text = String::new();
    for (unit, size) in UNITS {
        if rest >= size {
            text.push_str(&format!("{}{unit}", rest / size));
            rest %= size;
        }
    }
    text
}
