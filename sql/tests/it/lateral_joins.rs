//! Conditions of a lateral query that name only what is to the left of it: they stay with the table that the query reads when it is taken into its level.

use std::sync::Arc;

use crate::sim::{connect, open, simulate};
use clearway_base::vfs::sim::SimDisk;
use clearway_sql::session::Backends;

#[test]
fn a_table_of_a_lateral_query_is_read_behind_what_its_condition_names() {
    simulate(1, || async {
        let db = open(&SimDisk::new(1)).await;
        let mut session = connect(&db, &Arc::new(Backends::default())).await;
        session.value("CREATE TABLE few (id int PRIMARY KEY, d int)").await;
        session.value("CREATE TABLE flags (id int PRIMARY KEY, flag bool)").await;
        session.value("INSERT INTO few VALUES (1, 1), (2, 2), (3, 3)").await;
        session.value("INSERT INTO flags VALUES (1, true), (2, false), (3, false)").await;
        // The outer join's condition makes an inner join of the lateral one, whose sides may then change places.
        let query = "SELECT concat_ws(',', few.id, f.flag, l.c) FROM few LEFT JOIN (flags f LEFT JOIN LATERAL \
                     (SELECT g.id AS c FROM flags g WHERE f.flag = false) l ON l.c = f.id) ON few.d = l.c ORDER BY few.id";
        assert_eq!(session.run(query).await.expect("rows"), ["1", "2,f,2", "3,f,3"]);
        let grouped = "SELECT concat_ws(',', f.flag, l.c, count(*)) FROM few a RIGHT JOIN few b ON b.id = a.id LEFT JOIN (flags f LEFT JOIN LATERAL \
                       (SELECT g.id AS c FROM flags g WHERE f.flag = false) l ON l.c = f.id) ON b.d = l.c AND a.id > 2 GROUP BY f.flag, l.c ORDER BY 1";
        assert_eq!(session.run(grouped).await.expect("rows"), ["2", "f,3,1"]);
    });
}

#[test]
fn the_right_side_of_a_full_join_may_hold_a_lateral_query() {
    simulate(2, || async {
        let db = open(&SimDisk::new(2)).await;
        let mut session = connect(&db, &Arc::new(Backends::default())).await;
        session.value("CREATE TABLE few (id int PRIMARY KEY, d int)").await;
        session.value("INSERT INTO few VALUES (1, 1), (2, 3), (3, 4)").await;
        // A sub-select in FROM with an expression stays one, and lateral.
        let query = "SELECT concat_ws(',', a.id, b.id, l.s) FROM few a FULL JOIN (few b LEFT JOIN LATERAL \
                     (SELECT b.d + c.id AS s FROM few c WHERE c.id > 2) l ON l.s > 4) ON a.d = b.id ORDER BY 1";
        assert_eq!(session.run(query).await.expect("rows"), ["1,1", "2,3,7", "2,6", "3"]);
    });
}
