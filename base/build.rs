//! Generates the enums `WaitEvent` and `WaitClass` from wait_events.txt.
#![allow(clippy::disallowed_methods, reason = "a build script writes its output")]

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

const LIST: &str = "wait_events.txt";

struct Event {
    class: String,
    name: String,
    variant: String,
    sentence: String,
}

fn main() {
    println!("cargo::rerun-if-changed={LIST}");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(loom)");
    let text = fs::read_to_string(LIST).unwrap_or_else(|e| panic!("{LIST}: {e}"));
    let events = parse(&text);
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&out).join("wait_events.rs"), generate(&events)).expect("OUT_DIR is writable");
}

fn parse(text: &str) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let at = number + 1;
        let mut parts = line.splitn(2, char::is_whitespace);
        let class = parts.next().unwrap_or_default().to_string();
        let mut rest = parts.next().unwrap_or_default().trim_start().splitn(2, char::is_whitespace);
        let name = rest.next().unwrap_or_default().to_string();
        let sentence = rest.next().unwrap_or_default().trim().to_string();
        assert!(sentence.ends_with('.'), "{LIST}:{at}: class, name and one sentence that ends in a full stop");
        let variant = variant(&class, &name);
        assert!(events.iter().all(|e| e.variant != variant), "{LIST}:{at}: {variant} is there twice");
        let open = events.last().is_none_or(|e| e.class == class) || events.iter().all(|e| e.class != class);
        assert!(open, "{LIST}:{at}: the events of class {class} stand apart");
        events.push(Event { class, name, variant, sentence });
    }
    assert!(events.len() < 255, "{LIST}: an event is one byte, and one value means none");
    events
}

/// `Lock relation` becomes `LockRelation`, `IO WALWrite` becomes `WalWrite`.
fn variant(class: &str, name: &str) -> String {
    if name.starts_with(|c: char| c.is_ascii_lowercase()) {
        let mut letters = name.chars();
        let first = letters.next().unwrap_or_default().to_ascii_uppercase();
        return format!("{}{first}{}", fold(class), letters.as_str());
    }
    fold(name)
}

/// Folds each run of capitals to one capital: the last of a run begins the next word.
fn fold(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let capital = |i: usize| letters.get(i).is_some_and(char::is_ascii_uppercase);
    let mut folded = String::new();
    for (i, letter) in letters.iter().enumerate() {
        let inside_run = i > 0 && capital(i - 1) && (capital(i + 1) || i + 1 == letters.len());
        folded.push(if inside_run { letter.to_ascii_lowercase() } else { *letter });
    }
    folded
}

fn generate(events: &[Event]) -> String {
    let mut classes: Vec<&str> = events.iter().map(|e| e.class.as_str()).collect();
    classes.dedup();
    let mut out = String::new();
    let w = &mut out;
    let derives = "#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]\n#[repr(u8)]\n";
    let _ = write!(w, "/// What kind of thing is waited for.\n{derives}pub enum WaitClass {{\n");
    for class in &classes {
        let _ = write!(w, "    /// Shown as `{class}`.\n    {},\n", fold(class));
    }
    let _ = write!(w, "}}\n\n/// What is waited for: one line of wait_events.txt.\n{derives}pub enum WaitEvent {{\n");
    for e in events {
        let _ = write!(w, "    /// {} (`{}` / `{}`)\n    {},\n", e.sentence, e.class, e.name, e.variant);
    }
    let _ = write!(w, "}}\n\nstatic CLASSES: [WaitClass; {}] = [\n", classes.len());
    for class in &classes {
        let _ = writeln!(w, "    WaitClass::{},", fold(class));
    }
    let _ = write!(w, "];\nstatic CLASS_NAMES: [&str; {}] = {classes:?};\n", classes.len());
    let _ = writeln!(w, "static EVENTS: [WaitEvent; {}] = [", events.len());
    for e in events {
        let _ = writeln!(w, "    WaitEvent::{},", e.variant);
    }
    let _ = write!(w, "];\nstatic ROWS: [WaitEventRow; {}] = [\n", events.len());
    for e in events {
        let _ = writeln!(
            w,
            "    WaitEventRow {{ event: WaitEvent::{}, class: WaitClass::{}, class_name: {:?}, name: {:?}, variant: {:?}, \
             legend: {:?}, description: {:?} }},",
            e.variant,
            fold(&e.class),
            e.class,
            e.name,
            e.variant,
            format!("{}: {}", e.class, e.name),
            e.sentence
        );
    }
    out.push_str("];\n");
    out
}
