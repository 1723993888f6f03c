//! Owns what a text that should name a database looks like: which part of it may be a password, and whether it is
//! plainly no path. Refuses to know what a parameter means.

use std::path::Path;

/// The names that begin a text of `key=value` pairs, as other programs take them.
const PAIRS: [&str; 7] = ["host", "hostaddr", "port", "user", "password", "dbname", "service"];

/// Puts stars in the place of what may be a password: of what stands between a user's name and the last `@`, and of
/// each `password=`. Hides rather too much of a broken URL than too little.
pub fn mask_url(url: &str) -> String {
    mask_parameters(&mask_user(url))
}

/// Takes a scheme off, in capitals too, with its colon.
pub(crate) fn without_scheme<'a>(url: &'a str, scheme: &str) -> Option<&'a str> {
    let (have, rest) = url.split_once(':')?;
    have.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// Says what a text without the scheme `sqlite:` is instead of a path; `None` for a path.
pub(crate) fn no_path(text: &str) -> Option<&'static str> {
    const OTHER: &str = "only paths and sqlite: URLs are read here; a server is \
        postgres://USER@HOST:PORT/DATABASE";
    let trimmed = text.trim_start();
    if text.contains("://") || without_scheme(text, "file").is_some() {
        return Some(match trimmed.len() == text.len() {
            true => OTHER,
            false => "it begins with a blank: take that out",
        });
    }
    if Path::new(text).exists() {
        return None;
    }
    if scheme(trimmed).is_some() {
        return Some(
            "it begins as a URL of another kind: write sqlite:PATH or ./PATH for a file, \
             postgres://USER@HOST:PORT/DATABASE for a server",
        );
    }
    let first = trimmed.split_once('=').map_or("", |(name, _)| name.trim_end());
    PAIRS.iter().any(|name| first.eq_ignore_ascii_case(name)).then_some(
        "it is made of key=value pairs: write postgres://USER@HOST:PORT/DATABASE?password=…, or ./PATH for a \
         file of that name",
    )
}

/// The word before the first colon, where it may be a scheme.
fn scheme(text: &str) -> Option<&str> {
    let (word, _) = text.split_once(':')?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    let begins = word.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic());
    (begins && word.bytes().all(fits)).then_some(word)
}

fn mask_user(url: &str) -> String {
    let start = url.len() - url.trim_start().len();
    let Some(word) = scheme(url.trim_start()) else { return url.to_owned() };
    let colon = start + word.len();
    let rest = url.get(colon + 1..).unwrap_or_default();
    let slashes = rest.len() - rest.trim_start_matches('/').len();
    // A file's path may hold both signs; an authority stands behind two slashes.
    if word.eq_ignore_ascii_case("sqlite") && slashes < 2 {
        return url.to_owned();
    }
    // Without a slash the word may itself be the user's name.
    let begin = if slashes == 0 { start } else { colon + 1 + slashes };
    let Some((from, to)) = password(url.get(begin..).unwrap_or_default()) else {
        return url.to_owned();
    };
    let (head, tail) = (url.get(..begin + from), url.get(begin + to..));
    format!("{}***{}", head.unwrap_or_default(), tail.unwrap_or_default())
}

/// From where to where a password stands in `user:password@host/…`.
fn password(text: &str) -> Option<(usize, usize)> {
    let end = |signs: &[char]| text.find(signs).unwrap_or(text.len());
    let (authority, place) = (text.get(..end(&['/', '?', '#']))?, text.get(..end(&['?', '#']))?);
    let from = authority.find(':')? + 1;
    // A password with one of these signs as it is ends the authority too early.
    let port = authority.get(from..)?;
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let all = if is_port { None } else { text.rfind('@') };
    let to = authority.rfind('@').or_else(|| place.rfind('@')).or(all)?;
    (to > from).then_some((from, to))
}

fn mask_parameters(text: &str) -> String {
    const NAME: &str = "password";
    // To lower case byte by byte: the places stay the same.
    let low = text.to_ascii_lowercase();
    let (mut out, mut at) = (String::new(), 0);
    while let Some(found) = low.get(at..).and_then(|rest| rest.find(NAME)) {
        let name_end = at + found + NAME.len();
        let after = low.get(name_end..).unwrap_or_default();
        let value = after.trim_start().strip_prefix('=').map(str::trim_start);
        let Some(value) = value else {
            out.push_str(text.get(at..name_end).unwrap_or_default());
            at = name_end;
            continue;
        };
        let begin = low.len() - value.len();
        let is_query = low.get(..begin).is_some_and(|before| before.contains('?'));
        let length = length(value, is_query);
        out.push_str(text.get(at..begin).unwrap_or_default());
        out.push_str(if length > 0 { "***" } else { "" });
        at = begin + length;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// How long a value is: to the next `&` of a query, to the next blank or its closing quote elsewhere.
fn length(value: &str, is_query: bool) -> usize {
    if is_query {
        return value.find('&').unwrap_or(value.len());
    }
    let Some(quoted) = value.strip_prefix('\'') else {
        return value.find(char::is_whitespace).unwrap_or(value.len());
    };
    let mut is_escaped = false;
    let close = quoted.find(|sign| {
        let closes = sign == '\'' && !is_escaped;
        is_escaped = sign == '\\' && !is_escaped;
        closes
    });
    close.map_or(value.len(), |close| close + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: SEC-2
    #[test]
    fn no_password_is_left_and_nothing_else_is_taken() {
        for (url, shown) in [
            ("postgres://u:PW@h/db", "postgres://u:***@h/db"),
            ("Postgres://u:PW@h:5432/db?a=b", "Postgres://u:***@h:5432/db?a=b"),
            (" postgres://u:PW@h/db", " postgres://u:***@h/db"),
            ("postgres:/u:PW@h/db", "postgres:/u:***@h/db"),
            ("postgres:u:PW@h/db", "postgres:***@h/db"),
            ("u:PW@h/db", "u:***@h/db"),
            ("mysql://u:PW@h/db", "mysql://u:***@h/db"),
            ("git+ssh://u:PW@h/db", "git+ssh://u:***@h/db"),
            ("sqlite://u:PW@h/db", "sqlite://u:***@h/db"),
            ("postgres://u:/PW@h/db", "postgres://u:***@h/db"),
            ("postgres://u:P@W@h/db", "postgres://u:***@h/db"),
            ("postgres://u:P/W@h/db", "postgres://u:***@h/db"),
            ("postgres://u:P?W=1@h/db", "postgres://u:***@h/db"),
            ("postgres://u:1/PW@h/db", "postgres://u:***@h/db"),
            ("postgres://h/db?password=PW&a=b", "postgres://h/db?password=***&a=b"),
            ("sqlite:x?PassWord=P W", "sqlite:x?PassWord=***"),
            ("host=h password=PW user=u", "host=h password=*** user=u"),
            ("host=h password = 'P \\' W' user=u", "host=h password = *** user=u"),
            ("password='PW", "password=***"),
        ] {
            assert_eq!(mask_url(url), shown);
        }
        for url in [
            "postgres://u@h:5432/db?a=x@y",
            "postgres://h/db?password=&a=b",
            "postgres://[::1]/db",
            "sqlite:/var/a:b@c/jobs.db",
            "/var/a:b@c/jobs.db",
            ":memory:",
            "a password.db",
            "",
        ] {
            assert_eq!(mask_url(url), url);
        }
    }

    /// Proves: GLO-4
    #[test]
    fn what_is_plainly_no_path_is_told_with_what_to_write() {
        for (text, why) in [
            (" postgres://h/db", "begins with a blank"),
            ("postgres:/h/db", "of another kind"),
            (" sqlite:jobs.db", "of another kind"),
            ("mysql:jobs.db", "./PATH"),
            ("mysql://h/db", "postgres://USER"),
            ("File:a.db", "only paths"),
            ("host=127.0.0.1 password=PW user=u", "key=value"),
            (" User = u", "key=value"),
        ] {
            let said = no_path(text).unwrap_or_default();
            assert!(said.contains(why), "{text}: {said}");
        }
        for path in ["jobs.db", "./mysql:jobs.db", "/a:b/c", ":memory:", "a b=c.db", "./host=h", ""]
        {
            assert_eq!(no_path(path), None, "{path}");
        }
        let there = std::env::temp_dir().join(format!("leasehold-path-{}", std::process::id()));
        std::fs::write(&there, "").expect("written");
        assert_eq!(no_path(&there.display().to_string()), None);
        std::fs::remove_file(&there).expect("removed");
    }
}
