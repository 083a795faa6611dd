//! The kernel's own figures for the calling thread: its processor time and its time in the scheduler's run queue.

use std::cell::OnceCell;

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC in nanoseconds.
pub(super) fn monotonic_ns() -> u64 {
    read_clock(ClockId::Monotonic)
}

/// The wall clock in microseconds since 1970-01-01 00:00 UTC.
pub(super) fn wall_us() -> i64 {
    let t = clock_gettime(ClockId::Realtime);
    t.tv_sec * 1_000_000 + t.tv_nsec / 1_000
}

/// Processor time that the calling thread has used, in nanoseconds. A system call of some 100 ns.
pub(super) fn thread_cpu_ns() -> u64 {
    read_clock(ClockId::ThreadCPUTime)
}

/// Processor time that all threads of the process have used, in nanoseconds.
pub(super) fn process_cpu_ns() -> u64 {
    read_clock(ClockId::ProcessCPUTime)
}

fn read_clock(clock: ClockId) -> u64 {
    let t = clock_gettime(clock);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

thread_local! {
    static SCHEDSTAT: OnceCell<Option<OwnedFd>> = const { OnceCell::new() };
}

/// Time that the calling thread has spent ready to run but without a processor, in nanoseconds: the second figure of
/// /proc/thread-self/schedstat. None where the kernel does not keep it. The file stays open for the thread's life.
pub(super) fn run_delay_ns() -> Option<u64> {
    SCHEDSTAT
        .try_with(|file| {
            let file = file.get_or_init(|| {
                rustix::fs::open("/proc/thread-self/schedstat", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()
            });
            let mut text = [0u8; 64];
            let length = rustix::io::pread(file.as_ref()?, &mut text[..], 0).ok()?;
            second_number(text.get(..length)?)
        })
        .ok()?
}

/// By its bytes: this is read for each step that has lost its processor, and a general parser took 300 instructions.
fn second_number(text: &[u8]) -> Option<u64> {
    let from = text.iter().position(|byte| *byte == b' ')? + 1;
    let digits = text[from..].iter().map_while(|byte| byte.is_ascii_digit().then(|| u64::from(byte - b'0')));
    let (count, number) =
        digits.fold((0, 0u64), |(count, number), digit| (count + 1, number.wrapping_mul(10).wrapping_add(digit)));
    (1..=19).contains(&count).then_some(number)
}

/// The clock that the kernel trusts ("tsc", "kvm-clock", ...), where it says so.
pub(super) fn clock_source() -> Option<String> {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = [0u8; 64];
    let length = rustix::io::pread(&file, &mut text[..], 0).ok()?;
    Some(std::str::from_utf8(text.get(..length)?).ok()?.trim().to_string())
}

/// A plain pause of the calling thread, used before the books exist (calibration).
pub(super) fn pause_ns(ns: u64) {
    std::thread::sleep(std::time::Duration::from_nanos(ns));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedstat_is_read_as_the_kernel_writes_it() {
        assert_eq!(second_number(b"93279 59829 2\n"), Some(59_829));
        assert_eq!(second_number(b"93279"), None);
        assert_eq!(second_number(b"1 x 2"), None);
        assert_eq!(second_number(b"1 9999999999999999999 2"), Some(9_999_999_999_999_999_999));
        assert_eq!(second_number(b"1 18446744073709551616"), None);
    }
}
