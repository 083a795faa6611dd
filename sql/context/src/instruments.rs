//! Maps wait events, latches and mutexes to the instrument names of MySQL's performance_schema, and holds the switches of
//! setup_instruments.
//!
//! # Structure
//! ```text
//! IO                 wait/io/file/innodb/innodb_log_file, innodb_data_file, innodb_dblwr_file, innodb_temp_file, wait/io/file/sql/NAME
//! Lock               wait/lock/table/sql/handler (relations), wait/io/table/sql/handler (rows), wait/lock/metadata/sql/mdl (the others)
//! LWLock             wait/synch/mutex/innodb/NAME, wait/synch/rwlock/innodb/NAME: a class of mutexes or latches, `/` written as `_`
//! Client             wait/io/socket/sql/client_connection; idle (waiting for the client to send)
//! IPC, Timeout, ...  wait/synch/cond/sql/NAME
//! ```
//!
//! # Not here
//! Switching a class of mutexes or latches off: their waits are counted on the slow path only, and always.

use clearway_base::sync::{ClassStats, classes};
use clearway_base::waits::{Instrument, WaitClass, WaitEvent, instrument, set_instrument};
use std::collections::BTreeMap;

/// The name of an event that is no mutex or latch.
pub fn name_of(event: WaitEvent) -> Option<String> {
    let file = |name: &str| Some(format!("wait/io/file/innodb/{name}"));
    match event.class() {
        WaitClass::LwLock => None,
        WaitClass::Io => match event.name() {
            name if name.starts_with("WAL") => file("innodb_log_file"),
            name if name.starts_with("DataFile") => file("innodb_data_file"),
            name if name.starts_with("DoubleWrite") => file("innodb_dblwr_file"),
            name if name.starts_with("BufFile") || name.starts_with("UndoSpill") => file("innodb_temp_file"),
            name => Some(format!("wait/io/file/sql/{name}")),
        },
        WaitClass::Lock => Some(
            match event {
                WaitEvent::LockRelation => "wait/lock/table/sql/handler",
                WaitEvent::LockTuple | WaitEvent::LockTransactionid | WaitEvent::LockVirtualxid => {
                    "wait/io/table/sql/handler"
                }
                _ => "wait/lock/metadata/sql/mdl",
            }
            .to_owned(),
        ),
        WaitClass::Client if event == WaitEvent::ClientRead => Some("idle".to_owned()),
        WaitClass::Client => Some("wait/io/socket/sql/client_connection".to_owned()),
        _ => Some(format!("wait/synch/cond/sql/{}", event.name())),
    }
}

/// The name of a class of mutexes or latches.
pub fn name_of_class(class: &ClassStats) -> String {
    let kind = if class.name == "storage/buffer/page" { "rwlock" } else { "mutex" };
    format!("wait/synch/{kind}/innodb/{}", class.name.replace(['/', ' '], "_"))
}

/// Every instrument with its switches, by name.
pub fn all() -> BTreeMap<String, Instrument> {
    let mut all: BTreeMap<String, Instrument> = BTreeMap::new();
    for event in WaitEvent::all() {
        let Some(name) = name_of(*event) else { continue };
        let on = instrument(*event);
        let sum = all.entry(name).or_insert(on);
        sum.enabled |= on.enabled;
        sum.timed |= on.timed;
    }
    all.extend(classes().iter().map(|class| (name_of_class(class), Instrument { enabled: true, timed: true })));
    all
}

/// Switches an instrument; false: it can't be switched off.
pub fn switch(name: &str, to: Instrument) -> bool {
    let mut found = false;
    for event in WaitEvent::all().iter().filter(|event| name_of(**event).as_deref() == Some(name)) {
        set_instrument(*event, to);
        found = true;
    }
    found || (to.enabled && to.timed)
}

/// An option `pattern=value` at the start: `%` stands for anything; ON, COUNTED (not timed) or OFF, as in MySQL.
///
/// # Errors
/// What is wrong with it.
pub fn start_up(option: &str) -> Result<(), String> {
    let (pattern, value) = option.rsplit_once('=').ok_or_else(|| format!("\"{option}\" has no value"))?;
    let to = match value.trim().trim_matches('\'').to_ascii_lowercase().as_str() {
        "on" | "true" | "1" | "yes" => Instrument { enabled: true, timed: true },
        "counted" => Instrument { enabled: true, timed: false },
        "off" | "false" | "0" | "no" => Instrument { enabled: false, timed: false },
        _ => return Err(format!("\"{value}\" is not one of ON, COUNTED, OFF")),
    };
    let pattern = pattern.trim().trim_matches('\'');
    for name in all().keys().filter(|name| fits(pattern, name)) {
        if !switch(name, to) {
            return Err(format!("{name} can't be switched off"));
        }
    }
    Ok(())
}

/// LIKE with `%` alone.
fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('%');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    for (i, part) in parts.iter().enumerate() {
        if i + 1 == parts.len() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_a_name_and_patterns_are_those_of_like() {
        for event in WaitEvent::all() {
            assert_eq!(name_of(*event).is_none(), event.class() == WaitClass::LwLock, "{}", event.name());
        }
        assert_eq!(name_of(WaitEvent::WalSync).as_deref(), Some("wait/io/file/innodb/innodb_log_file"));
        for (pattern, name, wanted) in [
            ("%", "a", true),
            ("wait/%/mutex/%", "wait/synch/mutex/x", true),
            ("wait/%/mutex/", "wait/synch/mutex/x", false),
            ("a", "a", true),
            ("a", "ab", false),
            ("%b", "ab", true),
            ("%a%a%", "a", false),
        ] {
            assert_eq!(fits(pattern, name), wanted, "{pattern} {name}");
        }
    }

    #[test]
    fn an_option_switches_what_its_pattern_names() {
        let name = "wait/io/file/sql/BaseBackupRead";
        assert_eq!(start_up("wait/io/file/sql/BaseBackup%=COUNTED"), Ok(()));
        assert_eq!(all()[name], Instrument { enabled: true, timed: false });
        assert_eq!(start_up("'wait/io/file/sql/BaseBackup%=ON'"), Ok(()));
        assert_eq!(all()[name], Instrument { enabled: true, timed: true });
        assert!(start_up("wait/%").is_err() && start_up("wait/%=maybe").is_err());
    }
}
