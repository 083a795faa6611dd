//! The processor's time-stamp counter: the one instruction behind the clock.
#![allow(unsafe_code)]

/// The counter's present value. Reading it does not order other instructions; a wait is long beside that blur.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn read() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and it touches no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Whether the counter ticks at one rate in every state of the processor (CPUID 8000_0007, EDX bit 8).
#[cfg(target_arch = "x86_64")]
pub(super) fn is_invariant() -> bool {
    use core::arch::x86_64::__cpuid;
    __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & (1 << 8) != 0
}

/// There is no such counter on this processor; the clock never asks for it.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn read() -> u64 {
    0
}

/// There is no such counter on this processor.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn is_invariant() -> bool {
    false
}
