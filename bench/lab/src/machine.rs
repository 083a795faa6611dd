//! The description of the machine, and the date, for the captions of reports.

use std::fs::read_to_string;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Processors, memory, kernel and the file system under `scratch`; what can't be found is left out.
pub fn describe(scratch: &Path) -> String {
    let mut parts = Vec::new();
    let count = std::thread::available_parallelism().map_or(0, usize::from);
    let info = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = field(&info, "model name").unwrap_or("processors");
    parts.push(format!("{count} x {model}"));
    let memory = read_to_string("/proc/meminfo").unwrap_or_default();
    if let Some(kib) = field(&memory, "MemTotal").and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok()) {
        parts.push(format!("{:.0} GiB", kib as f64 / 1024.0 / 1024.0));
    }
    if let Ok(release) = read_to_string("/proc/sys/kernel/osrelease") {
        parts.push(format!("Linux {}", release.trim()));
    }
    let mounts = read_to_string("/proc/self/mounts").unwrap_or_default();
    if let Some(kind) = file_system(&mounts, scratch) {
        parts.push(format!("{kind} under the data"));
    }
    parts.join(", ")
}

/// The kind of file system that holds a directory, if it can be found.
pub fn file_system_of(dir: &Path) -> Option<String> {
    let mounts = read_to_string("/proc/self/mounts").ok()?;
    file_system(&mounts, dir).map(str::to_owned)
}

/// The value of a `name : value` line.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.split_once(':').map(|(_, value)| value.trim())
}

/// The file system whose mount point is the longest prefix of the directory.
fn file_system<'a>(mounts: &'a str, dir: &Path) -> Option<&'a str> {
    let each = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (point, kind) = (words.nth(1)?, words.next()?);
        dir.starts_with(point).then_some((point.len(), kind))
    });
    each.max_by_key(|(length, _)| *length).map(|(_, kind)| kind)
}

/// Now, as `2026-11-21 05:49 UTC`.
pub fn now() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    format_utc(seconds)
}

/// Howard Hinnant, "chrono-compatible low-level date algorithms": civil_from_days.
fn format_utc(seconds: u64) -> String {
    let (days, minute) = (seconds / 86_400, seconds % 86_400 / 60);
    let from_march = days + 719_468;
    let (era, day_of_era) = (from_march / 146_097, from_march % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", minute / 60, minute % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(format_utc(0), "1970-01-01 00:00 UTC");
        assert_eq!(format_utc(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(format_utc(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(format_utc(4_102_444_740), "2099-12-31 23:59 UTC");
    }

    #[test]
    fn the_longest_mount_point_wins() {
        let mounts = "a / ext4 rw 0 0\nb /tmp tmpfs rw 0 0\nc /tmp/x xfs rw 0 0\n";
        assert_eq!(file_system(mounts, Path::new("/tmp/xy/z")), Some("tmpfs"));
        assert_eq!(file_system(mounts, Path::new("/tmp/x/z")), Some("xfs"));
        assert_eq!(file_system(mounts, Path::new("/var")), Some("ext4"));
    }
}
