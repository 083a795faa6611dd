//! Tests of the simulated disk, and of what it is for: it finds a store that forgets to sync.

use super::*;
use crate::for_each_seed;
use crate::testkit::{Sim, Stop};
use crate::vfs::{FileKind, IoBuf, OpenHow, Vfs, VfsError};
use std::path::Path;

const CREATE: OpenHow = OpenHow::create(FileKind::Other);

fn read_all(disk: &SimDisk, path: &str) -> Result<Vec<u8>, VfsError> {
    let file = disk.open(Path::new(path), OpenHow::existing(FileKind::Other)).wait()?;
    let len = file.len().wait()? as usize;
    Ok(file.read_at(0, IoBuf::with_capacity(len), len).wait()?.to_vec())
}

/// A store of one file that is replaced as a whole: write aside, sync, rename, sync the directory.
async fn save(disk: &SimDisk, text: &str, forget_dir: bool) -> Result<(), VfsError> {
    let (dir, aside, name) = (Path::new("/db"), Path::new("/db/aside"), Path::new("/db/store"));
    let file = disk.open(aside, CREATE).await?;
    file.set_len(0).await?;
    file.write_at(0, IoBuf::from_slice(text.as_bytes())).await?;
    file.sync_data().await?;
    disk.rename(aside, name).await?;
    if !forget_dir {
        disk.sync_dir(dir).await?;
    }
    Ok(())
}

/// Saves twice, crashes at a random point, and says what was acknowledged and what is there.
fn crash_a_save(seed: u64, forget_dir: bool) -> (Option<&'static str>, Option<String>) {
    let disk = SimDisk::new(seed);
    disk.create_dir(Path::new("/db")).wait().expect("create");
    disk.sync_dir(Path::new("/")).wait().expect("sync");
    let acknowledged = Arc::new(Mutex::new(None));
    // Both saves pass about 22 points; some seeds crash after the end.
    disk.crash_at(disk.points() + 1 + Rng::new(seed).below(26));
    let sim = Sim::new(seed);
    let run = sim.block_on({
        let (disk, acknowledged) = (disk.clone(), acknowledged.clone());
        async move {
            for text in ["first", "second"] {
                save(&disk, text, forget_dir).await.expect("no fault is planted");
                *acknowledged.lock().expect("not poisoned") = Some(text);
            }
        }
    });
    assert!(matches!(run, Ok(()) | Err(Stop::Crashed)), "{run:?}");
    let found = read_all(&disk.restart(), "/db/store").ok();
    let acknowledged = *acknowledged.lock().expect("not poisoned");
    (acknowledged, found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// What is there is what was acknowledged last or something that was being saved after it.
fn check_saved(acknowledged: Option<&str>, found: Option<&str>) {
    let allowed: &[Option<&str>] = match acknowledged {
        None => &[None, Some("first")],
        Some("first") => &[Some("first"), Some("second")],
        Some(_) => &[Some("second")],
    };
    assert!(allowed.contains(&found), "acknowledged {acknowledged:?}, found {found:?}");
}

#[test]
fn a_careful_store_survives_every_crash() {
    for_each_seed!(300, |seed| {
        let (acknowledged, found) = crash_a_save(seed, false);
        check_saved(acknowledged, found.as_deref());
    });
}

/// The planted bug: the directory is never synced (VFS-3). Fails by design, so it is not run by itself.
#[test]
#[ignore = "fails by design; a_planted_forgotten_directory_sync_is_found_and_replays runs it"]
fn planted_forgotten_directory_sync() {
    for_each_seed!(300, |seed| {
        let (acknowledged, found) = crash_a_save(seed, true);
        check_saved(acknowledged, found.as_deref());
    });
}

#[test]
fn a_planted_forgotten_directory_sync_is_found_and_replays() {
    const PLANTED: &str = "vfs::sim::tests::planted_forgotten_directory_sync";
    let run = |seed: Option<&str>| {
        let mut command = std::process::Command::new(std::env::current_exe().expect("this test"));
        command.args([PLANTED, "--exact", "--include-ignored", "--nocapture"]);
        command.env_remove("CLEARWAY_SEED").env("RUST_BACKTRACE", "0");
        command.envs(seed.map(|seed| ("CLEARWAY_SEED", seed)));
        let output = command.output().expect("runs");
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let lost = |stderr: &str| {
        let line = stderr.lines().find(|line| line.starts_with("acknowledged "));
        line.map(str::to_owned)
    };
    let (passed, stderr) = run(None);
    assert!(!passed, "no seed finds the planted bug");
    let command = stderr.split("replay: ").nth(1).and_then(|rest| rest.lines().next());
    let command = command.expect("the command that replays");
    assert!(command.contains(PLANTED) && command.contains("--include-ignored"), "{command}");
    let seed = command.strip_prefix("CLEARWAY_SEED=").and_then(|rest| rest.split(' ').next());
    let (passed, again) = run(Some(seed.expect("a seed")));
    assert!(!passed, "{command} does not fail");
    assert_eq!(lost(&stderr), lost(&again), "the replay shows the same loss");
    assert!(lost(&again).is_some_and(|line| line.ends_with("found None")), "{again}");
}

#[test]
fn every_crash_point_of_a_save_can_be_visited() {
    let points = {
        let disk = SimDisk::new(1);
        disk.create_dir(Path::new("/db")).wait().expect("create");
        let sim = Sim::new(1);
        let saver = disk.clone();
        sim.block_on(async move { save(&saver, "x", false).await }).expect("ends").expect("saves");
        disk.points()
    };
    assert_eq!(points, 2 + 2 * 6, "create_dir, and six operations of save, each begin and end");
    for point in 3..=points {
        let disk = SimDisk::new(1);
        disk.create_dir(Path::new("/db")).wait().expect("create");
        disk.crash_at(point);
        let sim = Sim::new(1);
        let saver = disk.clone();
        let run = sim.block_on(async move { save(&saver, "x", false).await });
        assert!(matches!(run, Err(Stop::Crashed)), "point {point}: {run:?}");
        assert_eq!(disk.points(), point, "DISK-1");
    }
}

#[test]
fn unsynced_writes_are_lost_kept_and_torn_at_sectors() {
    let (mut lost, mut kept, mut torn) = (0, 0, 0);
    for_each_seed!(200, |seed| {
        let disk = SimDisk::new(seed);
        let file = disk.open(Path::new("/f"), CREATE).wait().expect("open");
        file.write_at(0, IoBuf::from_slice(&[1; 2048])).wait().expect("write");
        file.sync_data().wait().expect("sync");
        disk.sync_dir(Path::new("/")).wait().expect("sync");
        file.write_at(0, IoBuf::from_slice(&[2; 2048])).wait().expect("write");
        let found = read_all(&disk.restart(), "/f").expect("its name was synced");
        assert_eq!(found.len(), 2048);
        for sector in found.chunks(SECTOR) {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "torn inside a sector");
        }
        let new = found.iter().filter(|byte| **byte == 2).count();
        match new {
            0 => lost += 1,
            2048 => kept += 1,
            _ => torn += 1,
        }
    });
    if std::env::var_os("CLEARWAY_SEED").is_none() {
        assert!(lost > 10 && kept > 10 && torn > 10, "lost {lost}, kept {kept}, torn {torn}");
    }
}

#[test]
fn synced_bytes_and_names_survive_whatever_is_pending() {
    for_each_seed!(100, |seed| {
        let disk = SimDisk::new(seed);
        let file = disk.open(Path::new("/f"), CREATE).wait().expect("open");
        file.write_at(0, IoBuf::from_slice(b"safe")).wait().expect("write");
        file.sync_data().wait().expect("sync");
        disk.sync_dir(Path::new("/")).wait().expect("sync");
        file.write_at(4, IoBuf::from_slice(b"loose")).wait().expect("write");
        disk.open(Path::new("/g"), CREATE).wait().expect("open");
        let found = read_all(&disk.restart(), "/f").expect("synced");
        assert_eq!(&found[..4], b"safe", "VFS-2");
    });
}

#[test]
fn a_write_that_ends_during_a_sync_is_not_covered_by_it() {
    // The sync begins first, the write ends first: only a schedule in which both are in flight shows it.
    let mut lost_after_sync = false;
    for_each_seed!(200, |seed| {
        let disk = SimDisk::new(seed);
        let file = disk.open(Path::new("/f"), CREATE).wait().expect("open");
        disk.sync_dir(Path::new("/")).wait().expect("sync");
        let sim = Sim::new(seed);
        let (first, second) = (file.clone(), file);
        sim.spawn("sync", async move { first.sync_data().await.expect("sync") });
        sim.spawn("write", async move {
            second.write_at(0, IoBuf::from_slice(b"late")).await.expect("write");
        });
        sim.run().expect("both end");
        lost_after_sync |= read_all(&disk.restart(), "/f").expect("synced").is_empty();
    });
    assert!(lost_after_sync || std::env::var_os("CLEARWAY_SEED").is_some());
}

#[test]
fn a_failed_sync_is_not_mended_by_the_next_one() {
    let mut lost = 0;
    for_each_seed!(50, |seed| {
        let disk = SimDisk::new(seed);
        let file = disk.open(Path::new("/f"), CREATE).wait().expect("open");
        disk.sync_dir(Path::new("/")).wait().expect("sync");
        file.write_at(0, IoBuf::from_slice(b"gone?")).wait().expect("write");
        disk.plant(Fault::on(OpKind::SyncData, io::ErrorKind::Other));
        file.sync_data().wait().expect_err("planted");
        file.sync_data().wait().expect("the second sync succeeds, and means nothing");
        assert_eq!(read_all(&disk, "/f").expect("visible"), b"gone?");
        lost += u32::from(read_all(&disk.restart(), "/f").expect("named") != b"gone?");
    });
    assert!(lost > 5 || std::env::var_os("CLEARWAY_SEED").is_some(), "DISK-3: lost {lost} of 50");
}

#[test]
fn faults_hit_the_nth_call_of_their_kind_and_path() {
    let disk = SimDisk::new(1);
    let open = |name: &str| disk.open(Path::new(name), CREATE).wait().expect("open");
    let (wal, data) = (open("/wal"), open("/data"));
    disk.plant(Fault::on(OpKind::Write, io::ErrorKind::Other).path("wal").nth(2).times(2));
    let write = |file: &Arc<dyn crate::vfs::VfsFile>| file.write_at(0, IoBuf::from_slice(&[0; 512])).wait().is_ok();
    let results = [write(&wal), write(&data), write(&wal), write(&data), write(&wal), write(&wal)];
    assert_eq!(results, [true, true, false, true, false, true]);
    assert_eq!(disk.calls(OpKind::Write), 6);
}

#[test]
fn a_full_disk_refuses_growth_but_not_overwriting() {
    let disk = SimDisk::new(1);
    let file = disk.open(Path::new("/f"), CREATE).wait().expect("open");
    file.preallocate(0, 4096).wait().expect("fits");
    disk.set_capacity(4096);
    file.write_at(0, IoBuf::from_slice(&[1; 4096])).wait().expect("preallocated");
    let err = file.write_at(4096, IoBuf::from_slice(&[1; 512])).wait().expect_err("full");
    assert_eq!(err.kind(), io::ErrorKind::StorageFull);
    assert_eq!((err.op, err.offset), (OpKind::Write, Some(4096)));
}

#[test]
fn flipped_bits_show_and_survive() {
    let disk = SimDisk::new(1);
    let file = disk.open(Path::new("/f"), CREATE).wait().expect("open");
    file.write_at(0, IoBuf::from_slice(&[0; 100])).wait().expect("write");
    file.sync_data().wait().expect("sync");
    disk.sync_dir(Path::new("/")).wait().expect("sync");
    disk.flip_bit(Path::new("/f"), 7, 3).expect("exists");
    assert_eq!(read_all(&disk, "/f").expect("reads")[7], 8);
    assert_eq!(read_all(&disk.restart(), "/f").expect("reads")[7], 8);
}

#[test]
fn nothing_ends_well_without_power() {
    let disk = SimDisk::new(1);
    let file = disk.open(Path::new("/f"), CREATE).wait().expect("open");
    disk.power_off();
    let err = file.sync_data().wait().expect_err("no power");
    assert!(err.is_power_off(), "DISK-4: {err}");
    assert!(disk.lock(Path::new("/lock")).is_err());
    assert!(disk.restart().lock(Path::new("/lock")).is_ok());
}

#[test]
fn removed_files_live_while_they_are_open() {
    let disk = SimDisk::new(1);
    let file = disk.open(Path::new("/f"), CREATE).wait().expect("open");
    disk.remove(Path::new("/f")).wait().expect("remove");
    disk.sync_dir(Path::new("/")).wait().expect("sync");
    file.write_at(0, IoBuf::from_slice(b"still")).wait().expect("writes");
    assert_eq!(file.len().wait().expect("len"), 5);
}

#[test]
fn a_dead_process_leaves_what_was_seen_and_the_power_takes_it() {
    let (mut kept, mut lost) = (0, 0);
    for seed in 0..40 {
        let disk = SimDisk::new(seed);
        disk.create_dir(Path::new("/db")).wait().expect("create");
        disk.sync_dir(Path::new("/")).wait().expect("sync");
        // Open, write and sync of the directory have passed six points.
        disk.die_at(disk.points() + 7);
        let run = Sim::new(seed).block_on({
            let disk = disk.clone();
            async move {
                let file = disk.open(Path::new("/db/file"), CREATE).await?;
                disk.sync_dir(Path::new("/db")).await?;
                file.write_at(0, IoBuf::from_slice(b"seen")).await?;
                file.sync_data().await
            }
        });
        assert!(matches!(run, Err(Stop::Crashed)), "{run:?}");
        assert!(disk.is_stopped() && !disk.is_off());
        disk.process_died();
        // DISK-5: the write had ended, the sync had not.
        assert_eq!(read_all(&disk, "/db/file").expect("the process died, not the machine"), b"seen", "seed {seed}");
        match read_all(&disk.restart(), "/db/file").expect("the name was synced").as_slice() {
            b"seen" => kept += 1,
            _ => lost += 1,
        }
    }
    assert!(kept > 0 && lost > 0, "{kept} kept, {lost} lost");
}
