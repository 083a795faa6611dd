//! The engine through its public face: on files in memory with threads, and on a simulated disk with crashes.

mod it {
    pub mod basics;
    pub mod bulk_build;
    pub mod bulk_change;
    pub mod bulk_load;
    pub mod indexes;
    pub mod many_tables;
    pub mod space;
    pub mod spilled;
    pub mod statistics;
    pub mod support;
    pub mod temporary;
}
