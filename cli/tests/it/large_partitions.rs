//! Window functions over partitions of any number of rows, and grouping sets above groups, keep to a small account: what they keep goes to temporary files.

use crate::program::{connect, run, scratch, start_under, stop};

/// Window functions over one partition of the whole table, or two of half of it. `{x}`: the table, or a query with its columns.
const FRAMES: &[&str] = &[
    "sum(id) over (order by id rows between 100 preceding and 90 following)",
    "count(*) filter (where id % 3 > 0) over (order by id rows between current row and unbounded following)",
    "max(v) over (order by id rows between 2 preceding and 1 preceding)",
    "sum(n) over (order by n range between 5 preceding and 10 following)",
    "sum(n) over (order by n desc nulls last range between 5 preceding and 3 preceding exclude ties)",
    "count(v) over (order by n groups between 1 preceding and 2 following exclude current row)",
    "first_value(v) over (order by id rows between 700 preceding and 10 preceding)",
    "last_value(v) over (order by n range between unbounded preceding and 7 following)",
    "nth_value(id, 3) over (order by n groups between 2 preceding and current row)",
    "lag(v, id % 1500) over (order by id)",
    "lead(v, 5, 'none') over (partition by id % 2 order by n, id)",
    "ntile(7) over (order by id)",
    "percent_rank() over (order by n)",
    "cume_dist() over (partition by id % 2 order by n)",
];

/// Grouping sets whose groups fill the memory, above groups and above each other.
const SETS: &[&str] = &[
    "select coalesce(max(id), 0) id, v from (select max(id) id, v from wide group by v) g group by grouping sets ((v, id), (v), ())",
    "select max(id) id, v from (select coalesce(max(id), 0) id, v from wide group by grouping sets ((v, id), (v), ())) g group by v",
    "select coalesce(max(id), 0) id, v from (select max(id) id, v from wide group by rollup (v, id)) g group by cube (v, id)",
];

#[test]
fn partitions_and_grouping_sets_of_any_size_keep_to_the_account() {
    // WND-1, NBR-1, NBR-2
    let directory = scratch("large-partitions");
    let running = start_under(&directory, 2 << 20, &["-c", "statement_memory=0", "-c", "cache_size=64MB"]);
    run(async {
        let (client, free) = (connect(&running).await, connect(&running).await);
        let table = "create table wide as select g id, repeat('x', 100) || (g * 7919::bigint) % 120011 v, nullif(g % 2500, 77) n from generate_series(1, 8000) g";
        client.batch_execute(&format!("{table}; analyze")).await.expect("made");
        client.batch_execute("set statement_memory = '3MB'; set work_mem = '256MB'").await.expect("set");
        let mut queries: Vec<String> = SETS
            .iter()
            .map(|sets| format!("select count(*) || ' ' || sum(id) || ' ' || sum(length(v)) from ({sets}) q"))
            .collect();
        queries.extend(FRAMES.iter().map(|frame| {
            let computed = format!("select id, v, {frame} f from wide");
            format!("select md5(string_agg(f || ' ' || id, ',')) from (select id, coalesce(md5(f::text), '') f from ({computed}) w where id % 7 = 0 order by id) q")
        }));
        // The lists of several functions beside each other.
        let all: Vec<String> = FRAMES.iter().enumerate().map(|(n, frame)| format!("{frame} f{n}")).collect();
        let given: Vec<String> = (0..FRAMES.len()).map(|n| format!("count(f{n})")).collect();
        queries.push(format!("select {} from (select id, {} from wide) w", given.join(" || ' ' || "), all.join(", ")));
        for sql in &queries {
            let row = client.query_one(sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
            let expected = free.query_one(sql, &[]).await.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
            let answers: [Option<&str>; 2] = [row.get(0), expected.get(0)];
            assert!(answers[0].is_some() && answers[0] == answers[1], "{sql}: {answers:?}");
        }
        let files = "select temp_files from pg_stat_database where datname = current_database()";
        assert!(client.query_one(files, &[]).await.expect("counted").get::<_, i64>(0) > 20);
    });
    stop(running);
    let left = std::fs::read_dir(&directory).expect("the directory").filter_map(Result::ok);
    let left: Vec<String> = left.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    assert!(!left.iter().any(|name| name.starts_with("temp-")), "{left:?}");
    let _ = std::fs::remove_dir_all(&directory);
}
