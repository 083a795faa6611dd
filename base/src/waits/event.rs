//! The wait events that wait_events.txt lists, each with its class, its names and its description, as views and documents show them.

include!(concat!(env!("OUT_DIR"), "/wait_events.rs"));

/// One event as views, pages and charts show it.
#[derive(Clone, Copy, Debug)]
pub struct WaitEventRow {
    /// The event.
    pub event: WaitEvent,
    /// Its class.
    pub class: WaitClass,
    /// The class as shown: `wait_event_type` in `pg_stat_activity`.
    pub class_name: &'static str,
    /// The name as shown: `wait_event` in `pg_stat_activity`.
    pub name: &'static str,
    /// The name in Rust.
    pub variant: &'static str,
    /// The caption of a chart: `IO: WALSync`.
    pub legend: &'static str,
    /// One sentence.
    pub description: &'static str,
}

impl WaitClass {
    /// Every class, in the order of the list.
    pub fn all() -> &'static [WaitClass] {
        &CLASSES
    }

    /// The class as shown: `wait_event_type` in `pg_stat_activity`.
    pub fn name(self) -> &'static str {
        CLASS_NAMES[self as usize]
    }
}

impl WaitEvent {
    /// How many events there are; `event.index()` is below it.
    pub const COUNT: usize = EVENTS.len();

    /// Every event, in the order of the list.
    pub fn all() -> &'static [WaitEvent] {
        &EVENTS
    }

    /// Class, name and description of every event, in the order of the list.
    pub fn rows() -> &'static [WaitEventRow] {
        &ROWS
    }

    /// The event's place in the list.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The event at a place of the list.
    pub fn from_index(index: usize) -> Option<WaitEvent> {
        EVENTS.get(index).copied()
    }

    /// What views and pages show of the event.
    pub fn row(self) -> &'static WaitEventRow {
        &ROWS[self as usize]
    }

    /// The event's class.
    pub fn class(self) -> WaitClass {
        self.row().class
    }

    /// The name as shown: `wait_event` in `pg_stat_activity`.
    pub fn name(self) -> &'static str {
        self.row().name
    }
}

/// The page docs/wait-events.md, made of the list.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Wait events\n\nWhat a session can wait for, by class. `wait_event_type` and `wait_event` are what `pg_stat_activity` \
         shows. This page is made of `base/wait_events.txt`; do not edit it.\n",
    );
    for &class in WaitClass::all() {
        page.push_str(&format!("\n## {}\n\n| wait_event | in the source | |\n|---|---|---|\n", class.name()));
        for row in WaitEvent::rows().iter().filter(|r| r.class == class) {
            page.push_str(&format!("| {} | `{}` | {} |\n", row.name, row.variant, row.description));
        }
    }
    page
}
