//! The encoder of the transcode service: it holds no more than a block, however long the file is, and
//! refuses what it cannot read.

use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Told, flac, pure};

pure![
    a_long_file_is_encoded_as_it_is_read,
    each_width_comes_back_sample_for_sample,
    what_is_no_whole_wav_file_is_refused,
];

/// How many samples a block has.
const BLOCK: u64 = 4_096;

/// A mono file of 16 bits that is made up as it is read: steps, each as long as a block.
struct Steps {
    head: Cursor<Vec<u8>>,
    at: u64,
    bytes: u64,
    read: Arc<AtomicU64>,
}

fn head(channels: u16, bits: u16, bytes: u32) -> Vec<u8> {
    let frame = channels * bits / 8;
    let mut head = b"RIFF".to_vec();
    head.extend((36 + bytes).to_le_bytes());
    head.extend(b"WAVEfmt \x10\0\0\0\x01\0");
    head.extend(channels.to_le_bytes());
    head.extend(8_000_u32.to_le_bytes());
    head.extend((8_000 * u32::from(frame)).to_le_bytes());
    head.extend(frame.to_le_bytes());
    head.extend(bits.to_le_bytes());
    head.extend(b"data");
    head.extend(bytes.to_le_bytes());
    head
}

fn step(sample: u64) -> i16 {
    i16::try_from(sample / BLOCK % 7).expect("small") * 1_000
}

impl Steps {
    fn new(samples: u64, read: Arc<AtomicU64>) -> Self {
        let bytes = samples * 2;
        let head = head(1, 16, u32::try_from(bytes).expect("a length"));
        Self { head: Cursor::new(head), at: 0, bytes, read }
    }
}

impl Read for Steps {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.head.read(into)?;
        if read > 0 || into.is_empty() {
            return Ok(read);
        }
        let count = into.len().min(usize::try_from(self.bytes - self.at).expect("a count"));
        for byte in &mut into[..count] {
            let bytes = step(self.at / 2).to_le_bytes();
            *byte = bytes[usize::from(self.at % 2 == 1)];
            self.at += 1;
        }
        self.read.store(self.at, Ordering::SeqCst);
        Ok(count)
    }
}

/// Looks at each write how far reading is ahead of it.
struct Watched {
    inner: Cursor<Vec<u8>>,
    read: Arc<AtomicU64>,
    writes: u64,
    ahead: u64,
    longest: usize,
}

impl Write for Watched {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The first is the head; each one after it is a block.
        let written = self.writes * BLOCK * 2;
        self.ahead = self.ahead.max(self.read.load(Ordering::SeqCst).saturating_sub(written));
        self.longest = self.longest.max(bytes.len());
        self.writes += 1;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Watched {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

/// Five minutes; what was kept in memory would be read ahead of what is written.
///
/// Proves: DSK-1
fn a_long_file_is_encoded_as_it_is_read() -> Told {
    let (samples, read) = (8_000 * 300 + 17, Arc::new(AtomicU64::new(0)));
    let mut made =
        Watched { inner: Cursor::default(), read: read.clone(), writes: 0, ahead: 0, longest: 0 };
    flac::encode(Steps::new(samples, read), &mut made)?;
    assert!(made.writes > samples / BLOCK, "{} writes", made.writes);
    assert!(made.ahead <= BLOCK * 2, "{} bytes were read ahead", made.ahead);
    assert!(made.longest < 64 * 1024, "{} bytes were written at once", made.longest);
    let mut found = claxon::FlacReader::new(Cursor::new(made.inner.into_inner()))?;
    assert_eq!(found.streaminfo().samples, Some(samples));
    let mut count = 0;
    for sample in found.samples() {
        assert_eq!(sample?, i32::from(step(count)), "sample {count}");
        count += 1;
    }
    assert_eq!(count, samples);
    Ok(())
}

/// Proves: WQ-1
fn each_width_comes_back_sample_for_sample() -> Told {
    for (channels, bits) in [(1, 8), (2, 16), (2, 24), (6, 16)] {
        let mut wav = Cursor::new(Vec::new());
        let sample_format = hound::SampleFormat::Int;
        let spec =
            hound::WavSpec { channels, sample_rate: 8_000, bits_per_sample: bits, sample_format };
        let most = (1_i32 << (bits - 1)) - 1;
        let all: Vec<i32> = (0..5_000 * i32::from(channels))
            .map(|n| n.wrapping_mul(2_654_435_761_u32 as i32) % most)
            .collect();
        let mut writer = hound::WavWriter::new(&mut wav, spec)?;
        for sample in &all {
            writer.write_sample(*sample)?;
        }
        writer.finalize()?;
        let mut made = Cursor::new(Vec::new());
        flac::encode(Cursor::new(wav.into_inner()), &mut made)?;
        let mut found = claxon::FlacReader::new(Cursor::new(made.into_inner()))?;
        let found: Vec<i32> = found.samples().collect::<Result<_, _>>()?;
        assert!(found == all, "{channels} channels of {bits} bits differ");
    }
    Ok(())
}

/// Proves: RT-1
fn what_is_no_whole_wav_file_is_refused() -> Told {
    let cut = [head(2, 16, 400), vec![0; 398]].concat();
    let odd = [head(2, 16, 2), vec![0; 2]].concat();
    let wide = [head(2, 32, 8), vec![0; 8]].concat();
    for bytes in [b"".to_vec(), b"RIFF".to_vec(), vec![7; 1_000], cut, odd, wide] {
        let error = flac::encode(Cursor::new(bytes), Cursor::new(Vec::new())).expect_err("refused");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
    }
    let mut none = Cursor::new(Vec::new());
    flac::encode(Cursor::new(head(2, 16, 0)), &mut none)?;
    assert_eq!(claxon::FlacReader::new(Cursor::new(none.into_inner()))?.samples().count(), 0);
    Ok(())
}
