//! Storage on a simulated disk whose power is cut, that fails, fills up, loses files or changes bytes; backups likewise.

mod backup_damage;
mod backup_sweep;
mod check;
mod crash_sweep;
mod creation;
mod flipped_bits;
mod freed_pages;
mod full_disk;
mod log_holders;
mod lost_files;
