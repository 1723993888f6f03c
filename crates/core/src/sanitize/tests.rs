//! Positive, negative and boundary cases for each kind of finding.
//!
//! The secrets here are made up, and written in two halves so that scanners of this code stay calm.

use proptest::prelude::*;

use super::*;

/// Joins the halves of a made-up secret.
fn drawn(prefix: &str) -> String {
    format!("{prefix}{}", "Zq3tVb8sYw2kLp6mRd9fXh4jTn7cGa5eUi1o")
}

fn assert_masked(text: &str, secret: &str, kind: &str) {
    let clean = sanitize(text);
    assert!(!clean.contains(secret), "{text}\n{clean}");
    assert!(clean.contains(&format!("[redacted:{kind}]")), "{text}\n{clean}");
}

/// Proves: RED-1, DL-2
#[test]
fn every_pattern_compiles() {
    assert_eq!(COMPILED.as_ref().expect("patterns").len(), rules::RULES.len());
}

/// Proves: RED-1, RED-2, DL-2
#[test]
fn keys_with_known_prefixes_are_masked_wherever_they_stand() {
    let upper = format!("AKIA{}", "Q7ZP2MW4RT6XC9VB");
    let mut keys = vec![upper, format!("SG.{}.{}", drawn(""), drawn("x"))];
    keys.push(format!("12345678:AA{}", drawn("")));
    keys.push(format!("AbCdEfGh12345.atlasv1.{}", drawn("")));
    keys.push(format!("key-{}", "0123456789abcdef".repeat(2)));
    keys.push(format!("dop_v1_{}", "0123456789abcdef".repeat(4)));
    keys.push(format!("shpat_{}", "0123456789ABCDEF".repeat(2)));
    for prefix in [
        "sk-",
        "sk-proj-",
        "sk-ant-api03-",
        "ghp_",
        "gho_",
        "ghs_",
        "github_pat_",
        "glpat-",
        "whsec_",
        "xoxb-",
        "xoxp-1-",
        "xapp-1-",
        "sk_live_",
        "rk_test_",
        "AIza",
        "ya29.",
        "npm_",
        "pypi-",
        "dckr_pat_",
        "sq0csp-",
        "GOCSPX-",
        "lin_api_",
        "hf_",
        "hvs.",
        "gsk_",
        "xai-",
    ] {
        keys.push(drawn(prefix));
    }
    for key in keys {
        for text in [
            key.clone(),
            format!("call failed: {key}."),
            format!("{{\"x\":\"{key}\"}}"),
            format!("{{\"x\":\"line\\n{key}\\n\"}}"),
            format!("\u{1b}[31m{key}\u{1b}[0m"),
            format!("https://example.com/?q={key}&z=1"),
            format!("({key},{key})"),
        ] {
            assert_masked(&text, &key, "api_key");
        }
    }
}

/// Proves: RED-1, RED-2
#[test]
fn credentials_of_a_request_are_masked() {
    let token = drawn("");
    for text in [
        format!("Authorization: Bearer {token}"),
        format!("authorization: bearer {token}, retry"),
        format!("{{\"Authorization\":\"Bearer {token}\"}}"),
        format!("{{\\\"authorization\\\":\\\"Token {token}\\\"}}"),
        format!("(\"authorization\", \"Bearer {token}\")"),
        format!("Proxy-Authorization: Basic {token}=="),
        format!("-H 'Authorization: {token}'"),
        format!("Authorization: Digest username=\"joe\", response=\"{token}\""),
        "authorization: bearer abc\nnext".to_owned(),
    ] {
        assert_masked(&text, &token, "authorization");
    }
    assert_masked(&format!("used Bearer {token} for it"), &token, "bearer");
    assert_masked("with basic am9lOnBhc3M= sent", "am9lOnBhc3M=", "bearer");
    assert_masked(&format!("Set-Cookie: sid=\"{token}\"; Path=/"), &token, "cookie");
    assert_masked("AUTH PLAIN AGpvZQBwYXNz", "AGpvZQBwYXNz", "smtp_auth");
    assert_masked(&format!("https://hooks.slack.com/services/T0/B0/{token}"), &token, "webhook");
    assert_masked(&format!("https://x.example/b?a=1&sig={token}&b=2"), &token, "secret");
}

/// Proves: RED-1, RED-2
#[test]
fn tokens_of_every_shape_are_masked_wholly() {
    let (head, body) = ("eyJhbGciOiJub25lIn0", "eyJzdWIiOiIxIn0");
    for token in [
        head.to_owned(),
        format!("{head}.{body}"),
        format!("{head}.{body}."),
        format!("{head}.{body}.c2ln-"),
        format!("{head}.{body}.c2ln_"),
        format!("{head}.e30.c2ln.aXY.dGFn"),
    ] {
        for text in [
            format!("https://x.example/?t={token}"),
            format!("\"{token}\""),
            format!("cookie jar: {token}, and more"),
            format!("x\\n{token}"),
            token.clone(),
        ] {
            let clean = sanitize(&text);
            assert!(!clean.contains("eyJ") && !clean.contains("c2ln"), "{text}\n{clean}");
        }
    }
}

/// Proves: RED-1, RED-2
#[test]
fn values_of_secret_names_are_masked_and_their_surroundings_kept() {
    for (text, wanted) in [
        ("password=hunter2", "password=[redacted:secret]"),
        ("DB_PASSWORD: hunter2\nHOST: x", "DB_PASSWORD: [redacted:secret]\nHOST: x"),
        ("{\"api_key\": \"a b\", \"n\": 1}", "{\"api_key\": \"[redacted:secret]\", \"n\": 1}"),
        (r#"{\"secret\":\"a$1\\b\",\"n\":1}"#, r#"{\"secret\":\"[redacted:secret]\",\"n\":1}"#),
        ("{'token': 'x'}", "{'token': '[redacted:secret]'}"),
        ("client_secret => `abc`", "client_secret => `[redacted:secret]`"),
        (
            "Config { token: Some(\"a\"), n: 1 }",
            "Config { token: Some(\"[redacted:secret]\"), n: 1 }",
        ),
        ("host=h;password=p;user=u", "host=h;password=[redacted:secret];user=u"),
        ("?access_token=abc&n=1", "?access_token=[redacted:secret]&n=1"),
        ("run --token abc -v", "run --token [redacted:secret] -v"),
        ("run --db-password=abc -v", "run --db-password=[redacted:secret] -v"),
        ("[\"--token\", \"abc\", \"-v\"]", "[\"--token\", \"[redacted:secret]\", \"-v\"]"),
        ("[(\"x-api-key\", \"abc\")]", "[(\"x-api-key\", \"[redacted:secret]\")]"),
        ("x-api-key: abc\r\nhost: y", "x-api-key: [redacted:secret]\r\nhost: y"),
        ("pwd=abc;", "pwd=[redacted:secret];"),
        ("(password=a.b,c)", "(password=[redacted:secret])"),
        ("password=\"cut off he", "password=\"[redacted:secret]"),
        ("password=\"a\\\"b\" c", "password=\"[redacted:secret]\" c"),
        ("secret=x", "secret=[redacted:secret]"),
        ("secret=$1\\1", "secret=[redacted:secret]"),
    ] {
        assert_eq!(sanitize(text), wanted, "{text}");
    }
}

/// Proves: RED-1, RED-2
#[test]
fn blocks_are_masked_whole_and_cut() {
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7\nAbCd==";
    let (begin, end) = ("-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----");
    let whole = format!("a {begin}\n{body}\n{end} b");
    assert_eq!(sanitize(&whole), "a [redacted:pem] b");
    assert_eq!(sanitize(&format!("a {begin}\n{body}")), "a [redacted:pem]");
    assert_eq!(sanitize(&format!("x: 1\n{body}\n{end} b")), "x: 1\n[redacted:pem] b");
    let escaped = whole.replace('\n', "\\n");
    assert_eq!(sanitize(&escaped), "a [redacted:pem] b");
    let proc_type = format!("{begin}\nProc-Type: 4,ENCRYPTED\n\n{body}\n{end}");
    assert_eq!(sanitize(&format!("{proc_type}, {proc_type}")), "[redacted:pem], [redacted:pem]");
}

/// Proves: RED-1, RED-2
#[test]
fn credentials_in_addresses_are_masked_and_hosts_kept() {
    for (text, wanted) in [
        ("postgres://joe:pw@db:5432/x", "postgres://[redacted:userinfo]@db:5432/x"),
        ("smtp://joe%40x.org:p%20w@mail.example", "smtp://[redacted:userinfo]@mail.example"),
        ("https://ghx@git.example/r.git", "https://[redacted:userinfo]@git.example/r.git"),
        ("redis://:p@ss@h:1", "redis://[redacted:userinfo]@h:1"),
        ("amqp://joe:pa/ss?w#rd@h/v", "amqp://[redacted:userinfo]@h/v"),
        ("{\"u\":\"http:\\/\\/a:b@h\\/\"}", "{\"u\":\"http:\\/\\/[redacted:userinfo]@h\\/\"}"),
        ("https://x.example/@scope/pkg", "https://x.example/@scope/pkg"),
        ("http://h:8080/users/@me", "http://h:8080/users/@me"),
    ] {
        assert_eq!(sanitize(text), wanted, "{text}");
    }
}

/// Proves: RED-1, RED-2, DL-2
#[test]
fn addresses_of_people_are_masked() {
    for (text, wanted) in [
        ("to joe.b+x@mail.example.com.", "to [redacted:email]."),
        ("<mailto:joe@example.org>", "<mailto:[redacted:email]>"),
        ("user=joe%40example.org&x", "user=[redacted:email]&x"),
        ("jörg@bücher.example", "[redacted:email]"),
        ("10086@163.com", "[redacted:email]"),
    ] {
        assert_eq!(sanitize(text), wanted, "{text}");
    }
}

/// Proves: RED-1
#[test]
fn a_known_secret_is_masked_everywhere_in_every_spelling() {
    let secret = "hunter2/hunter2+\"x\"";
    let json = "hunter2/hunter2+\\\"x\\\"";
    let text = format!(
        "first {secret} {{\"password\":\"{json}\"}} then {secret} {json} {} {} {} end",
        "hunter2%2Fhunter2%2B%22x%22",
        "aHVudGVyMi9odW50ZXIyKyJ4Ig==",
        "hunter2%2fhunter2%2b%22x%22",
    );
    assert_eq!(
        sanitize(&text),
        "first [redacted:repeated] {\"password\":\"[redacted:secret]\"} then [redacted:repeated] \
         [redacted:repeated] [redacted:repeated] [redacted:repeated]== [redacted:repeated] end"
    );
}

/// Proves: RED-1
#[test]
fn replacement_is_by_place_and_not_by_text() {
    assert_eq!(sanitize("passwords password=password"), "passwords password=[redacted:secret]");
    assert_eq!(
        sanitize("http://joe77joe:joe77joe@h joe77joe"),
        "http://[redacted:userinfo]@h [redacted:repeated]"
    );
    assert_eq!(sanitize("token=a banana"), "token=[redacted:secret] banana");
    assert_eq!(sanitize("password=\"\" x"), "password=\"\" x");
    assert_eq!(
        sanitize("tok3n-tok3n; secret=tok3n-tok3n, secret=tok3n-tok3n"),
        "[redacted:repeated]; secret=[redacted:secret], secret=[redacted:secret]"
    );
}

/// Proves: RED-2
#[test]
fn what_only_looks_random_stays() {
    for text in [
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 in v1.2.3-rc.4+build.5",
        "index 83db48f..bf3a1c2 100644",
        "id 0190b5a2-7c1e-7b3a-9d4e-1f2a3b4c5d6e at 1718000000000",
        "\"integrity\": \"sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==\"",
        "checksum = \"9fceb02d0ae598e95dc970b74767f19372d61af89fceb02d0ae598e95dc970b7\"",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "org.example.very.long.name.OfAClassThatIsNamedAtLength::and_a_function",
        "the task-force-of-kebab-case-names and risk-assessment-framework-v2",
        ".sk-folding-cube-container-of-style",
        "basic authentication failed; bearer tokens are due; Basic Authentication",
        "max_tokens: 4096, tokenizer=bpe, token_count=7, secretary: Ann? no",
        "icon@2x.png lodash@4.17.21 left-pad@1.3.0-beta.rc git@git.example:r.git @scope/pkg",
        "PWD=/home/joe OLDPWD=/tmp",
        "password: null, token=None, secret: ${DB_SECRET}, password=********",
        "token: ${vault.db_token}, password=${db.password}",
        "20240131.1234 build, 4111-1111 is short, +1 555 0100",
        "",
        "plain words, nothing else",
    ] {
        assert_eq!(sanitize(text), text);
        assert_eq!(redactions(text), []);
    }
}

/// Proves: RED-1
#[test]
fn findings_tell_kind_and_place_only() {
    let text = "ä password=hunter2 joe@example.org";
    let found = redactions(text);
    let listed: Vec<_> = found.iter().map(|found| (found.kind(), &text[found.span()])).collect();
    assert_eq!(listed, [("secret", "hunter2"), ("email", "joe@example.org")]);
    assert!(!format!("{found:?}").contains("hunter2"));
}

/// Proves: DL-2
#[test]
fn a_cut_never_leaves_half_a_secret_or_half_a_mark() {
    let key = drawn("ghp_");
    for padding in 0..120 {
        let text = format!("{} {key} {}", "x".repeat(padding), "y ".repeat(200));
        for max in [20, 64, 100] {
            let clean = Sanitizer::default().clean(&text, max);
            assert!(clean.len() <= max, "{clean}");
            assert!(!clean.contains("ghp_"), "{clean}");
            assert!(clean.ends_with(CUT_MARK), "{clean}");
            assert_eq!(clean.matches('[').count(), clean.matches(']').count(), "{clean}");
            assert_eq!(Sanitizer::default().clean(&clean, max), clean);
        }
    }
    let text = format!("{}{key}", "y ".repeat(190)); // the window ends inside the key
    assert!(!Sanitizer::default().clean(&text, 100).contains("ghp_"));
}

/// Proves: DL-2
#[test]
fn huge_texts_take_linear_time() {
    let piece = "GET /a?b=c 200 joe@example.org password=hunter2x at://b:c@d \"x\": [1, 2]\n";
    for text in [
        piece.repeat(3_000),
        "a".repeat(500_000),
        "://".repeat(100_000),
        "-----BEGIN ".repeat(20_000),
        "token".repeat(60_000),
        "@a.".repeat(100_000),
        "eyJ".repeat(100_000),
        "abcd ".repeat(60_000),
        "\\".repeat(300_000),
    ] {
        let clean = sanitize(&text);
        assert!(!clean.contains("hunter2x") && !clean.contains("joe@"));
    }
    let clean = Sanitizer::default().clean(&piece.repeat(140_000), 16 * 1024);
    assert!(clean.len() <= 16 * 1024);
}

fn words() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "password=",
        "\"token\": \"",
        "hunter2hunter2",
        "--secret ",
        "Bearer ",
        "a1b2c3d4e5",
        "\"",
        "'",
        "://",
        "joe:",
        "@",
        "example.org",
        "\\",
        "\\\"",
        "-----BEGIN X-----",
        "-----END X-----",
        "eyJhbGciOi",
        ".",
        ",",
        "[redacted:secret]",
        "[redacted:",
        "]",
        " [cut]",
        "\n",
        " ",
        "%40",
        "Authorization: ",
        "cookie: ",
        "ghp_",
        "0123456789abcdefABCDEF",
        "&sig=",
        "ö",
        "(",
        ")",
        ";",
    ]);
    prop::collection::vec(word, 0..14).prop_map(|words| words.concat())
}

proptest! {
    /// Proves: DL-2
    #[test]
    fn findings_are_ordered_and_lie_on_characters(text in prop_oneof![words(), any::<String>()]) {
        let mut at = 0;
        for found in redactions(&text) {
            prop_assert!(found.span().start >= at && !found.span().is_empty());
            prop_assert!(text.get(found.span()).is_some());
            at = found.span().end;
        }
    }

    /// Proves: DL-2
    #[test]
    fn a_password_never_comes_through(before in words(), after in words(), quote in "[\"']?") {
        let text = format!("{before} password={quote}S3cr3tS3cr3t{quote} {after} S3cr3tS3cr3t");
        prop_assert!(!sanitize(&text).contains("S3cr3tS3cr3t"), "{}", sanitize(&text));
    }

    /// Proves: DL-2
    #[test]
    fn sanitizing_ends(text in words()) {
        let once = sanitize(&text);
        prop_assert_eq!(sanitize(&once), once);
    }
}
