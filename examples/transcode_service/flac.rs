//! Owns the work itself: WAV becomes FLAC, sample for sample, block by block; no more than a block is in
//! memory. Knows no storage and no jobs.

use std::fmt::Debug;
use std::io::{self, Read, Seek, SeekFrom, Write};

use flacenc::bitsink::ByteSink;
use flacenc::component::{BitRepr, Stream};
use flacenc::config;
use flacenc::error::{Verified, Verify};
use flacenc::source::{Context, Fill, FrameBuf};

/// Encodes what is read; runs as long as it takes, in a thread that may block.
pub(crate) fn encode(source: impl Read, mut output: impl Write + Seek) -> io::Result<()> {
    let mut wav = hound::WavReader::new(source).map_err(wrong)?;
    let mut encoder = Encoder::new(wav.spec())?;
    // Once more at the end, when length and digest are known.
    output.write_all(&encoder.head()?)?;
    let mut samples = wav.samples();
    let mut block = Vec::with_capacity(encoder.samples_a_block());
    loop {
        block.clear();
        for sample in samples.by_ref().take(encoder.samples_a_block()) {
            block.push(sample.map_err(wrong)?);
        }
        if block.is_empty() {
            break;
        }
        output.write_all(&encoder.frame(&block)?)?;
    }
    output.seek(SeekFrom::Start(0))?;
    output.write_all(&encoder.head()?)?;
    output.flush()
}

fn wrong(why: impl Debug) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the WAV file cannot be encoded: {why:?}"))
}

struct Encoder {
    config: Verified<config::Encoder>,
    /// The head; no frame is kept in it.
    stream: Stream,
    channels: usize,
    block: FrameBuf,
    seen: Context,
}

impl Encoder {
    fn new(spec: hound::WavSpec) -> io::Result<Self> {
        if spec.sample_format != hound::SampleFormat::Int
            || !(8..=24).contains(&spec.bits_per_sample)
        {
            return Err(wrong("it must hold integers of 8 to 24 bits"));
        }
        let config =
            config::Encoder::default().into_verified().map_err(|(_, error)| wrong(error))?;
        let (channels, bits) = (usize::from(spec.channels), usize::from(spec.bits_per_sample));
        let rate = usize::try_from(spec.sample_rate).map_err(wrong)?;
        let mut stream = Stream::new(rate, channels, bits).map_err(wrong)?;
        let block_size = config.block_size;
        stream.stream_info_mut().set_block_sizes(block_size, block_size).map_err(wrong)?;
        let block = FrameBuf::with_size(channels, block_size).map_err(wrong)?;
        Ok(Self { config, stream, channels, block, seen: Context::new(bits, channels) })
    }

    fn samples_a_block(&self) -> usize {
        self.config.block_size * self.channels
    }

    fn frame(&mut self, samples: &[i32]) -> io::Result<Vec<u8>> {
        if !samples.len().is_multiple_of(self.channels) {
            return Err(wrong("it ends between the channels of a sample"));
        }
        self.block.fill_interleaved(samples).map_err(wrong)?;
        self.seen.fill_interleaved(samples).map_err(wrong)?;
        let number = self.seen.current_frame_number().unwrap_or_default();
        let info = self.stream.stream_info();
        let frame = flacenc::encode_fixed_size_frame(&self.config, &self.block, number, info);
        let frame = frame.map_err(wrong)?;
        let (size, info) = (frame.count_bits() / 8, self.stream.stream_info_mut());
        let sizes = match number {
            0 => (size, size),
            _ => (info.min_frame_size().min(size), info.max_frame_size().max(size)),
        };
        info.set_frame_sizes(sizes.0, sizes.1).map_err(wrong)?;
        bytes(&frame)
    }

    fn head(&mut self) -> io::Result<Vec<u8>> {
        let info = self.stream.stream_info_mut();
        info.set_total_samples(self.seen.total_samples());
        info.set_md5_digest(&self.seen.md5_digest());
        if self.seen.current_frame_number().is_none() {
            info.set_frame_sizes(0, 0).map_err(wrong)?;
        }
        bytes(&self.stream)
    }
}

fn bytes(part: &impl BitRepr) -> io::Result<Vec<u8>> {
    let mut bytes = ByteSink::new();
    part.write(&mut bytes).map_err(wrong)?;
    Ok(bytes.into_inner())
}
