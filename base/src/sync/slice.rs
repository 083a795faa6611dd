//! Asks the operating system for shorter scheduling slices for a thread.
//!
//! A thread that computes without a pause keeps its processor for a slice of about 3 ms before the kernel lets a thread run that has become
//! ready meanwhile. While every processor computes, the flusher and the clients' threads wait that long. A thread with a shorter slice
//! leaves the processor sooner and returns to it sooner: it gets the same share in smaller pieces.
#![allow(unsafe_code)]

/// Asks for slices of so many nanoseconds for the calling thread, and for the threads that it starts. Linux from version 6.12 on accepts
/// 0.1 to 100 ms; older kernels ignore the request. Returns whether the system call succeeded; a sandbox may forbid it.
#[cfg(all(target_os = "linux", not(loom)))]
pub fn ask_for_slice(slice_ns: u64) -> bool {
    // The bytes of the system's `sched_attr` in its first version.
    #[repr(C)]
    #[derive(Default)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }
    const SIZE: u32 = size_of::<Attributes>() as u32;
    /// SCHED_OTHER: the policy of threads that were given no other.
    const OTHER: u32 = 0;
    let mut attributes = Attributes::default();
    let of_this_thread = 0;
    // SAFETY: the system writes at most SIZE bytes to a structure of that size, which no other thread has.
    let told = unsafe { libc::syscall(libc::SYS_sched_getattr, of_this_thread, &raw mut attributes, SIZE, 0) };
    if told != 0 || attributes.policy != OTHER {
        return false;
    }
    attributes.size = SIZE;
    attributes.runtime_ns = slice_ns;
    // SAFETY: the system reads SIZE bytes of a structure of that size.
    unsafe { libc::syscall(libc::SYS_sched_setattr, of_this_thread, &raw const attributes, 0) == 0 }
}

/// Other systems have no such request.
#[cfg(not(all(target_os = "linux", not(loom))))]
pub fn ask_for_slice(_slice_ns: u64) -> bool {
    false
}

#[cfg(all(test, target_os = "linux", not(loom)))]
mod tests {
    use super::ask_for_slice;

    /// Linux does from 6.12 on.
    fn keeps_slices() -> bool {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
        (numbers.next(), numbers.next()) >= (Some(6), Some(12))
    }

    #[test]
    fn a_thread_says_what_it_asked_for_where_the_system_keeps_it() {
        let told = std::thread::spawn(|| {
            let heard = ask_for_slice(300_000);
            // Where the kernel has slices, the thread's own file tells.
            let shown = std::fs::read_to_string("/proc/thread-self/sched").unwrap_or_default();
            let slice = shown
                .lines()
                .filter(|_| keeps_slices())
                .find_map(|line| line.strip_prefix("se.slice")?.rsplit(' ').next()?.parse::<f64>().ok());
            (heard, slice)
        });
        let (heard, slice) = told.join().expect("the thread ends");
        assert!(heard);
        if let Some(slice) = slice {
            assert!([300_000.0, 0.3].contains(&slice), "{slice}");
        }
    }
}
