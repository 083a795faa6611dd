//! Tests of the executor.

use super::*;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The order in which three tasks of four steps run.
fn trace(seed: u64) -> Vec<u32> {
    let log = Arc::new(Mutex::new(Vec::new()));
    let sim = Sim::new(seed);
    for number in 0..3 {
        let log = log.clone();
        sim.spawn(&format!("task {number}"), async move {
            for _ in 0..4 {
                log.lock().expect("not poisoned").push(number);
                yield_now().await;
            }
        });
    }
    sim.run().expect("all end");
    Arc::try_unwrap(log).expect("tasks are gone").into_inner().expect("not poisoned")
}

#[test]
fn a_seed_gives_one_schedule_and_other_seeds_others() {
    let traces: std::collections::BTreeSet<_> = (0..20).map(trace).collect();
    assert!(traces.len() > 15, "only {} schedules", traces.len());
    assert_eq!(trace(5), trace(5), "SIM-1");
}

#[test]
fn the_clock_moves_by_sleeping_and_computing_only() {
    let sim = Sim::new(1);
    let slept = sim.block_on(async {
        yield_now().await;
        assert_eq!(now_ns(), Some(0));
        sleep(Duration::from_millis(5)).await;
        advance(7);
        now_ns()
    });
    assert_eq!(slept, Ok(Some(5_000_007)));
}

#[test]
fn sleepers_wake_in_the_order_of_time_whatever_the_seed() {
    for seed in 0..50 {
        let sim = Sim::new(seed);
        let log = Arc::new(Mutex::new(Vec::new()));
        for ms in [30, 10, 20] {
            let log = log.clone();
            sim.spawn("sleeper", async move {
                sleep(Duration::from_millis(ms)).await;
                log.lock().expect("not poisoned").push((ms, now_ns()));
            });
        }
        sim.run().expect("all end");
        let expected = [10, 20, 30].map(|ms| (ms, Some(ms * 1_000_000)));
        assert_eq!(*log.lock().expect("not poisoned"), expected, "SIM-2, seed {seed}");
    }
}

#[test]
fn waiting_for_nothing_is_a_deadlock_with_names() {
    let sim = Sim::new(1);
    let stop = sim.block_on(std::future::pending::<()>());
    assert_eq!(stop, Err(Stop::Deadlock(vec!["main".to_owned()])));
}

#[test]
fn a_dropped_sleep_leaves_no_timer_behind() {
    let sim = Sim::new(1);
    sim.block_on(async {
        let mut long = Box::pin(sleep(Duration::from_secs(3600)));
        std::future::poll_fn(|cx| {
            assert!(long.as_mut().poll(cx).is_pending());
            std::task::Poll::Ready(())
        })
        .await;
    })
    .expect("ends");
    sim.run().expect("nothing is left");
    assert_eq!(sim.now_ns(), 0);
}

/// Says when it is dropped.
struct Dropped(Arc<Mutex<u32>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        *self.0.lock().expect("not poisoned") += 1;
    }
}

#[test]
fn a_crash_drops_every_task_and_polls_none() {
    let drops = Arc::new(Mutex::new(0));
    let sim = Sim::new(3);
    for _ in 0..4 {
        let guard = Dropped(drops.clone());
        sim.spawn("bystander", async move {
            let _guard = guard;
            sleep(Duration::from_secs(1)).await;
            unreachable!("the world had stopped");
        });
    }
    let crashed = sim.block_on(async {
        crash();
        yield_now().await;
        unreachable!("the world had stopped");
    });
    assert_eq!(crashed, Err::<(), _>(Stop::Crashed));
    assert_eq!(*drops.lock().expect("not poisoned"), 4);
}

#[test]
fn deferred_work_ends_between_the_steps_of_tasks() {
    // Over the seeds, an I/O of one task ends before, between and after the ten steps of another.
    let mut ends = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let sim = Sim::new(seed);
        let steps = Arc::new(Mutex::new((0, None)));
        let for_io = steps.clone();
        sim.spawn("io", async move {
            defer(100, move || {
                let mut steps = for_io.lock().expect("not poisoned");
                steps.1 = Some(steps.0);
            });
        });
        let for_task = steps.clone();
        sim.spawn("steps", async move {
            for _ in 0..10 {
                for_task.lock().expect("not poisoned").0 += 1;
                yield_now().await;
            }
            sleep(Duration::from_millis(1)).await;
        });
        sim.run().expect("ends");
        ends.extend(steps.lock().expect("not poisoned").1);
    }
    assert!(ends.len() >= 6, "{ends:?}");
}

#[test]
fn a_livelock_meets_the_limit() {
    let sim = Sim::with_options(1, SimOptions { steps_max: 1000 });
    let stop = sim.block_on(async {
        loop {
            yield_now().await;
        }
    });
    assert_eq!(stop, Err::<(), _>(Stop::StepLimit));
}

#[test]
fn tasks_start_tasks_and_wait_for_them() {
    let sim = Sim::new(9);
    let sum = sim.block_on(async {
        let children: Vec<_> = (1..=10)
            .map(|number| {
                spawn("child", async move {
                    sleep(Duration::from_micros(number)).await;
                    number
                })
            })
            .collect();
        let mut sum = 0;
        for child in children {
            sum += child.await;
        }
        sum
    });
    assert_eq!(sum, Ok(55));
}
