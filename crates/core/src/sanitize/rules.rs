//! What a secret looks like: one table, compiled once.
//!
//! Owns the patterns and the kinds that stand in `[redacted:kind]`. Each pattern needs a known
//! prefix or a telling context; entropy alone never decides, so hashes, UUIDs and versions stay.
//! Refuses to replace anything; it only says what a rule is.

use std::sync::LazyLock;

use regex::Regex;

use super::checks;

/// One row of the table.
#[derive(Debug)]
pub(super) struct Rule {
    /// What was found, as shown in the replacement.
    pub(super) kind: &'static str,
    /// The first group that took part is the secret; without groups the whole match.
    pattern: &'static str,
    /// Looks at the secret again, where a pattern alone would take too much.
    pub(super) holds: fn(&str) -> bool,
    /// Whether the secret is to be masked wherever else it stands.
    pub(super) confirms: bool,
}

const fn rule(kind: &'static str, pattern: &'static str, holds: fn(&str) -> bool) -> Rule {
    Rule { kind, pattern, holds, confirms: true }
}

/// Shows an e-mail address.
pub(super) const EMAIL: &str = "email";
/// Shows that something was masked because it is a secret elsewhere in the text.
pub(super) const REPEATED: &str = "repeated";
/// Shows that a text could not be judged and was masked as a whole.
pub(super) const UNJUDGED: &str = "unjudged";

/// All rules; where two begin at one place the longer finding, then the earlier row, names it.
pub(super) const RULES: [Rule; 17] = [
    Rule { confirms: false, ..rule("pem", PEM, checks::always) },
    rule("authorization", AUTHORIZATION, checks::is_no_placeholder),
    rule("bearer", BEARER, checks::looks_drawn),
    rule("jwt", JWT, checks::always),
    rule("api_key", API_KEY, checks::has_digit_or_capital),
    rule("api_key", API_KEY_WORDLIKE, checks::has_digit_or_capital),
    rule("webhook", WEBHOOK, checks::always),
    Rule { confirms: false, ..rule("cookie", COOKIE, checks::always) },
    rule("smtp_auth", SMTP_AUTH, checks::looks_drawn),
    rule("userinfo", USERINFO, checks::always),
    rule("userinfo", USERINFO_SLASHED, checks::is_no_port),
    rule("secret", ASSIGNMENT, checks::is_no_placeholder),
    rule("secret", PWD, checks::is_no_path),
    rule("secret", PAIR, checks::is_no_placeholder),
    rule("secret", FLAG, checks::is_no_placeholder),
    rule("secret", SIGNED_QUERY, checks::is_no_placeholder),
    Rule { confirms: false, ..rule(EMAIL, ADDRESS, checks::is_address) },
];

/// The table, compiled; `None`, and nothing passes, if one pattern were bad.
pub(super) static COMPILED: LazyLock<Option<Vec<(&'static Rule, Regex)>>> = LazyLock::new(|| {
    const TABLE: &[Rule] = &RULES;
    TABLE.iter().map(|rule| Regex::new(rule.pattern).ok().map(|regex| (rule, regex))).collect()
});

/// Names whose value is a secret; a longer name may end in one of them.
macro_rules! names {
    () => {
        r"(?: passw(?:or)?d | passphrase | passwort | secret | api[_.\x20-]?key | token
            | (?: access | private | signing | encryption | account | shared | master )[_.\x20-]?key
            | credentials? )"
    };
}

/// A quoted value, its closing quote perhaps cut off; the quotes may be escaped ones.
macro_rules! quoted {
    () => {
        r#"   \\+" ( (?: [^"\\\n] | \\[^"\n] )+ ) | "    ( (?: [^"\\\n] | \\. )+ )
            | \\*' ( (?: [^'\\\n] | \\. )+ )      | `    ( [^`\n]+ ) "#
    };
}

/// A block may lack its end (cut at the foot) or its beginning (cut at the head).
const PEM: &str = r"(?x)
    -----BEGIN[\x20A-Z0-9]*----- (?s:.*?) (?: -----END[\x20A-Z0-9]*----- | \z )
    | (?: [A-Za-z0-9+/=]{4,} (?: [\x20\t\r\n] | \\[nr] )+ )+ -----END[\x20A-Z0-9]*----- ";

const AUTHORIZATION: &str = concat!(
    r#"(?ix) authorization
    (?: \\*["'] [\x20\t]* , | \\*["']? \]? [\x20\t]* (?: => | [:=] ) ) [\x20\t]* (?: "#,
    quoted!(),
    r#"
      | (?: bearer | basic | token | bot ) (?: [\x20\t] | %20 | \+ )+ ( [^\s"'\\,;]+ )
      | ( [^\s"'\\] [^\r\n]* ) ) "#
);

const BEARER: &str = r"(?ix) (?-u:\b) (?: bearer | basic ) [\x20\t]+ ( [A-Za-z0-9._~+/=-]{6,} )";

/// Two to five parts, or the first alone; all of it, whatever character it ends in.
const JWT: &str = r"(?x) (?: ^ | [^A-Za-z0-9+] | \\[nrt] | \[[0-9;]*m )
    ( eyJ [A-Za-z0-9_+/=-]{8,} (?: \. [A-Za-z0-9_+/=-]* ){0,4} )";

/// Prefixes that no other text has.
const API_KEY: &str = r"(?x)
      gh[opsru]_[A-Za-z0-9]{16,}          | github_pat_[A-Za-z0-9_]{16,}
    | gl(?:pat|dt|rt|cbt|ptt|ft|agent|soat|imt)-[A-Za-z0-9_.-]{16,}
    | (?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16} | whsec_[A-Za-z0-9+/=_-]{8,}
    | xox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{8,} | xapp-[A-Za-z0-9-]{10,}
    | [srp]k_(?:live|test|prod)_[A-Za-z0-9]{8,}
    | npm_[A-Za-z0-9]{30,}  | pypi-[A-Za-z0-9_-]{30,}  | dckr_(?:pat|oat)_[A-Za-z0-9_-]{16,}
    | dop_v1_[a-f0-9]{32,}  | shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32} | sq0(?:atp|csp)-[A-Za-z0-9_-]{20,}
    | GOCSPX-[A-Za-z0-9_-]{16,} | lin_api_[A-Za-z0-9]{20,} | AGE-SECRET-KEY-1[A-Z0-9]{20,}
    | [A-Za-z0-9]{10,}\.atlasv1\.[A-Za-z0-9_=-]{20,} | PMAK-[a-f0-9-]{16,}
    | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,} ";

/// Prefixes that ordinary words can end in, so they count at the edge of a word only.
const API_KEY_WORDLIKE: &str = r"(?x) (?: ^ | [^A-Za-z0-9_+] | \\[nrt] | \[[0-9;]*m )
    (   sk-[A-Za-z0-9_-]{16,} | AIza[A-Za-z0-9_-]{30,} | ya29\.[A-Za-z0-9_-]{16,}
      | hf_[A-Za-z0-9]{24,}   | hv[sbr]\.[A-Za-z0-9_-]{20,} | gsk_[A-Za-z0-9]{24,}
      | xai-[A-Za-z0-9]{24,}  | key-[a-f0-9]{32} | [0-9]{8,10}:AA[A-Za-z0-9_-]{30,} )";

const WEBHOOK: &str = r#"(?x)
    (?: hooks\.slack\.com/(?:services|workflows|triggers)/ | discord(?:app)?\.com/api/webhooks/
      | \.webhook\.office\.com/ ) ( [^\s"'<>\\]+ )"#;

const COOKIE: &str = concat!(
    r#"(?ix) (?-u:\b) cookie
    (?: \\*["'] [\x20\t]* , | \\*["']? \]? [\x20\t]* (?: => | [:=] ) ) [\x20\t]* (?: "#,
    quoted!(),
    r#" | ( [^\s"'\\] [^\r\n]* ) ) "#
);

const SMTP_AUTH: &str = r"(?ix) (?-u:\b)
    auth [\x20\t]+ (?: plain | login | xoauth2 ) [\x20\t]+ ( [A-Za-z0-9+/=]{4,} )";

const USERINFO: &str = r#"(?x) : (?: \\*/ ){2} ( [^\s/"'<>?\#]+ ) @ "#;

/// A password with a raw slash, question mark or hash in it.
const USERINFO_SLASHED: &str = r#"(?x) : (?: \\*/ ){2} ( [^\s/:@"'<>?\#\[]+ : [^\s"'<>@]+ ) @ "#;

/// `password=…`, `"api_key": "…"`, `token: Some("…")`.
const ASSIGNMENT: &str = concat!(
    "(?ix)",
    names!(),
    r#" \\*["'`]? \]? [\x20\t]* (?: => | := | ={1,3} | : | %3[ad] ) [\x20\t]*
    (?: (?: [a-z0-9_.:&]+ \( ){0,2} [bfru]{0,2} \#? (?: "#,
    quoted!(),
    r#" ) | ( [^\s"'`&;]+ ) ) "#
);

/// `PWD` is a password in connection strings and a folder in environments.
const PWD: &str = concat!(
    r#"(?ix) (?-u:\b) pwd \\*["']? [\x20\t]* [:=] [\x20\t]* (?: "#,
    quoted!(),
    r#" | ( [^\s"'`&;]+ ) ) "#
);

/// `("x-api-key", "…")`, as maps of headers print themselves.
const PAIR: &str = concat!(
    r#"(?ix) \( \\*["'] [a-z0-9_.-]* "#,
    names!(),
    r#" \\*["'] , [\x20\t]* (?: [a-z0-9_.:&]+ \( ){0,2} (?: "#,
    quoted!(),
    ") "
);

/// `--token …`, also as a list of arguments prints itself.
const FLAG: &str = concat!(
    r"(?ix) -- [a-z0-9_-]* ",
    names!(),
    r#" \\*["']? ,? [\x20\t]+ (?: "#,
    quoted!(),
    r#" | ( [^\s"'`&;-] [^\s"'`&;]* ) ) "#
);

/// Parameters that open a resource to whoever holds the address.
const SIGNED_QUERY: &str = r#"(?ix)
    [?&;] (?: sig | signature | code | key | auth | x-amz-signature | x-goog-signature
            | x-amz-credential ) = ( [^\s"'&<>;\\]+ )"#;

const ADDRESS: &str = r#"(?x)
    [^\s@<>"'`(),;:\[\]\\/=&?|{}%*\#!$^~]+ (?: @ | %40 )
    [\p{L}\p{N}-]+ (?: \. [\p{L}\p{N}-]+ )* \. \p{L}{2,24} "#;
