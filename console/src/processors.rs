//! How many processors the watched server has: the line in the chart of active sessions. More sessions than that on CPU take turns.
//!
//! Clearway has the setting `processors`. PostgreSQL tells nothing of its machine by itself; the file of the kernel is read by roles that may read the
//! server's files. MariaDB sizes its pool of threads by the number, MySQL 8 its default resource group.

use crate::link::Link;
use crate::source::Kind;
use serde_json::{Value, json};

/// The number, or why it is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Processors {
    Known(u32),
    Unknown(&'static str),
}

/// The largest number that is believed.
const PROCESSORS_MAX: u32 = 1 << 20;

const OF_POSTGRESQL: &str = "SELECT pg_read_file('/sys/devices/system/cpu/online', 0, 1000, true)";
/// A refused function would be an error in the server's log.
const MAY_READ_FILES: &str = "SELECT has_function_privilege('pg_read_file(text,bigint,bigint,boolean)', 'execute') \
     AND pg_has_role('pg_read_server_files', 'member')";
const OF_MARIADB: &str = "SELECT global_value FROM information_schema.system_variables WHERE variable_name = 'thread_pool_size' AND global_value_origin = 'AUTO'";
const OF_MYSQL: &str =
    "SELECT vcpu_ids FROM information_schema.resource_groups WHERE resource_group_name = 'USR_default'";

impl Processors {
    /// Of the server of a connection.
    pub(crate) async fn of(link: &mut Link, kind: Kind) -> Processors {
        match kind {
            Kind::Clearway => {
                let told = link.field("SELECT current_setting('processors', true)").await;
                number(told.ok().flatten(), "this version of Clearway does not tell it")
            }
            Kind::PostgreSql => {
                let why =
                    "PostgreSQL tells it only to superusers and members of pg_read_server_files, and only on Linux";
                if !matches!(link.field(MAY_READ_FILES).await, Ok(Some(may)) if may == "t") {
                    return Processors::Unknown(why);
                }
                list(link.field(OF_POSTGRESQL).await.ok().flatten(), why)
            }
            Kind::MariaDb => {
                let why = "MariaDB tells it only as the default of thread_pool_size, which is set here";
                number(link.field(OF_MARIADB).await.ok().flatten(), why)
            }
            Kind::MySql => list(link.field(OF_MYSQL).await.ok().flatten(), "this MySQL has no resource groups"),
        }
    }

    /// As the page reads it.
    pub(crate) fn shown(self) -> Value {
        match self {
            Processors::Known(count) => json!({"count": count}),
            Processors::Unknown(why) => json!({"count": null, "why": why}),
        }
    }
}

fn believed(count: Option<u32>, why: &'static str) -> Processors {
    count.filter(|count| (1..=PROCESSORS_MAX).contains(count)).map_or(Processors::Unknown(why), Processors::Known)
}

fn number(text: Option<String>, why: &'static str) -> Processors {
    believed(text.and_then(|text| text.trim().parse().ok()), why)
}

fn list(text: Option<String>, why: &'static str) -> Processors {
    believed(text.and_then(|text| count_of(&text)), why)
}

/// How many numbers a list as the kernel writes it has: `0-3,8`.
fn count_of(list: &str) -> Option<u32> {
    let mut count = 0_u32;
    for part in list.trim().split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high): (u32, u32) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
        count = count.checked_add(high.checked_sub(low)?.checked_add(1)?)?;
    }
    Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel_are_counted() {
        assert_eq!([count_of("0-1\n"), count_of("0"), count_of("0-3,8, 10-11")], [Some(2), Some(1), Some(7)]);
        assert_eq!([count_of(""), count_of("3-1"), count_of("0-4294967295"), count_of("a")], [None; 4]);
    }

    #[test]
    fn what_is_no_number_of_processors_is_not_known() {
        let of = |text: &str| number(Some(text.to_owned()), "why");
        assert_eq!(of("2"), Processors::Known(2));
        assert_eq!([of("0"), of("-1"), of("9999999"), number(None, "why")], [Processors::Unknown("why"); 4]);
    }
}
