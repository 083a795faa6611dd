//! EXPLAIN (BUFFERS, WAL): what a node has read and written, in PostgreSQL's words. A block is a page of 8 kB.

use clearway_base::usage::Usage;

/// Bytes of a block.
const BLOCK: u64 = 8192;

/// Found pages. A page that was read from disk is found when it is looked up again; that does not count.
fn hits(usage: &Usage) -> u64 {
    usage.pages_hit.saturating_sub(usage.pages_read)
}

/// The lines of FORMAT TEXT; what is zero is left out.
pub(super) fn lines(usage: &Usage, (buffers, wal): (bool, bool)) -> Vec<String> {
    let counts = |list: &[(&str, u64)]| -> Vec<String> {
        list.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{name}={n}")).collect()
    };
    let mut out = Vec::new();
    if buffers {
        let [read, written] = [usage.temp_read, usage.temp_written].map(|bytes| bytes.div_ceil(BLOCK));
        let groups = [
            ("shared", counts(&[("hit", hits(usage)), ("read", usage.pages_read)])),
            ("temp", counts(&[("read", read), ("written", written)])),
        ];
        let groups = groups.into_iter().filter(|(_, list)| !list.is_empty());
        let shown: Vec<String> = groups.map(|(name, list)| format!("{name} {}", list.join(" "))).collect();
        if !shown.is_empty() {
            out.push(format!("Buffers: {}", shown.join(", ")));
        }
    }
    if wal && usage.log_records > 0 {
        let list = counts(&[("records", usage.log_records), ("bytes", usage.log_bytes)]);
        out.push(format!("WAL: {}", list.join(" ")));
    }
    out
}

/// The properties of the other formats. Pages that are written later are no statement's.
pub(super) fn properties(usage: &Usage, (buffers, wal): (bool, bool)) -> Vec<(&'static str, u64)> {
    let mut out = Vec::new();
    if buffers {
        out.extend([
            ("Shared Hit Blocks", hits(usage)),
            ("Shared Read Blocks", usage.pages_read),
            ("Shared Dirtied Blocks", 0),
            ("Shared Written Blocks", 0),
            ("Local Hit Blocks", 0),
            ("Local Read Blocks", 0),
            ("Local Dirtied Blocks", 0),
            ("Local Written Blocks", 0),
            ("Temp Read Blocks", usage.temp_read.div_ceil(BLOCK)),
            ("Temp Written Blocks", usage.temp_written.div_ceil(BLOCK)),
        ]);
    }
    if wal {
        out.extend([("WAL Records", usage.log_records), ("WAL FPI", 0), ("WAL Bytes", usage.log_bytes)]);
    }
    out
}
