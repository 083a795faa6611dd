//! Arrays that functions make of values which have no type by themselves: a null, a text for a varchar, a word. A stored array names the type of its
//! elements, and one that names another than its column's can't be read.

use std::sync::Arc;

use crate::sim::{connect, open, simulate};
use clearway_base::vfs::sim::SimDisk;
use clearway_sql::session::Backends;

/// Expressions, and what a column shows of them.
const MADE: [(&str, &str); 10] = [
    ("array_append(NULL::int[], NULL::int)", "{NULL}"),
    ("array_prepend(NULL::int, NULL::int[])", "{NULL}"),
    ("array_fill(NULL::date, ARRAY[2])", "{NULL,NULL}"),
    ("array_append(NULL::varchar[], 'a'::varchar)", "{a}"),
    ("array_append(NULL::name[], 'a'::name)", "{a}"),
    ("array_fill('x'::varchar, ARRAY[2])", "{x,x}"),
    ("array_append(NULL::mood[], NULL)", "{NULL}"),
    ("array_append(NULL::int4range[], NULL)", "{NULL}"),
    ("array_append(NULL::bit(3)[], B'101')", "{101}"),
    ("array_append(NULL::\"char\"[], 'a'::\"char\")", "{a}"),
];

#[test]
fn an_array_of_a_function_has_the_elements_of_its_type() {
    simulate(1, || async {
        let db = open(&SimDisk::new(1)).await;
        let mut session = connect(&db, &Arc::new(Backends::default())).await;
        session.value("CREATE TYPE mood AS ENUM ('sad', 'ok')").await;
        for (made, shown) in MADE {
            session.value(&format!("CREATE TABLE kept AS SELECT {made} AS a")).await;
            assert_eq!(session.run("SELECT a FROM kept").await.expect(made), [shown], "{made}");
            session.value("DROP TABLE kept").await;
        }
    });
}
