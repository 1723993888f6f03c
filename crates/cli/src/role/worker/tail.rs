//! Owns how much of a command's output is kept: its beginning, up to a bound; the rest is read and
//! counted, so that the command never waits for us.

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{ChildStderr, ChildStdout};

/// One of the two outputs.
pub(super) enum Pipe {
    /// Standard output.
    Out(ChildStdout),
    /// Standard error.
    Err(ChildStderr),
}

/// What was kept.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    bytes: Vec<u8>,
    /// Bytes that came in all.
    total: u64,
    unfinished: bool,
}

impl Kept {
    /// An output that never ended.
    pub(super) fn unfinished() -> Self {
        Self { unfinished: true, ..Self::default() }
    }

    /// Gives it as text; a byte that is not UTF-8 shows as U+FFFD, NUL as its symbol.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).replace('\0', "\u{2400}")
    }

    /// Says whether something was left out.
    pub(super) fn is_cut(&self) -> bool {
        self.unfinished || self.total > self.bytes.len() as u64
    }
}

/// Reads to the end and keeps the first `most` bytes.
pub(super) async fn keep(pipe: Pipe, most: usize) -> Kept {
    match pipe {
        Pipe::Out(pipe) => read(pipe, most).await,
        Pipe::Err(pipe) => read(pipe, most).await,
    }
}

async fn read(mut from: impl AsyncRead + Unpin, most: usize) -> Kept {
    let mut kept = Kept::default();
    let mut part = vec![0; 8192];
    loop {
        match from.read(&mut part).await {
            Ok(0) => return kept,
            Ok(count) => {
                let room = most.saturating_sub(kept.bytes.len()).min(count);
                kept.bytes.extend_from_slice(part.get(..room).unwrap_or_default());
                kept.total += count as u64;
            }
            Err(_) => return Kept { unfinished: true, ..kept },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_beginning_is_kept_and_the_rest_is_counted() {
        let long = vec![b'x'; 20_000];
        let kept = read(long.as_slice(), 9_000).await;
        assert_eq!((kept.bytes.len(), kept.total, kept.is_cut()), (9_000, 20_000, true));
        let kept = read(&b"a\0\xff"[..], 3).await;
        assert_eq!((kept.text().as_str(), kept.is_cut()), ("a\u{2400}\u{fffd}", false));
        assert!(read(&b"a"[..], 0).await.is_cut());
    }
}
