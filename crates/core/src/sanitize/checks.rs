//! Second looks at what a pattern found.
//!
//! Owns the reasons for leaving a finding alone. Each looks at the found text only, so that no
//! exception can reach beyond it. Refuses to know positions and replacements.

pub(super) fn always(_found: &str) -> bool {
    true
}

/// Keys are drawn at random; names of classes and files in kebab case are not.
pub(super) fn has_digit_or_capital(found: &str) -> bool {
    let body = found.split_once(['-', '_', '.']).map_or(found, |(_, body)| body);
    body.bytes().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// Tells a credential from the word after "basic" or "bearer" in a sentence.
pub(super) fn looks_drawn(found: &str) -> bool {
    let odd = |byte: u8| byte.is_ascii_digit() || b"=+/_~".contains(&byte);
    found.len() >= 24
        || found.bytes().any(odd)
        || found.bytes().skip(1).any(|byte| byte.is_ascii_uppercase())
}

/// Spares what stands in place of a secret.
pub(super) fn is_no_placeholder(found: &str) -> bool {
    const WORDS: [&str; 9] =
        ["null", "none", "nil", "true", "false", "undefined", "string", "&str", "str"];
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let variable = found.strip_prefix("${").map(|rest| rest.trim_end_matches('}'));
    let filled_in_later = variable.is_some_and(|name| name.chars().all(is_name));
    let starred = found.bytes().all(|byte| byte == b'*');
    !filled_in_later && !starred && !WORDS.iter().any(|word| found.eq_ignore_ascii_case(word))
}

pub(super) fn is_no_path(found: &str) -> bool {
    !found.starts_with('/') && is_no_placeholder(found)
}

/// Tells `host:8080/path@…` from `user:pass/word@…`.
pub(super) fn is_no_port(found: &str) -> bool {
    let (_host, port) = found.split_once(':').unwrap_or_default();
    let digits = port.bytes().take_while(u8::is_ascii_digit).count();
    !(1..=5).contains(&digits) || port.as_bytes().get(digits) != Some(&b'/')
}

/// Tells an address from `icon@2x.png`, `left-pad@1.3.0-beta.rc` and `git@host`.
pub(super) fn is_address(found: &str) -> bool {
    const ENDINGS: [&str; 14] = [
        "png", "jpg", "jpeg", "gif", "webp", "svg", "js", "mjs", "ts", "css", "html", "json",
        "tgz", "service",
    ];
    let Some((name, host)) = found.split_once('@') else { return true };
    let mut labels = host.split('.');
    let numeric = |label: Option<&str>| {
        label.is_some_and(|label| label.bytes().next().is_some_and(|byte| byte.is_ascii_digit()))
    };
    let is_version = numeric(labels.next()) && numeric(labels.next());
    let ending = host.rsplit('.').next().unwrap_or_default();
    name != "git" && !is_version && !ENDINGS.contains(&ending)
}
