//! Huge pages: asks the system to back a large array by pages of 2 MiB instead of 4 KiB (Linux's transparent huge pages).
//!
//! A processor's translation buffer (TLB) has the physical addresses of some thousand pages. A page cache of gigabytes has many more pages of 4 KiB
//! than that, so that nearly each node of a tree that a look-up reads costs a second access to memory, for the address of its page
//! (docs/measured/huge-pages.md).
//!
//! # Invariants
//! - HUG-1: the system is asked about memory within one borrowed array alone, and what it is asked for changes no byte of it.
#![allow(unsafe_code)]

use crate::vfs::system_text;
use rustix::mm::{Advice, madvise};
use std::ffi::c_void;

/// Bytes of a huge page, and what it begins at a multiple of.
const HUGE_BYTES: usize = 2 << 20;
/// Whether and when the system gives such pages; the choice that is in force has brackets.
const GIVEN: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// What the setting `huge_pages` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugePages {
    /// The system is not asked for them.
    Off,
    /// The system is asked and may refuse.
    Try,
    /// Without them the server does not start.
    On,
}

impl HugePages {
    /// The value of this name.
    pub fn named(name: &str) -> Option<HugePages> {
        Some(match name {
            "off" => HugePages::Off,
            "try" => HugePages::Try,
            "on" => HugePages::On,
            _ => return None,
        })
    }
}

/// Whether the system gives huge pages to a program that asks for them.
pub fn are_huge_pages_given() -> bool {
    system_text(GIVEN).is_some_and(|choices| !choices.contains("[never]"))
}

/// Asks for huge pages for the part of an array that consists of whole ones. The array should not have been touched yet: memory that the system has
/// given already stays as it is for some time. Where the system gives no huge pages nothing changes.
pub fn ask_for_huge_pages<T>(array: &mut [T]) {
    let bytes = array.as_mut_ptr_range();
    let begin = (bytes.start as usize).next_multiple_of(HUGE_BYTES);
    let end = bytes.end as usize / HUGE_BYTES * HUGE_BYTES;
    if begin < end {
        // SAFETY: HUG-1: the range lies within the array, and this advice leaves what memory has as it is.
        // An error says that the system has no such pages.
        let _ = unsafe { madvise(begin as *mut c_void, end - begin, Advice::LinuxHugepage) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the process has asked for huge pages at this address, by what the system says of its memory.
    fn is_asked_for(address: usize) -> bool {
        let text = system_text("/proc/self/smaps").unwrap_or_default();
        let mut lines = text.lines();
        let is_here = |line: &str| {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let number = |hex| usize::from_str_radix(hex, 16).unwrap_or(0);
            range.is_some_and(|(begin, end)| (number(begin)..number(end)).contains(&address))
        };
        let found = lines.by_ref().any(is_here);
        let flags = lines.find(|line| line.starts_with("VmFlags:"));
        found && flags.is_some_and(|flags| flags.split(' ').any(|flag| flag == "hg"))
    }

    #[test]
    fn huge_pages_are_asked_for_and_the_array_keeps_its_content() {
        let mut array = vec![0_u64; (64 << 20) / 8];
        let middle = &raw const array[array.len() / 2] as usize;
        assert!(!is_asked_for(middle));
        ask_for_huge_pages(&mut array);
        // A kernel that was built without huge pages has no file that says so.
        assert_eq!(is_asked_for(middle), system_text(GIVEN).is_some());
        array.fill(1);
        assert_eq!(array.iter().sum::<u64>(), array.len() as u64);
    }

    #[test]
    fn a_small_array_is_left_alone() {
        ask_for_huge_pages(&mut [0_u8; 100]);
        ask_for_huge_pages::<u8>(&mut []);
    }
}
