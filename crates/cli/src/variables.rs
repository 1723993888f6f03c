//! Owns which variables of the environment the command reads, and how its help and its page name them. What a key's
//! variable does stands with the key.

use crate::config::{KEYS, Key};

/// How wide a list of names is.
const WIDTH: usize = 96;

/// The variables that stand for no key, and what each is for.
pub const OTHERS: &[(&str, &str)] = &[
    ("LEASEHOLD_URL", "the database of `bench` and `conformance`, in place of --url"),
    ("USER", "who asks, for the audit log, in place of --actor"),
    ("PATH", "where the program of worker.command is looked for"),
    ("POD_NAME", "the worker's name for people"),
    ("HOSTNAME", "the same, where POD_NAME is not set"),
    (
        "SSL_CERT_FILE",
        "the roots that a server's certificate is held against, in place of the machine's",
    ),
    ("SSL_CERT_DIR", "the same, as a folder"),
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "the collector of traces; /v1/traces is added"),
    ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "the same, as it is"),
    ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf, and nothing else"),
    ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "the same, before it"),
    ("OTEL_EXPORTER_OTLP_TIMEOUT", "milliseconds for one batch of spans"),
    ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "the same, before it"),
    ("OTEL_EXPORTER_OTLP_HEADERS", "further headers for the collector"),
    ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "the same, before them"),
    ("OTEL_SERVICE_NAME", "who sends the spans; leasehold unless set"),
    ("OTEL_RESOURCE_ATTRIBUTES", "what else is told of the sender"),
    ("OTEL_TRACES_SAMPLER", "which traces are kept"),
    ("OTEL_TRACES_SAMPLER_ARG", "how many of them"),
    ("OTEL_BSP_*", "how spans are batched"),
    ("OTEL_TRACES_EXPORTER", "none: no spans are sent"),
    ("OTEL_SDK_DISABLED", "true: no spans are sent"),
    ("LEASEHOLD_BENCH_WORKER", "what `bench` gives its own worker processes; not to be set"),
];

/// What is read under a name that somebody chooses.
const CHOSEN: &str = "Also read are the variables that worker.command_env lists, to be handed on to the command; the \
    one that a secret's env:NAME names; and the one that `keys --env NAME` names.";
const OF_KEYS: &str = "Each key of the configuration has a variable, which comes before the file; `leasehold config \
    show --defaults` says what the keys do.";

/// The part of the help.
#[must_use]
pub fn help() -> String {
    let mut out = format!("Environment:\n  {OF_KEYS}\n");
    let mut line = String::new();
    for name in KEYS.iter().map(Key::variable) {
        if !line.is_empty() && line.len() + name.len() + 1 > WIDTH {
            out.push_str(&format!("    {line}\n"));
            line.clear();
        }
        line.push_str(if line.is_empty() { "" } else { " " });
        line.push_str(&name);
    }
    out.push_str(&format!("    {line}\n\n"));
    for (name, about) in OTHERS {
        out.push_str(&format!("  {name:34}  {about}\n"));
    }
    format!("{out}\n  {CHOSEN}")
}

/// The section of the page.
#[must_use]
pub fn section() -> String {
    let mut out = format!(".SH ENVIRONMENT\n{}\n", escaped(OF_KEYS));
    let keys = KEYS.iter().map(|key| (key.variable(), format!("{}: {}", key.path, key.about)));
    let others = OTHERS.iter().map(|(name, about)| ((*name).to_owned(), (*about).to_owned()));
    for (name, about) in keys.chain(others) {
        out.push_str(&format!(".TP\n\\fB{}\\fR\n{}\n", escaped(&name), escaped(&about)));
    }
    format!("{out}.PP\n{}\n", escaped(CHOSEN))
}

/// What the page's language would read otherwise.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}
