//! How much memory the system grants this process.

use rustix::process::{Resource, getrlimit};

use crate::vfs::system_text;

/// What is assumed where the system says nothing.
const UNKNOWN_BYTES: u64 = 4 << 30;

/// The least of the machine's memory, the limits of the control groups, and two thirds of RLIMIT_AS: addresses that
/// are set aside but not used (stacks, arenas of the allocator) count to that one.
pub fn granted_bytes() -> u64 {
    let machine = Some(rustix::system::sysinfo().totalram).filter(|bytes| *bytes > 0);
    let addresses = getrlimit(Resource::As).current.map(|bytes| bytes / 3 * 2);
    [machine, group_bytes(), addresses].into_iter().flatten().min().unwrap_or(UNKNOWN_BYTES)
}

/// The least limit of the process's control group and those above it, in either version's form.
fn group_bytes() -> Option<u64> {
    let groups = system_text("/proc/self/cgroup")?;
    let limits = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next().unwrap_or(""), parts.next().unwrap_or("/"));
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            list if list.split(',').any(|c| c == "memory") => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => return Vec::new(),
        };
        let above = std::iter::successors(Some(path.trim_end_matches('/')), |p| p.rfind('/').map(|at| &p[..at]));
        above.filter_map(|p| limit_of(&system_text(&format!("{root}{p}/{file}"))?)).collect()
    });
    limits.min()
}

/// A limit as its file has it; none: there is no limit (a word, or a figure beyond any memory).
fn limit_of(text: &str) -> Option<u64> {
    text.trim().parse::<u64>().ok().filter(|bytes| *bytes < 1 << 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_is_none_is_not_taken_for_a_figure() {
        assert_eq!(limit_of("max\n"), None);
        assert_eq!(limit_of("9223372036854771712\n"), None);
        assert_eq!(limit_of("2147483648\n"), Some(2 << 30));
        assert!(granted_bytes() >= 1 << 20, "something is granted");
    }
}
