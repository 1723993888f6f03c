//! A flood of hostile requests through a receiver's router, in a process of its own: neither its memory nor
//! what it keeps grows with them. The child is this program again.

use std::io::Write as _;
use std::process::{Command, ExitCode, Stdio};

use leasehold::webhook::{Accepted, Refusal, Scheme, Signer, Verifier, accept};
use leasehold_conformance::evidence::Evidence;
use libtest_mimic::Failed;

use crate::engine::Engine;
use crate::receiving::{app, jobs};
use crate::signing::keys;

const CHILD: &str = "LEASEHOLD_FLOOD_CHILD";
/// By how much a process may grow once it has seen a part of the flood, in KiB.
const GROWTH_MAX: u64 = 16 * 1024;

/// How many requests; the nightly programme sets more.
fn requests() -> u64 {
    let set = std::env::var("LEASEHOLD_HOSTILE_REQUESTS").ok();
    set.map_or(3_000, |text| text.parse().expect("LEASEHOLD_HOSTILE_REQUESTS is a number"))
}

/// The memory that this process has in use, in KiB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a system that tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a figure");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

type Headers = Vec<(String, String)>;

/// The `n`-th request of the flood; `captured` is a good one that somebody overheard.
fn hostile(n: u64, captured: &Headers) -> leasehold::Result<(Headers, Vec<u8>)> {
    let mut headers = captured.clone();
    let mut body = b"{}".to_vec();
    let header = |headers: &mut Headers, end: &str, value: String| {
        let found = headers.iter_mut().find(|(name, _)| name.ends_with(end)).expect("the header");
        found.1 = value;
    };
    match n % 8 {
        0 => header(&mut headers, "-nonce", format!("{n:032x}")),
        1 => {} // the very same again
        2 => body = format!("{{\"n\":{n}}}").into_bytes(),
        3 => {
            // Once good, and too old.
            let signer = Signer::new(Scheme::euterpe(), keys(&[0]));
            let id = format!("old_{n}");
            headers = signer.sign_with(&id, 1_700_000_000, u128::from(n).to_be_bytes(), &body)?;
        }
        4 => drop(headers.remove(usize::try_from(n / 8 % 4).unwrap_or(0))),
        5 => headers.push(headers[usize::try_from(n / 8 % 4).unwrap_or(0)].clone()),
        6 => body = vec![b'x'; 64 * 1024],
        _ => header(&mut headers, "-signature", format!("{n:x},").repeat(1_000)),
    }
    Ok((headers, body))
}

/// The child: takes the flood, and tells its memory after a tenth of it and at the end.
pub(crate) fn play_role() -> Option<ExitCode> {
    let url = std::env::var(CHILD).ok()?;
    let story = async {
        let send = app(&leasehold::connect(&url).await?);
        let captured = Signer::new(Scheme::euterpe(), keys(&[0])).sign("evt_1", b"{}")?;
        assert_eq!(send(&captured, b"{}").await?.0.as_u16(), 201);
        let (all, mut after_a_tenth) = (requests(), 0);
        for n in 0..all {
            let (headers, body) = hostile(n, &captured)?;
            let answer = send(&headers, &body).await?;
            assert_eq!(answer.0.as_u16(), Refusal::STATUS, "request {n}");
            if n == all / 10 {
                after_a_tenth = memory();
            }
        }
        let told = format!("{after_a_tenth} {}", memory());
        std::io::stdout().write_all(told.as_bytes())?;
        Ok::<_, Failed>(())
    };
    let story = crate::runtime().block_on(story);
    assert!(story.is_ok(), "{:?}", story.err().and_then(|why| why.message().map(str::to_owned)));
    Some(ExitCode::SUCCESS)
}

/// Sends what an honest sender would have sent: each nonce of the flood and each event of it is free.
async fn all_is_free(engine: &Engine) -> Result<(), Failed> {
    let store = engine.open().await?;
    assert_eq!(jobs(&store).await?, 1, "the captured request's own");
    let (scheme, all) = (Scheme::euterpe(), usize::try_from(requests())?);
    for n in (0..requests()).step_by(all / 100) {
        for id in [format!("evt_free_{n}"), format!("old_{n}")] {
            let nonce =
                if id.starts_with("old") { u128::MAX - u128::from(n) } else { u128::from(n) };
            let signer = Signer::new(scheme.clone(), keys(&[0]));
            let headers = signer.sign_with(&id, 1_700_000_000, nonce.to_be_bytes(), b"{}")?;
            let verifier = Verifier::new(scheme.clone(), keys(&[0]));
            let verified = verifier.verify_at(1_700_000_000, &headers, b"{}")?;
            let taken = accept(store.records(), &verified, []).await?;
            assert!(matches!(taken, Ok(Accepted::New(_))), "{id}: {taken:?}");
        }
    }
    Ok(())
}

/// Proves: WH-2, IDM-3
pub(crate) fn hostile_requests_grow_neither_memory_nor_what_is_kept(
    engine: &Engine,
) -> Result<(), Failed> {
    let evidence = Evidence::of("a flood of hostile requests", engine.name());
    let mut child = Command::new(std::env::current_exe()?);
    let told = child.env(CHILD, engine.url()).stderr(Stdio::inherit()).output()?;
    assert!(told.status.success(), "the flood was not withstood");
    let told = String::from_utf8(told.stdout)?;
    let (early, late) = told.trim().split_once(' ').ok_or("two figures")?;
    let (early, late): (u64, u64) = (early.parse()?, late.parse()?);
    assert!(late <= early + GROWTH_MAX, "it grew from {early} KiB to {late} KiB");
    crate::runtime().block_on(all_is_free(engine))?;
    let evidence = evidence.count("hostile requests", requests()).count("taken", 0_u64);
    let evidence = evidence.count("KiB in use after a tenth", early);
    evidence.count("KiB in use at the end", late).count("rows kept of them", 0_u64).tell();
    Ok(())
}
