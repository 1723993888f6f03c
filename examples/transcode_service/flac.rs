//! Owns the work itself: a WAV file becomes a FLAC file, sample for sample. Knows no storage and no jobs.

use std::io::{self, BufReader, Write};
use std::path::Path;

use flacenc::component::BitRepr;
use flacenc::error::Verify;

/// Encodes a file; runs as long as it takes, in a thread that may block.
pub(crate) fn encode(source: &Path, mut output: impl Write) -> io::Result<()> {
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let file = BufReader::new(std::fs::File::open(source)?);
    let mut wav = hound::WavReader::new(file).map_err(|error| wrong(error.to_string()))?;
    let spec = wav.spec();
    if spec.sample_format != hound::SampleFormat::Int || spec.bits_per_sample > 24 {
        return Err(wrong("the WAV file must hold integers of at most 24 bits".to_owned()));
    }
    let samples: Result<Vec<i32>, _> = wav.samples().collect();
    let samples = samples.map_err(|error| wrong(error.to_string()))?;
    let (channels, bits) = (usize::from(spec.channels), usize::from(spec.bits_per_sample));
    let rate = usize::try_from(spec.sample_rate).map_err(|error| wrong(error.to_string()))?;
    let config = flacenc::config::Encoder::default();
    let config = config.into_verified().map_err(|(_, error)| wrong(error.to_string()))?;
    let source = flacenc::source::MemSource::from_samples(&samples, channels, bits, rate);
    let stream = flacenc::encode_with_fixed_block_size(&config, source, config.block_size)
        .map_err(|error| wrong(format!("{error:?}")))?;
    let mut bytes = flacenc::bitsink::ByteSink::new();
    stream.write(&mut bytes).map_err(|error| wrong(format!("{error:?}")))?;
    output.write_all(bytes.as_slice())?;
    output.flush()
}
