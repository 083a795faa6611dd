//! A changed byte anywhere in what backups and the archive keep is found; this test takes samples, `BACKUP_DAMAGE=all` every byte.

use clearway_tests::crash::damage::Kept;

/// Which bytes of the bodies of objects are changed.
fn step() -> usize {
    match std::env::var("BACKUP_DAMAGE").as_deref() {
        Ok("all") => 1,
        _ => 61,
    }
}

#[test]
fn a_flipped_bit_in_any_object_of_a_repository_is_found_by_verify() {
    let kept = Kept::new(1).expect("without damage");
    kept.has_it_all().expect("each kind of object");
    let looked = kept.repository_flips(step()).unwrap_or_else(|missed| panic!("{missed}"));
    eprintln!("{looked} changes in a repository, {} bytes with the file", kept.bytes());
}

#[test]
fn a_flipped_bit_in_a_backup_in_one_file_is_found() {
    let kept = Kept::new(2).expect("without damage");
    let looked = kept.file_flips(step()).unwrap_or_else(|missed| panic!("{missed}"));
    eprintln!("{looked} changes in a file");
}
