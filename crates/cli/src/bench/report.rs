//! Owns the line that a workload prints, for programs and for people.

use serde::{Deserialize, Serialize};

use super::workload::{Sample, Workload};

/// What was measured, by whom.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    pub peer: String,
    pub engine: String,
    pub workload: String,
    pub n: usize,
    pub seconds: f64,
    pub rate: f64,
    pub p50_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    /// Resident beyond payloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_share: Option<f64>,
}

impl Line {
    pub fn of(engine: &str, workload: Workload, sample: &Sample) -> Self {
        Self {
            peer: "leasehold".to_owned(),
            engine: engine.to_owned(),
            workload: format!("{}{}", workload.name(), sample.part),
            n: sample.jobs,
            seconds: rounded(sample.elapsed.as_secs_f64()),
            rate: rounded(sample.rate()),
            p50_ms: sample.percentile(50).map(rounded),
            p99_ms: sample.percentile(99).map(rounded),
            bytes: sample.bytes,
            least_share: sample.least_share.map(rounded),
        }
    }

    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub fn to_text(&self) -> String {
        let ms = |number: Option<f64>| number.map_or("-".to_owned(), |ms| format!("{ms:.3} ms"));
        let mut text = format!(
            "{:<8} {:<14} {:>7} jobs {:>9.3} s {:>10.0} /s   p50 {:>11}   p99 {:>11}",
            self.engine,
            self.workload,
            self.n,
            self.seconds,
            self.rate,
            ms(self.p50_ms),
            ms(self.p99_ms)
        );
        if let Some(bytes) = self.bytes {
            text += &format!("   {} KiB beyond payloads", bytes / 1_024);
        }
        if let Some(share) = self.least_share {
            text += &format!("   least share {share:.2}");
        }
        text
    }
}

/// Three places are enough.
pub fn rounded(number: f64) -> f64 {
    (number * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Percentiles are values that were measured, by nearest rank.
    #[test]
    fn percentiles_by_nearest_rank() {
        let each = (1..=200).rev().map(f64::from).collect();
        let sample = Sample::new(200, Duration::from_secs(2), each);
        assert_eq!(sample.percentile(50), Some(100.0));
        assert_eq!(sample.percentile(99), Some(198.0));
        assert_eq!(sample.rate(), 100.0);
        let one = Sample::new(1, Duration::from_secs(1), vec![-2.5]);
        assert_eq!((one.percentile(50), one.percentile(99)), (Some(-2.5), Some(-2.5)));
        assert_eq!(Sample::new(1, Duration::ZERO, Vec::new()).percentile(50), None);
    }
}
