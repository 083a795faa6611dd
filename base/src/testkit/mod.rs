//! Simulated clock, random schedules from a seed, data-driven test runner.
