//! Measurements of trees and embedded databases beside peers, and of Clearway's storage alone: data beyond memory, long rows, bytes a row.

mod against;
mod beyond;
mod clearway;
mod embedded;
mod engines;
mod stored;

use std::path::{Path, PathBuf};

/// A number that nothing can be told from: keys at random without a table.
fn scatter(i: u64) -> u64 {
    let mut x = i.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let dir = PathBuf::from(args.get(2).map_or("/tmp/clearway-peers", String::as_str));
    let number = |default| args.get(3).map_or(default, |number| number.parse().expect("a number"));
    match args.get(1).map(String::as_str) {
        Some("against") => {
            let page = args.get(3).filter(|page| *page != "-").map(Path::new);
            let only: Vec<usize> = args.iter().skip(4).map(|number| number.parse().expect("a number")).collect();
            against::run(&dir, page, &only);
        }
        Some("embedded") => embed(&dir, &args),
        Some("calls") => {
            let [kind, step] = [3, 4].map(|at| args.get(at).expect("a database and a step").as_str());
            let calls = args.get(5).expect("a number of calls").parse().expect("a number");
            embedded::calls(&dir, kind, step, calls);
        }
        Some("row-size") => beyond::row_size(&dir, number(300_000)),
        Some("memory") => beyond::memory(&dir, number(24)),
        Some("big-rows") => beyond::big_rows(&dir, number(1000)),
        Some("long-value") => beyond::long_value(&dir),
        _ => eprintln!(
            "usage: clearway-peers against DIR [PAGE|- [SCENARIO...]]\n       clearway-peers embedded DIR [PAGE|- [ROWS ROUNDS SECONDS [DATABASES|- [STEPS]]]]\n       clearway-peers calls DIR DATABASE point|range|load|random|commit CALLS\n       clearway-peers row-size DIR ROWS | memory DIR SECONDS | big-rows DIR ROWS_PER_SECOND | long-value DIR"
        ),
    }
    // Background loops run for ever.
    std::process::exit(0);
}

/// `embedded DIR [PAGE|- [ROWS ROUNDS SECONDS [DATABASES|- [STEPS]]]]`; databases are separated by
/// semicolons (their names have commas), steps by commas.
fn embed(dir: &Path, args: &[String]) {
    let number = |at: usize, default: f64| args.get(at).map_or(default, |text| text.parse().expect("a number"));
    let list = |at: usize, by: char| {
        let text = args.get(at).filter(|text| *text != "-");
        text.map_or_else(Vec::new, |text| text.split(by).map(str::to_owned).collect())
    };
    embedded::run(&embedded::Run {
        dir,
        page: args.get(3).filter(|page| *page != "-").map(Path::new),
        rows: number(4, 200_000.0) as i64,
        rounds: number(5, 3.0) as usize,
        time: std::time::Duration::from_secs_f64(number(6, 2.0)),
        only: list(7, ';'),
        steps: list(8, ','),
    });
}
