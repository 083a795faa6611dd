//! The programs of the folder `examples` run to their ends.

#[path = "../../examples/cache.rs"]
mod cache;
#[path = "../../examples/counter.rs"]
mod counter;
#[path = "../../examples/job_queue.rs"]
mod job_queue;
#[cfg(feature = "server")]
#[path = "../../examples/web.rs"]
mod web;

#[test]
fn eight_threads_count_in_one_row() {
    counter::main().expect("counter");
}

#[test]
fn workers_take_different_jobs() {
    job_queue::main().expect("job_queue");
}

#[test]
fn a_value_is_computed_once() {
    cache::main().expect("cache");
}

#[cfg(feature = "server")]
#[test]
fn a_web_service_counts_its_visits() {
    web::main().expect("web");
}
