//! The parser, compared with PostgreSQL 15's own answers (`testdata/syntax.out`), and on random text.

use clearway_sql::syntax::{digest, parse};

/// What the parser says of `sql`, in the words of the data file.
fn answer(sql: &str) -> String {
    match parse(sql) {
        Ok(_) => "ok".to_owned(),
        Err(e) if e.code() == "0A000" => "unsupported".to_owned(),
        Err(e) => {
            let mut out = format!(
                "ERROR {} {} {}",
                e.code(),
                e.position(sql).map_or("-".to_owned(), |p| p.to_string()),
                e.message()
            );
            if let Some(hint) = &e.fields().hint {
                out.push_str(&format!(" | HINT: {hint}"));
            }
            out
        }
    }
}

/// Texts that are refused by name or, knowingly, answered otherwise than PostgreSQL does.
const DIFFERENT: &[(&str, &str)] = &[
    (
        "insert into t values (1) on conflict do update set a = 1",
        "ERROR 42601 26 ON CONFLICT DO UPDATE requires inference specification or constraint name | HINT: For example, ON CONFLICT (column_name).",
    ),
    ("select t.*.a from t", "ERROR 42601 11 syntax error at or near \".\""),
];

#[test]
fn answers_are_those_of_postgresql() {
    let queries = include_str!("../../testdata/syntax.sql").lines();
    let expected = include_str!("../../testdata/syntax.out").lines();
    let mut bad = Vec::new();
    for (sql, want) in queries.zip(expected) {
        let got = answer(sql);
        let known = DIFFERENT.iter().find(|d| d.0 == sql).map(|d| d.1);
        let same = got == known.unwrap_or(want) || (got == "unsupported" && want == "ok");
        if !same {
            bad.push(format!("{sql}\n  want {want}\n  got  {got}"));
        }
    }
    assert!(bad.is_empty(), "{} differences\n{}", bad.len(), bad.join("\n"));
}

/// Deterministic random numbers (xorshift64*), so that a seed replays a run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % n.max(1)
    }
}

#[test]
fn mutated_text_never_panics() {
    let seed: u64 = std::env::var("SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_121);
    println!("replay: SEED={seed} cargo test -p clearway-sql --test it mutated");
    let lines: Vec<&str> = include_str!("../../testdata/syntax.sql").lines().collect();
    let words: Vec<&str> = lines.iter().flat_map(|l| l.split_whitespace()).collect();
    let mut random = Random(seed);
    for _ in 0..30_000 {
        let mut text: Vec<String> = lines[random.below(lines.len())].split_whitespace().map(str::to_owned).collect();
        for _ in 0..=random.below(3) {
            let at = random.below(text.len() + 1);
            match random.below(4) {
                0 if at < text.len() => drop(text.remove(at)),
                1 if at < text.len() => text[at] = words[random.below(words.len())].to_owned(),
                2 => text.insert(at, words[random.below(words.len())].to_owned()),
                _ => {
                    let garbage: String = (0..random.below(6))
                        .map(|_| char::from_u32(random.below(0x300) as u32).unwrap_or('?'))
                        .collect();
                    text.insert(at, garbage);
                }
            }
        }
        let sql = text.join(" ");
        if let Err(e) = parse(&sql) {
            assert_ne!(e.code(), "XX000", "{sql}");
            let _ = e.position(&sql);
        }
        let _ = digest::digest(&sql);
    }
}

#[test]
fn deep_and_long_text_is_refused_not_crashed_on() {
    for (open, close) in [
        ("(", ")"),
        ("(select ", ")"),
        ("- ", ""),
        ("not ", ""),
        ("array[", "]"),
        ("f(", ")"),
        ("case when ", " then 1 end"),
    ] {
        let sql = format!("select {}1{}", open.repeat(20_000), close.repeat(20_000));
        let e = parse(&sql).expect_err("too deep");
        assert!(matches!(e.code(), "54001" | "42601"), "{open}: {e}");
    }
    for op in ["+", "||", "=", "union select", "::int"] {
        let sql = format!("select 1{}", format!(" {op} 1").repeat(20_000));
        let e = parse(&sql).expect_err("too long a chain");
        assert!(matches!(e.code(), "54001" | "42601"), "{op}: {e}");
    }
    let from = format!("select * from a{}", " join a on true".repeat(20_000));
    assert_eq!(parse(&from).expect_err("joins").code(), "54001");
    let list = format!("select 1 where 1 in (1{}) and true{}", ", 1".repeat(50_000), " or true".repeat(50_000));
    assert!(parse(&list).is_ok(), "lists and chains of OR are flat");
}

#[test]
fn several_statements_have_their_ranges() {
    let sql = " select 1 ;; -- c\n insert into t values ($2, ';') ; ";
    let parsed = parse(sql).expect("parses");
    let texts: Vec<&str> = parsed.iter().map(|p| &sql[p.range.clone()]).collect();
    assert_eq!(texts, ["select 1", "insert into t values ($2, ';')"]);
    assert_eq!((parsed[0].params, parsed[1].params), (0, 2));
    assert!(parse("select 1; selec 2").is_err(), "SYN-1");
}

#[test]
fn digests_ignore_constants_and_lengths_of_lists() {
    let d = |sql| digest::digest(sql).expect("lexes").text;
    assert_eq!(
        d("SELECT  a FROM t WHERE b=1 AND c IN (1,2,3) -- x"),
        "select a from t where b = $1 and c in ($2, ...)"
    );
    assert_eq!(d("select a from t where b=7 and c in ('x')"), "select a from t where b = $1 and c in ($2, ...)");
    assert_eq!(d("select a from t where b = $1 and c = 'x'"), "select a from t where b = $1 and c = $2");
    assert_eq!(d("select \"A\".b::int from f(1, 2)"), "select \"A\".b::int from f ($1, $2)");
    assert_eq!(digest::plan_key("select 'a''b' ,1").expect("lexes"), "select 'a''b', 1");
}
