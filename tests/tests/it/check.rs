//! The check of a database that no process has open: it finds damage, names it, and changes nothing.

use clearway_base::testkit::{Rng, Sim};
use clearway_base::vfs::{FileKind, IoBuf, OpenHow, Vfs};
use clearway_storage::buffer::PAGE_BYTES;
use clearway_storage::buffer::page::{PageBytes, checksum};
use clearway_storage::check::{Checked, check};
use clearway_storage::error::StorageError;
use clearway_tests::crash::flips;
use clearway_tests::crash::sweep::{DIR, Stopper, WORK, World, options};
use clearway_tests::crash::workload::Size;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn checked(world: &World) -> Result<Checked, StorageError> {
    let vfs: Arc<dyn Vfs> = Arc::new(world.disk.clone());
    let looked = Sim::new(1).block_on(async move { check(vfs, Path::new(DIR), &options()).await });
    looked.expect("nothing stops it").map(|(checked, _)| checked)
}

fn contents(world: &World) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = flips::files(&world.disk).expect("the files of a database");
    let read = files.into_iter().map(|(path, len)| {
        let file = world.disk.open(&path, OpenHow::read_only(FileKind::Other)).wait().expect("open");
        let bytes = file.read_at(0, IoBuf::with_capacity(len as usize), len as usize).wait().expect("read").to_vec();
        (path, bytes)
    });
    read.collect()
}

#[test]
fn a_sound_database_is_found_sound_and_not_changed() {
    clearway_base::for_each_seed!(4, |seed| {
        let mut crashes = Rng::new(seed);
        for stopper in
            [Stopper::None, Stopper::Power(200 + crashes.below(600)), Stopper::Process(1 + crashes.below(900))]
        {
            let mut world = World::new(seed, Size::default());
            let stopped = world.live(WORK, stopper).expect("undisturbed");
            let before = contents(&world);
            match checked(&world) {
                Ok(checked) => {
                    assert!(checked.damage.is_empty(), "{stopper:?}: {:?}", checked.damage);
                    assert!(checked.closed || stopped, "{stopper:?}");
                    assert!(!checked.closed || checked.trees.len() > 1, "{stopper:?}: {checked:?}");
                }
                // It was stopped before there was a database.
                Err(StorageError::Invalid(_)) => assert!(stopped, "{stopper:?}"),
                Err(err) => panic!("{stopper:?}: {err}"),
            }
            // CHK-1
            assert!(contents(&world) == before, "{stopper:?}: the check changed a file");
        }
    });
}

#[test]
fn a_flipped_bit_in_any_page_or_record_is_found_and_named() {
    let seed = 3;
    let mut world = World::new(seed, Size::default());
    world.live(WORK, Stopper::None).expect("undisturbed");
    let world = world.fork();
    let mut rng = Rng::new(seed);
    let mut named = 0;
    for (path, len) in flips::files(&world.disk).expect("the files of a database") {
        let in_data = path.extension().is_some_and(|extension| extension == "dat");
        for _ in 0..12 {
            let copy = world.fork();
            let offset = rng.below(len);
            copy.disk.flip_bit(&path, offset, rng.below(8) as u8).expect("a byte of the file");
            let place = format!("offset {offset} of {}", path.display());
            match checked(&copy) {
                // A newer version, an unknown mark.
                Err(StorageError::Corruption(_)) => named += 1,
                Err(err) => panic!("{place}: {err}"),
                Ok(checked) => {
                    let page = offset / 8192;
                    let found = checked
                        .damage
                        .iter()
                        .any(|damage| !in_data || damage.page.is_some_and(|found| u64::from(found.0) % 64 == page));
                    assert!(found || checked.damage.is_empty(), "{place}: {:?}", checked.damage);
                    named += u64::from(found);
                }
            }
        }
    }
    assert!(named > 20, "only {named} flips were named");
}

/// Changes one bit of the first file's bitmap, with a checksum that is right again.
fn change_bitmap(world: &World, bit: impl Fn(&[u8]) -> usize) -> usize {
    let path = Path::new(DIR).join("data/000000.dat");
    let file = world.disk.open(&path, OpenHow::existing(FileKind::Data)).wait().expect("open");
    let bytes = file.read_at(0, IoBuf::with_capacity(PAGE_BYTES), PAGE_BYTES).wait().expect("read");
    let mut page: PageBytes = bytes[..].try_into().expect("a page");
    let bit = bit(&page[4096..]);
    page[4096 + bit / 8] ^= 1 << (bit % 8);
    let sum = checksum(&page).to_le_bytes();
    page[..4].copy_from_slice(&sum);
    file.write_at(0, IoBuf::from_slice(&page)).wait().expect("write");
    bit
}

#[test]
fn pages_that_are_lost_or_not_allocated_are_told() {
    let mut world = World::new(5, Size::default());
    world.live(WORK, Stopper::None).expect("undisturbed");
    let is_set = |bits: &[u8], bit: usize| bits[bit / 8] >> (bit % 8) & 1 == 1;
    // CHK-2, both ways. Page 1 is the directory.
    let lost = world.fork();
    let page = change_bitmap(&lost, |bits| (2..64).find(|bit| !is_set(bits, *bit)).expect("a free page"));
    let damage = checked(&lost).expect("it can be looked at").damage;
    assert!(
        damage.iter().any(|it| it.found.contains("lost") && it.page.is_some_and(|at| at.0 == page as u32)),
        "{damage:?}"
    );
    let freed = world.fork();
    change_bitmap(&freed, |bits| (2..64).rev().find(|bit| is_set(bits, *bit)).expect("a page in use"));
    let damage = checked(&freed).expect("it can be looked at").damage;
    assert!(!damage.is_empty(), "a page in use was made free, and nothing is said");
}
