use proptest::prelude::*;

use super::canonical::written;
use super::*;

fn refused(text: impl AsRef<str>) -> String {
    let error = Json::parse(text).expect_err("must be refused");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    error.to_string()
}

fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
}

/// Proves: PAR-3
#[test]
fn keeps_every_byte() {
    for text in [
        " { \"b\" : 1.50 ,\r\n\t\"a\":[ ] } \n",
        "\"\\u0000\\ud83d\\ude00 \u{1f600} \u{7f}\"",
        "-0.0e-00",
        "1e400",
        "{\"\":1,\"__proto__\":{\"\":null}}",
        "true",
    ] {
        assert_eq!(Json::parse(text).expect(text).as_str(), text);
        assert_eq!(Json::parse_bytes(text.as_bytes()).expect(text).as_str(), text);
    }
    let digits = "9".repeat(400);
    assert_eq!(Json::parse(digits.clone()).expect("400 digits").as_str(), digits);
}

/// Proves: PAR-3, PAR-4
#[test]
fn names_offset_finding_and_rule() {
    for (text, offset, rule) in [
        ("", 0, "syntax"),
        ("  ", 2, "syntax"),
        ("[1,]", 3, "syntax"),
        ("{\"a\":1,}", 7, "syntax"),
        ("[,1]", 1, "syntax"),
        ("[1 2]", 3, "syntax"),
        ("{\"a\" 1}", 5, "syntax"),
        ("{a:1}", 1, "syntax"),
        ("{1:1}", 1, "syntax"),
        ("[1}", 2, "syntax"),
        ("]", 0, "syntax"),
        ("// x\n1", 0, "syntax"),
        ("1 /* x */", 2, "syntax"),
        ("NaN", 0, "syntax"),
        ("-Infinity", 1, "syntax"),
        ("Infinity", 0, "syntax"),
        ("{} {}", 3, "syntax"),
        ("nul", 3, "syntax"),
        ("truefalse", 4, "syntax"),
        ("'a'", 0, "syntax"),
        ("+1", 0, "syntax"),
        ("01", 1, "number"),
        ("-01", 2, "number"),
        ("1.", 2, "syntax"),
        (".5", 0, "syntax"),
        ("1e", 2, "syntax"),
        ("1e+", 3, "syntax"),
        ("-", 1, "syntax"),
        ("0x10", 1, "syntax"),
        ("\"abc", 4, "syntax"),
        ("\"\\x\"", 2, "syntax"),
        ("\"\\u12g4\"", 5, "syntax"),
        ("\"\\u12", 5, "syntax"),
        ("\"a\0b\"", 2, "control-character"),
        ("\"a\nb\"", 2, "control-character"),
        ("1\0", 1, "syntax"),
        ("\u{a0}1", 0, "syntax"),
        ("\u{feff}1", 0, "no-bom"),
        ("\"\\ud800\"", 1, "surrogate"),
        ("\"\\udc00\"", 1, "surrogate"),
        ("\"\\ud800\\ud800\"", 1, "surrogate"),
        ("\"\\ud800\\n\"", 1, "surrogate"),
        ("\"\\ud800x\"", 1, "surrogate"),
        ("{\"\\ud800\":1}", 2, "surrogate"),
        ("{\"a\":1,\"a\":1}", 7, "duplicate-name"),
        ("{\"a\":1,\"\\u0061\":2}", 7, "duplicate-name"),
        ("[{\"\":1,\"\":2}]", 7, "duplicate-name"),
    ] {
        let message = refused(text);
        let wanted = (format!("at byte {offset}:"), format!("(rule: {rule})"));
        assert!(message.contains(&wanted.0) && message.contains(&wanted.1), "{text:?}: {message}");
    }
}

/// Proves: PAR-4
#[test]
fn a_name_may_return_in_another_object() {
    assert!(Json::parse(r#"{"a":{"a":[{"a":1},{"a":2}]},"b":{"a":1}}"#).is_ok());
}

/// Proves: PAR-4
#[test]
fn depth_ends_at_128() {
    for (open, inner, close) in [("[", "", "]"), ("{\"a\":", "1", "}"), ("[{\"a\":", "1", "}]")] {
        let step = if open.len() > 5 { 2 } else { 1 };
        assert!(Json::parse(nested(open, inner, close, 126 / step)).is_ok());
        assert!(Json::parse(nested(open, inner, close, 128 / step)).is_ok());
        assert!(refused(nested(open, inner, close, 130 / step)).contains("depth"));
    }
    assert!(Json::parse(nested("[", "", "]", 127)).is_ok());
    assert!(refused(nested("[", "", "]", 129)).contains("at byte 128: nesting deeper than 128"));
}

/// Proves: PAR-4
#[test]
fn a_hundred_thousand_brackets_are_only_refused() {
    for text in ["[".repeat(100_000), "{\"a\":".repeat(100_000), nested("[", "", "]", 100_000)] {
        assert!(refused(text).contains("depth"));
    }
    let wide = JsonLimits { depth_max: usize::MAX, ..JsonLimits::default() };
    assert!(Json::parse_with("[".repeat(100_000), &wide).is_err());
}

/// Proves: PAR-4
#[test]
fn size_ends_at_the_limit() {
    let limits = JsonLimits { bytes_max: 10, depth_max: 1 };
    assert!(Json::parse_with("\"12345678\"", &limits).is_ok());
    let error = Json::parse_with("\"123456789\"", &limits).expect_err("11 bytes");
    assert!(error.to_string().contains("11 bytes where 10 are allowed (rule: size)"));
    assert!(refused(" ".repeat(1024 * 1024 + 1)).contains("rule: size"));
    assert!(Json::parse_bytes(&vec![0xff; 1024 * 1024 + 1]).is_err());
}

/// Proves: PAR-4
#[test]
fn a_million_members_are_walked_once() {
    use std::fmt::Write as _;
    let mut text = String::from("{\"x\":[");
    text.push_str(&"{},".repeat(1_000_000));
    text.push_str("{}]");
    for index in 0..1_000_000 {
        write!(text, ",\"{index}\":0").expect("write");
    }
    text.push('}');
    let limits = JsonLimits { bytes_max: usize::MAX, depth_max: 3 };
    assert!(Json::parse_with(text, &limits).is_ok());
}

/// Proves: PAR-3
#[test]
fn bytes_must_be_utf8() {
    let error = Json::parse_bytes(b"\"ab\xff\"").expect_err("not UTF-8");
    assert!(error.to_string().contains("at byte 3:"), "{error}");
    assert!(Json::parse_bytes(b"\"\xed\xa0\x80\"").is_err(), "a surrogate in raw bytes");
    assert!(Json::parse_bytes(b"\xff\xfe1\0").is_err(), "UTF-16");
    assert!(Json::parse_bytes(b"1\0").is_err(), "UTF-16 without a mark");
}

/// Proves: PAR-3
#[test]
fn typed_reading_says_what_is_wrong() {
    let json = Json::of(&vec![1, 2]).expect("a list");
    assert_eq!(json.as_str(), "[1,2]");
    assert_eq!(json.read::<Vec<u8>>().expect("a list"), [1, 2]);
    let error = json.read::<String>().expect_err("no string");
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("expected a string"), "{error}");
    assert_eq!(Json::null().read::<Option<u8>>().expect("null"), None);
}

/// Proves: PAR-4
#[test]
fn what_passes_can_be_read_at_full_depth() {
    let json = Json::parse(nested("[", "", "]", 128)).expect("depth 128");
    assert!(json.read::<serde_json::Value>().is_ok());
}

/// Proves: PAR-4
#[test]
fn a_value_that_repeats_a_name_is_refused() {
    #[derive(Serialize)]
    struct Twice {
        a: u8,
        #[serde(flatten)]
        rest: std::collections::BTreeMap<String, u8>,
    }
    let value = Twice { a: 1, rest: [("a".to_owned(), 2)].into() };
    assert_eq!(Json::of(&value).expect_err("twice").kind(), ErrorKind::Invalid);
    let tuple_keys: std::collections::BTreeMap<(u8, u8), u8> = [((1, 2), 3)].into();
    assert_eq!(Json::of(&tuple_keys).expect_err("no text key").kind(), ErrorKind::Invalid);
}

/// Proves: PAR-3
#[test]
fn debug_shows_a_prefix_only() {
    let json = Json::parse(format!("\"{}\"", "x".repeat(500))).expect("a string");
    assert_eq!(format!("{json:?}"), "Json(502 bytes: \"xxxxxxxxxxxxxxx…)");
    assert_eq!(format!("{:?}", Json::null()), "Json(4 bytes: null)");
    assert_eq!(Json::null().len(), 4);
}

/// Proves: PAR-3
#[test]
fn foreign_text_becomes_storable() {
    assert_eq!(escape_text("a\0b\r\n\tc\u{7f}\u{85}", 99), "a\\u0000b\\u000d\n\tc\\u007f\\u0085");
    assert_eq!(escape_bytes(b"ok \xff\xed\xa0\x80 \0", 99), "ok \\xff\\xed\\xa0\\x80 \\u0000");
    assert_eq!(escape_text("", 0), "");
    assert_eq!(escape_text("abc", 3), "abc");
    assert_eq!(escape_text("abcd", 3), "abc");
    assert_eq!(escape_text("äöüäöü", 11), "äö [cut]");
    assert_eq!(escape_bytes(&vec![b'a'; 10_000_000], 16), "aaaaaaaaaa [cut]");
}

fn json_text() -> impl Strategy<Value = String> {
    let blank = prop::sample::select(vec!["", " ", "\n", "\t \r"]);
    let bare = prop_oneof![
        prop::sample::select(vec!["null", "true", "false", "0", "-0", "1.5e+3", "-12.25E-2", "{}"])
            .prop_map(str::to_owned),
        any::<i64>().prop_map(|n| n.to_string()),
        any::<String>().prop_map(|s| serde_json::to_string(&s).expect("a string")),
    ];
    (blank.clone(), bare, blank).prop_map(|(a, b, c)| format!("{a}{b}{c}")).prop_recursive(
        5,
        40,
        6,
        |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6)
                    .prop_map(|items| format!("[{}]", items.join(","))),
                prop::collection::vec(inner, 0..6).prop_map(|items| {
                    let member = |(i, v)| format!(" \"k\\u0000{i}\" :{v}");
                    let members: Vec<_> = items.into_iter().enumerate().map(member).collect();
                    format!("{{{}}}", members.join(","))
                }),
            ]
        },
    )
}

proptest! {
    /// Proves: PAR-3
    #[test]
    fn valid_json_passes_and_cut_json_agrees_with_serde(text in json_text(), at in any::<prop::sample::Index>()) {
        prop_assert!(Json::parse(text.clone()).is_ok(), "{text}");
        let end = text.floor_char_boundary(at.index(text.len() + 1));
        let (head, tail) = text.split_at(end);
        for damaged in [head.to_owned(), tail.to_owned(), format!("{head},{tail}")] {
            let theirs = serde_json::from_str::<serde_json::Value>(&damaged);
            prop_assert_eq!(Json::parse(damaged).is_ok(), theirs.is_ok());
        }
    }

    /// Proves: PAR-3, PAR-4
    #[test]
    fn accepts_nothing_that_serde_refuses(text in r#"[\[\]{}:,"\\u0dc8aeE.1+\- ntrulfs\x00\n]{0,24}"#) {
        if Json::parse(text.clone()).is_ok() {
            prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok(), "{text}");
        }
    }

    /// Proves: PAR-3
    #[test]
    fn never_panics(text in any::<String>(), bytes in any::<Vec<u8>>(), max in 0usize..40) {
        let _outcome = (Json::parse(text.clone()), Json::parse_bytes(&bytes));
        let escaped = escape_text(&text, max);
        prop_assert!(escaped.len() <= max && escape_bytes(&bytes, max).len() <= max);
        prop_assert_eq!(escape_text(&escaped, max), escaped);
    }

    /// Proves: IDM-5
    #[test]
    fn the_short_way_to_the_canonical_form_gives_the_same(text in r#"(\{("[abc]":([0-9]|"x:,\{"|\[\]|\{"[ab]":1(,"c":\{\})?\})(,"[d-h]":\[1,\{"z":0,"[a-z{]":"\}"\}\])?(,"[i-m]": ?true)?(,"[A-C]":"é")?)?\})"#) {
        if let Ok(json) = Json::parse(text) {
            prop_assert_eq!(canonical_text(&json), written(&json));
        }
    }

    /// Proves: IDM-5
    #[test]
    fn canonical_form_is_stable_and_means_the_same(text in json_text()) {
        let json = Json::parse(text).expect("valid");
        let canonical = Json::parse(canonical_text(&json)).expect("canonical form is valid");
        prop_assert_eq!(canonical_text(&canonical), canonical.as_str());
        prop_assert_eq!(canonical_text(&json), written(&json));
        let tight = json.read::<serde_json::Value>().expect("readable").to_string();
        let tight = Json::parse(tight).expect("valid");
        prop_assert_eq!(canonical_text(&tight), written(&tight));
        let value = |json: &Json| json.read::<serde_json::Value>().expect("readable");
        prop_assert_eq!(value(&canonical), value(&json));
    }
}
