//! What it costs to take a row of 112 bytes out of a page, and to search its slots, by access.

use crate::Random;
use crate::page::{CellBuf, Page};
use std::hint::black_box;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

const CELL: usize = 112;
const PAGES: usize = 64;
const READS: usize = 4_000_000;

fn per_read(mut read: impl FnMut(usize, usize, &mut [u8; 128])) -> f64 {
    let mut results: Vec<f64> = (0..5)
        .map(|_| {
            let (mut random, mut out) = (Random(3), [0u8; 128]);
            let start = Instant::now();
            for _ in 0..READS {
                let pick = random.next();
                read(
                    pick as usize % PAGES,
                    (pick >> 32) as usize % 60 * CELL + 1024,
                    &mut out,
                );
                black_box(&out);
            }
            start.elapsed().as_nanos() as f64 / READS as f64
        })
        .collect();
    results.sort_by(f64::total_cmp);
    results[2]
}

pub fn run() {
    let plain: Vec<[u64; 1024]> = (0..PAGES as u64)
        .map(|p| std::array::from_fn(|i| p ^ i as u64))
        .collect();
    let words: Vec<[AtomicU64; 1024]> = plain.iter().map(|p| p.map(AtomicU64::new)).collect();
    let bytes: Vec<Vec<AtomicU8>> = plain
        .iter()
        .map(|p| {
            p.iter()
                .flat_map(|w| w.to_le_bytes())
                .map(AtomicU8::new)
                .collect()
        })
        .collect();
    let nothing = per_read(|page, at, out| out[0] = (page ^ at) as u8);
    println!(
        "# ns for a copy of {CELL} bytes in cache, less {nothing:.2} for the loop; medians of 5"
    );
    let show = |name: &str, ns: f64| println!("copy | {name:<44} | {:.2}", ns - nothing);
    show(
        "plain memcpy (a data race under a writer)",
        per_read(|page, at, out| {
            let source: &[u64] = &plain[page][at / 8..at / 8 + CELL / 8];
            for (word, chunk) in source.iter().zip(out.as_chunks_mut::<8>().0) {
                *chunk = word.to_le_bytes();
            }
        }),
    );
    show(
        "volatile u64 (a data race all the same)",
        per_read(|page, at, out| {
            let source: &[u64] = &plain[page][at / 8..at / 8 + CELL / 8];
            for (word, chunk) in source.iter().zip(out.as_chunks_mut::<8>().0) {
                // SAFETY: a valid reference; volatile only keeps the compiler from merging loads.
                *chunk = unsafe { std::ptr::read_volatile(word) }.to_le_bytes();
            }
        }),
    );
    show(
        "AtomicU64 relaxed, cell begins on a word",
        per_read(|page, at, out| {
            let source = &words[page][at / 8..at / 8 + CELL / 8];
            for (word, chunk) in source.iter().zip(out.as_chunks_mut::<8>().0) {
                *chunk = word.load(Relaxed).to_le_bytes();
            }
        }),
    );
    show(
        "AtomicU64 relaxed, cell at any byte (shifts)",
        per_read(|page, at, out| {
            let (at, shift) = (at / 8, (at as u32 / 16 % 7 + 1) * 8);
            let source = &words[page][at..at + CELL / 8 + 1];
            let mut low = source[0].load(Relaxed);
            for (word, chunk) in source[1..].iter().zip(out.as_chunks_mut::<8>().0) {
                let high = word.load(Relaxed);
                *chunk = (low >> shift | high << (64 - shift)).to_le_bytes();
                low = high;
            }
        }),
    );
    show(
        "AtomicU8 relaxed",
        per_read(|page, at, out| {
            for (byte, to) in bytes[page][at..at + CELL].iter().zip(out) {
                *to = byte.load(Relaxed);
            }
        }),
    );
    searches();
}

/// The same binary search of 67 slots on atomic and on plain words.
fn searches() {
    let page = Page::new();
    page.format(0, 6);
    let mut rows = 0u64;
    while page.push(&(rows * 3 + 7).to_be_bytes(), &[1; 100]) {
        rows += 1;
    }
    let plain: Vec<u64> = (0..1024).map(|i| page.word(i)).collect();
    let header = page.header();
    let mut cell = CellBuf::new();
    let mut results = [const { Vec::new() }; 3];
    for _ in 0..5 {
        for (way, result) in results.iter_mut().enumerate() {
            let mut random = Random(9);
            let start = Instant::now();
            for _ in 0..READS {
                let key = (random.next() % rows * 3 + 7).to_be_bytes();
                let at = match way {
                    0 => plain_find(&plain, header.count, &key),
                    1 => page.find(header, &key).0,
                    _ => {
                        let at = page.find(header, &key).0;
                        page.copy(page.slot(at), &mut cell);
                        at
                    }
                };
                black_box((at, &cell));
            }
            result.push(start.elapsed().as_nanos() as f64 / READS as f64);
        }
    }
    for (name, mut result) in [
        "plain words",
        "atomic words",
        "atomic words, and copy of the cell",
    ]
    .iter()
    .zip(results)
    {
        result.sort_by(f64::total_cmp);
        println!("search of {rows} slots | {name:<36} | {:.2}", result[2]);
    }
}

fn plain_find(words: &[u64], count: usize, key: &[u8; 8]) -> usize {
    let words: &[u64; 1024] = words.try_into().expect("a page");
    let want = crate::page::head(key, 6);
    let (mut low, mut len) = (0, count);
    while len > 0 {
        let half = len / 2;
        let below = ((words[(8 + low + half) & 1023] >> 32) as u32) < want;
        low = if below { low + half + 1 } else { low };
        len = if below { len - half - 1 } else { half };
    }
    let cell = (words[(8 + low) & 1023] >> 16) as usize & 1023;
    let found = words[(cell + 1) & 1023].to_le_bytes();
    if found[..2] == key[6..] {
        low
    } else {
        low.saturating_sub(1)
    }
}
