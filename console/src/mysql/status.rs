//! Reads the latest deadlock from the text of SHOW ENGINE INNODB STATUS.
//!
//! # Errors
//! Text that does not have the expected form is skipped: it is written for people and differs from version to version.

use crate::link::Table;

/// The columns of the page's table of deadlocks.
const COLUMNS: [&str; 13] = [
    "number",
    "happened",
    "place",
    "victim",
    "pid",
    "application_name",
    "usename",
    "wants",
    "wants_mode",
    "waits_for",
    "holds",
    "held_by_statement",
    "statements",
];

/// A transaction of the deadlock.
#[derive(Debug, Default)]
struct Participant {
    number: usize,
    trx: String,
    pid: String,
    statement: Vec<String>,
    wants: String,
    mode: String,
    /// The transaction that holds what it wants.
    blocker: Option<String>,
    holds: String,
}

/// What the lines that come next belong to.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Head,
    Statement,
    Wants,
    Conflict,
    Holds,
}

/// The answer of SHOW ENGINE INNODB STATUS as the page's table of deadlocks.
pub(crate) fn deadlocks(answer: &Table) -> Table {
    let text = answer.rows.first().and_then(|row| row.last().cloned().flatten()).unwrap_or_default();
    let columns = COLUMNS.map(str::to_owned).to_vec();
    Table { columns, rows: latest(&text) }
}

/// The words behind one, up to another.
fn between<'t>(line: &'t str, before: &str, after: &str) -> Option<&'t str> {
    let rest = line.split_once(before)?.1;
    Some(rest.split_once(after).map_or(rest, |(found, _)| found))
}

fn latest(text: &str) -> Vec<Vec<Option<String>>> {
    let Some((_, rest)) = text.split_once("LATEST DETECTED DEADLOCK\n") else { return Vec::new() };
    let mut lines = rest.lines().skip_while(|line| line.starts_with('-'));
    let happened: String = lines.next().unwrap_or_default().split(' ').take(2).collect::<Vec<_>>().join(" ");
    let (mut all, mut part, mut victim) = (Vec::<Participant>::new(), Part::Head, 0);
    for line in lines {
        if line == "TRANSACTIONS" {
            break;
        }
        if let Some(number) = between(line, "*** WE ROLL BACK TRANSACTION (", ")") {
            victim = number.parse().unwrap_or(0);
            break;
        }
        if line.starts_with("*** ") && line.ends_with("TRANSACTION:") {
            let number = between(line, "(", ")").and_then(|n| n.parse().ok()).unwrap_or(0);
            all.push(Participant { number, ..Participant::default() });
            part = Part::Head;
            continue;
        }
        let Some(current) = all.last_mut() else { continue };
        match line {
            _ if line.starts_with("*** ") && line.contains("WAITING FOR THIS LOCK") => part = Part::Wants,
            _ if line.starts_with("*** ") && line.contains("CONFLICTING WITH") => part = Part::Conflict,
            _ if line.starts_with("*** ") && line.contains("HOLDS THE LOCK") => part = Part::Holds,
            _ => part = current.take(line, part),
        }
    }
    all.iter().map(|one| one.row(&all, &happened, victim)).collect()
}

impl Participant {
    /// Takes a line; what the next one belongs to.
    fn take(&mut self, line: &str, part: Part) -> Part {
        let lock = || format!("{} of {}", between(line, " index ", " of table").unwrap_or("lock"), table_of(line));
        let is_lock = line.starts_with("RECORD LOCKS") || line.starts_with("TABLE LOCK");
        match part {
            Part::Head if line.starts_with("TRANSACTION ") => {
                self.trx = between(line, "TRANSACTION ", ",").unwrap_or_default().to_owned();
            }
            Part::Head if line.contains("thread id ") => {
                self.pid = between(line, "thread id ", ",").unwrap_or_default().to_owned();
                return Part::Statement;
            }
            Part::Statement if !line.is_empty() => self.statement.push(line.to_owned()),
            Part::Wants if is_lock && self.wants.is_empty() => {
                self.wants = lock();
                let mode = between(line, "lock_mode ", " waiting").or_else(|| between(line, "lock mode ", " waiting"));
                self.mode = mode.unwrap_or_default().to_owned();
            }
            Part::Conflict if is_lock && self.blocker.is_none() => {
                self.blocker = between(line, "trx id ", " ").map(str::to_owned);
            }
            Part::Holds if is_lock && self.holds.is_empty() => self.holds = lock(),
            _ => {}
        }
        part
    }

    fn row(&self, all: &[Participant], happened: &str, victim: usize) -> Vec<Option<String>> {
        let others = || all.iter().filter(|other| other.number != self.number);
        let blocker = others().find(|other| self.blocker.as_ref() == Some(&other.trx)).or_else(|| others().next());
        // What it holds is what another one wants of it.
        let wanted = others().find(|other| other.blocker.as_ref() == Some(&self.trx)).map(|other| other.wants.clone());
        let holds = Some(self.holds.clone()).filter(|holds| !holds.is_empty()).or(wanted).unwrap_or_default();
        let statement = self.statement.join("\n");
        let texts = [
            "1",
            happened,
            &self.number.to_string(),
            if self.number == victim { "t" } else { "f" },
            &self.pid,
            "",
            "",
            &self.wants,
            &self.mode,
            blocker.map_or("", |blocker| &blocker.pid),
            &holds,
        ]
        .map(|text| Some(text.to_owned()));
        texts.into_iter().chain([None, Some(statement)]).collect()
    }
}

/// The name in "of table `a`.`b` trx id".
fn table_of(line: &str) -> String {
    between(line, " table ", " trx id").unwrap_or_default().replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "\
=====================================
2026-11-22 23:00:05 0x7f01 INNODB MONITOR OUTPUT
------------------------
LATEST DETECTED DEADLOCK
------------------------
2026-11-22 23:00:00 0x7f02
*** (1) TRANSACTION:
TRANSACTION 27, ACTIVE 3 sec starting index read
mysql tables in use 1, locked 1
LOCK WAIT 3 lock struct(s), heap size 1128, 2 row lock(s), undo log entries 1
MariaDB thread id 5, OS thread handle 1403, query id 30 localhost 127.0.0.1 root Updating
update t set v = 8
where id = 6
*** WAITING FOR THIS LOCK TO BE GRANTED:
RECORD LOCKS space id 5 page no 3 n bits 8 index PRIMARY of table `test`.`t` trx id 27 lock_mode X locks rec but not gap waiting
Record lock, heap no 3 PHYSICAL RECORD: n_fields 4; compact format; info bits 0
 0: len 4; hex 80000006; asc     ;;

*** CONFLICTING WITH:
RECORD LOCKS space id 5 page no 3 n bits 8 index PRIMARY of table `test`.`t` trx id 28 lock_mode X locks rec but not gap

*** (2) TRANSACTION:
TRANSACTION 28, ACTIVE 2 sec starting index read
MariaDB thread id 6, OS thread handle 1404, query id 31 localhost 127.0.0.1 root Updating
update t set v = 8 where id = 5
*** WAITING FOR THIS LOCK TO BE GRANTED:
RECORD LOCKS space id 5 page no 3 n bits 8 index second of table `test`.`t` trx id 28 lock_mode X waiting
*** CONFLICTING WITH:
RECORD LOCKS space id 5 page no 3 n bits 8 index second of table `test`.`t` trx id 27 lock_mode X locks rec but not gap
*** WE ROLL BACK TRANSACTION (2)
------------
TRANSACTIONS
------------
";

    fn of(text: &str) -> Table {
        deadlocks(&Table { columns: Vec::new(), rows: vec![vec![Some("InnoDB".to_owned()), Some(text.to_owned())]] })
    }

    #[test]
    fn the_latest_deadlock_is_read() {
        let table = of(STATUS);
        let column = |name: &str| table.columns.iter().position(|column| column == name).expect("a column");
        let field = |row: usize, name: &str| table.rows[row][column(name)].clone().unwrap_or_default();
        assert_eq!((table.rows.len(), field(0, "happened").as_str()), (2, "2026-11-22 23:00:00"));
        assert_eq!([field(0, "pid"), field(0, "waits_for"), field(0, "victim")], ["5", "6", "f"]);
        assert_eq!([field(1, "pid"), field(1, "waits_for"), field(1, "victim")], ["6", "5", "t"]);
        assert_eq!([field(0, "wants"), field(0, "holds")], ["PRIMARY of test.t", "second of test.t"]);
        assert_eq!(field(0, "wants_mode"), "X locks rec but not gap");
        assert_eq!(field(0, "statements"), "update t set v = 8\nwhere id = 6");
    }

    #[test]
    fn any_text_is_read_without_harm() {
        assert!(of("").rows.is_empty() && of("LATEST DETECTED DEADLOCK\n").rows.is_empty());
        for cut in (0..STATUS.len()).filter(|at| STATUS.is_char_boundary(*at)) {
            assert!(of(&STATUS[..cut]).rows.len() <= 2);
        }
    }
}
