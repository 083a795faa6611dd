//! The text of `clearway --help` and `clearway COMMAND --help`, the man page and the completions of shells: all from one table.

use std::fmt::Write as _;

/// The widest line, in columns.
const WIDTH: usize = 80;
/// Where the text of an option begins.
const INDENT: usize = 26;

/// A subcommand.
#[derive(Debug)]
pub struct Page {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Its forms, without the program's name.
    pub forms: &'static [&'static str],
    /// What else one should know.
    pub about: &'static str,
    /// Its options with what they mean.
    pub options: &'static [(&'static str, &'static str)],
    /// Words that may follow the name.
    pub words: &'static [&'static str],
    /// Command lines, without the program's name, and what they do.
    pub examples: &'static [(&'static str, &'static str)],
}

/// The subcommands, in the order in which they are shown.
pub const PAGES: &[Page] = &[
    Page {
        name: "serve",
        summary: "serve a data directory to PostgreSQL's clients",
        forms: &["serve [OPTIONS]"],
        about: "The directory is made if it does not exist. Settings come from the command line, then from what ALTER SYSTEM has kept in the \
                directory, then from the file of --config. SIGHUP has the file read again, SIGTERM ends the server cleanly.",
        options: &[
            ("--data DIR", "the directory [clearway-data]"),
            ("--listen ADDRESS:PORT", "where; port 0 takes a free one; several with commas [127.0.0.1:5433]"),
            ("--config FILE", "lines of name = value; options of the command line win"),
            ("--http ADDRESS:PORT", "also serve the console (a page) and /metrics there"),
            ("--memory", "keep everything in memory: all is lost at the end"),
            ("--unix-socket-directory DIR", "also listen at DIR/.s.PGSQL.PORT"),
            ("--allow-plaintext-beyond-loopback", "do without TLS for other machines"),
            ("-c, --set NAME=VALUE", "any setting of the file or of sessions ('clearway settings' lists them)"),
        ],
        words: &[],
        examples: &[
            ("serve --data shop", "a server for this machine alone"),
            ("serve --data shop -c cache_size=2GB -c lock_timeout=5s", "the same with settings"),
            (
                "serve --data shop --config shop.conf --http 127.0.0.1:8080",
                "settings from a file, the console on a page",
            ),
        ],
    },
    Page {
        name: "sql",
        summary: "a terminal client for SQL",
        forms: &["sql [URL]", "sql --data DIR"],
        about: "Without an argument it connects to postgresql://postgres@127.0.0.1:5433/clearway. Inside, \\? lists its commands, and the key Tab \
                completes names. Statements are kept over runs in clearway/sql_history below $XDG_STATE_HOME (else ~/.local/state), but for \
                those that begin with a blank or hold a password. PGPASSWORD may hold the password.",
        options: &[("--data DIR", "work on a directory without a server")],
        words: &[],
        examples: &[
            ("sql", "the server of this machine"),
            ("sql postgresql://ann@db.example.org/shop", "another one"),
            ("sql --data shop", "a directory, without a server"),
        ],
    },
    Page {
        name: "backup",
        summary: "back up a running server, or a directory at rest",
        forms: &[
            "backup TARGET [OPTIONS]",
            "backup list TARGET",
            "backup verify TARGET [--open]",
            "backup expire TARGET --keep 7d,4w",
        ],
        about: "TARGET is a directory, an object store (s3://, gs://, az://), a single file (*.backup) or standard output (-). 'verify' \
                reads everything there and checks it. 'expire' removes backups, and log, but for the newest of each of so many days and weeks.",
        options: &[
            ("--server URL", "which server [postgresql://postgres@127.0.0.1:5433/clearway]"),
            ("--data DIR", "a directory without a server instead"),
            ("--incremental", "only what changed since the newest backup there"),
            ("--resume", "go on with the newest backup there that was broken off"),
            (
                "--rate BYTES",
                "the most that is read in a second, with kB, MB or GB; 0 is no limit [64MB, and nine tenths of the time at rest]",
            ),
            ("--open", "verify: also restore into a scratch directory and check that"),
            ("--keep 7d,4w", "expire: what stays"),
        ],
        words: &["list", "verify", "expire"],
        examples: &[
            ("backup /backups/shop", "the server of this machine, into a directory"),
            ("backup s3://bucket/shop --incremental", "what changed, into an object store"),
            ("backup verify /backups/shop --open", "the drill: is it whole, and does it open?"),
        ],
    },
    Page {
        name: "restore",
        summary: "make a directory from a backup and the log after it",
        forms: &["restore SOURCE DIR [OPTIONS]", "restore --list SOURCE"],
        about: "DIR must not exist, or be empty. Without an option everything up to the end of the archived log is restored. SOURCE may be - \
                for standard input.",
        options: &[
            ("--to 'TIME'", "as it was before the first commit after TIME"),
            ("--to-lsn LSN", "as of a position in the log"),
            ("--to-name NAME", "as of a restore point (pg_create_restore_point)"),
            ("--backup ID", "as of the end of one backup"),
            ("--epoch N", "along the history that ends with this epoch [the newest]"),
            ("--list", "the histories and moments that can be restored"),
        ],
        words: &[],
        examples: &[
            ("restore /backups/shop shop2", "the newest state"),
            ("restore /backups/shop shop2 --to '2026-11-22 13:59:00'", "just before the mistake"),
            ("restore --list s3://bucket/shop", "what can be had"),
        ],
    },
    Page {
        name: "check",
        summary: "check a directory, a schema, or the rules of who may connect",
        forms: &[
            "check DIR",
            "check schema [URL] [--min-rows N] [--json]",
            "check access FILE [--as TYPE DATABASE USER [ADDRESS]]",
        ],
        about: "A directory must not be served meanwhile. Every page, tree, index and constraint is read; damage is named by its place. \
                'check schema' reads the tables of a running server (Clearway, PostgreSQL or MariaDB) and says which columns, keys and indexes could be \
                better, by how much, and with which statements.",
        options: &[
            ("--min-rows N", "schema: tables with fewer rows are not judged by their data [1000]"),
            ("--json", "schema: print a list of objects"),
            (
                "--as TYPE DATABASE USER [ADDRESS]",
                "access: say which line of the file decides; TYPE is local, hostssl or hostnossl",
            ),
        ],
        words: &["access", "schema"],
        examples: &[
            ("check shop", "is this directory whole?"),
            ("check schema", "which columns, keys and indexes could be better?"),
            ("check access access.conf --as hostssl shop ann 10.0.0.7", "may ann connect from there, and how?"),
        ],
    },
    Page {
        name: "import",
        summary: "import the tables of a SQLite file",
        forms: &["import sqlite FILE [OPTIONS]"],
        about: "Tables come with data, keys, indexes and foreign keys; what could not be carried over is listed at the end.",
        options: &[
            ("--data DIR", "into which directory, also while a server or a program has it open [clearway-data]"),
            ("--schema NAME", "the schema of the tables [public]"),
            ("--keep-case", "keep capital letters in names; without it names are in lower case"),
        ],
        words: &["sqlite"],
        examples: &[("import sqlite app.db --data shop", "app.db into the directory shop")],
    },
    Page {
        name: "watch",
        summary: "the console of any server: Clearway, PostgreSQL, MariaDB",
        forms: &["watch [URL] [OPTIONS]", "metrics check FILE"],
        about: "A page that shows who waits for whom, and metrics for Prometheus, of a server that somebody already runs. The session that \
                watches only reads. A password comes from the environment (PGPASSWORD) rather than from the URL, which other users can see.",
        options: &[
            ("--http ADDRESS:PORT", "where the page is, on this machine [127.0.0.1:9187]"),
            ("--queries FILE", "queries in YAML whose results become metrics, as the exporters read them"),
            ("--interval SECONDS", "how often they run [60]"),
            ("--cancel", "the page may end the session that blocks others"),
            ("--processors N", "how many the server has, where it can't tell"),
        ],
        words: &[],
        examples: &[
            ("watch", "the server of this machine, at http://127.0.0.1:9187"),
            ("watch postgresql://monitor@db.example.org/postgres", "a PostgreSQL"),
            ("watch mysql://monitor@db.example.org/mysql", "a MariaDB"),
        ],
    },
    Page {
        name: "metrics",
        summary: "check a file of queries for 'watch' and 'serve --http'",
        forms: &["metrics check FILE"],
        about: "Each mistake is named with its line.",
        options: &[],
        words: &["check"],
        examples: &[("metrics check queries.yaml", "is the file well formed?")],
    },
    Page {
        name: "top",
        summary: "a server's sessions in a terminal",
        forms: &["top [URL] [OPTIONS]"],
        about: "Who is at work, who waits for whom, which statements cost most.",
        options: &[
            ("--cancel", "x may end what a session does"),
            ("--once", "print one screen and end"),
            ("--size 80x24", "of that many columns and lines"),
        ],
        words: &[],
        examples: &[("top", "the server of this machine"), ("top --once --size 120x40", "one screen, for a report")],
    },
    Page {
        name: "time",
        summary: "where the time of a command goes: database, I/O",
        forms: &["time [--target URL] -- COMMAND"],
        about: "It runs COMMAND and says how much of its time was database, how much of that I/O, and what a memory file system would save. \
                What other clients do meanwhile counts too.",
        options: &[("--target URL", "the server [postgresql://postgres@127.0.0.1:5433/clearway]")],
        words: &[],
        examples: &[("time -- ./run-tests", "is it the database that makes the tests slow?")],
    },
    Page {
        name: "demo",
        summary: "show what Clearway is for, in less than a minute",
        forms: &["demo [--no-wait]"],
        about: "It works in a scratch directory. Afterwards the server stays up, unless standard input is no terminal.",
        options: &[("--no-wait", "end when everything has been shown")],
        words: &[],
        examples: &[("demo", "five points, then a server to try them with psql")],
    },
    Page {
        name: "settings",
        summary: "every setting of server and sessions",
        forms: &["settings"],
        about: "With its default, its unit and its meaning, as docs/configuration.md has them.",
        options: &[],
        words: &[],
        examples: &[("settings", "print them all")],
    },
    Page {
        name: "lab",
        summary: "the contention lab: the same scenario against several servers",
        forms: &["lab list", "lab run NAME", "lab books", "lab --help"],
        about: "It runs the program clearway-lab, which is built beside this one (cargo build --release -p clearway-lab).",
        options: &[],
        words: &["list", "run", "books"],
        examples: &[("lab list", "the scenarios"), ("lab run hot-row", "one of them")],
    },
    Page {
        name: "completions",
        summary: "print the completions of a shell",
        forms: &["completions bash|zsh|fish"],
        about: "",
        options: &[],
        words: &["bash", "zsh", "fish"],
        examples: &[
            ("completions bash > /etc/bash_completion.d/clearway", "for every user of bash"),
            ("completions fish > ~/.config/fish/completions/clearway.fish", "for a user of fish"),
        ],
    },
    Page {
        name: "man",
        summary: "print the manual page",
        forms: &["man"],
        about: "",
        options: &[],
        words: &[],
        examples: &[("man > clearway.1 && man ./clearway.1", "read it")],
    },
];

/// The page of a subcommand.
pub fn page(name: &str) -> Option<&'static Page> {
    PAGES.iter().find(|page| page.name == name)
}

/// The subcommand whose name is nearest to a word that is none, if one is near.
pub fn nearest(word: &str) -> Option<&'static str> {
    let near = |name: &'static str| (distance(word, name), name);
    PAGES.iter().map(|page| near(page.name)).min().filter(|(distance, _)| *distance <= 2).map(|(_, name)| name)
}

/// How many letters must be put in, taken out or changed (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// The text of `--help`: of a subcommand, or of the program.
pub fn text(name: Option<&str>) -> String {
    name.and_then(page).map_or_else(overview, of_page)
}

fn overview() -> String {
    let mut out = "Clearway, a transactional SQL database that PostgreSQL's clients can talk to.\n\nUsage: clearway COMMAND [OPTIONS]\n\n".to_owned();
    for page in PAGES {
        described(&mut out, page.name, page.summary, 16);
    }
    out += "\n'clearway COMMAND --help' tells more, with examples.\n'clearway --version' tells the version.\n";
    out
}

fn of_page(page: &Page) -> String {
    let mut out = format!("clearway {}: {}\n\nUsage:\n", page.name, page.summary);
    for form in page.forms {
        let _ = writeln!(out, "  clearway {form}");
    }
    if !page.about.is_empty() {
        out.push('\n');
        filled(&mut out, page.about, 0);
    }
    if !page.options.is_empty() {
        out += "\nOptions:\n";
    }
    for (option, meaning) in page.options {
        described(&mut out, option, meaning, INDENT);
    }
    out += "\nExamples:\n";
    for (line, meaning) in page.examples {
        let _ = writeln!(out, "  clearway {line}");
        filled(&mut out, meaning, 6);
    }
    out
}

/// A name, and what it means in a column of its own.
fn described(out: &mut String, name: &str, meaning: &str, column: usize) {
    let mut text = String::new();
    filled(&mut text, meaning, column);
    if name.len() + 4 > column {
        let _ = write!(out, "  {name}\n{text}");
    } else {
        let _ = write!(out, "  {name}{}", &text[name.len() + 2..]);
    }
}

/// Words in lines of at most [`WIDTH`] columns, behind so many spaces.
pub fn filled(out: &mut String, text: &str, indent: usize) {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && indent + line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(out, "{:indent$}{line}", "");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    if !line.is_empty() {
        let _ = writeln!(out, "{:indent$}{line}", "");
    }
}

/// The options of a page as a shell completes them: `--data`.
fn long_options(page: &Page) -> impl Iterator<Item = &'static str> {
    page.options.iter().filter_map(|(option, _)| option.split([' ', ',']).find(|word| word.starts_with("--")))
}

/// The completions of a shell; none: it is not known.
pub fn completions(shell: &str) -> Option<String> {
    let names: Vec<&str> = PAGES.iter().map(|page| page.name).collect();
    let mut out = String::new();
    match shell {
        "bash" => {
            out += "_clearway() {\n    local word=${COMP_WORDS[COMP_CWORD]} words=\n    if [ \"$COMP_CWORD\" = 1 ]; then\n";
            let _ = writeln!(out, "        words='{} --help --version'", names.join(" "));
            out += "    else\n        case ${COMP_WORDS[1]} in\n";
            for page in PAGES {
                let words: Vec<&str> = page.words.iter().copied().chain(long_options(page)).chain(["--help"]).collect();
                let _ = writeln!(out, "        {}) words='{}' ;;", page.name, words.join(" "));
            }
            out += "        esac\n    fi\n    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\n";
            out += "complete -o default -F _clearway clearway\n";
        }
        "zsh" => {
            out += "#compdef clearway\nif (( CURRENT == 2 )); then\n    local -a commands=(\n";
            for page in PAGES {
                let _ = writeln!(
                    out,
                    "        '{}:{}'",
                    page.name,
                    page.summary.replace(':', "\\:").replace('\'', "'\\''")
                );
            }
            out += "    )\n    _describe command commands\nelse\n    case $words[2] in\n";
            for page in PAGES {
                let words: Vec<&str> = page.words.iter().copied().chain(long_options(page)).chain(["--help"]).collect();
                let _ = writeln!(out, "        {}) compadd -- {} ;;", page.name, words.join(" "));
            }
            out += "    esac\n    _files\nfi\n";
        }
        "fish" => {
            for page in PAGES {
                let (name, summary) = (page.name, page.summary.replace('\'', "\\'"));
                let _ = writeln!(out, "complete -c clearway -n __fish_use_subcommand -a {name} -d '{summary}'");
                for word in page.words {
                    let _ = writeln!(out, "complete -c clearway -n '__fish_seen_subcommand_from {name}' -a {word}");
                }
                for option in long_options(page) {
                    let option = option.trim_start_matches("--");
                    let _ = writeln!(out, "complete -c clearway -n '__fish_seen_subcommand_from {name}' -l {option}");
                }
            }
        }
        _ => return None,
    }
    Some(out)
}

/// The manual page, for man.
pub fn man() -> String {
    let safe = |text: &str| text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq");
    let mut out = format!(".TH CLEARWAY 1 \"\" \"clearway {}\"\n", env!("CARGO_PKG_VERSION"));
    out += ".SH NAME\nclearway \\- a transactional SQL database that PostgreSQL's clients can talk to\n";
    out += ".SH SYNOPSIS\n.B clearway\n.I COMMAND\n[\\fIOPTIONS\\fR]\n.SH COMMANDS\n";
    for page in PAGES {
        let _ = writeln!(out, ".SS {}", page.name);
        for form in page.forms {
            let _ = writeln!(out, ".B clearway {}\n.br", safe(form));
        }
        let _ = writeln!(out, "{}{}.", page.summary[..1].to_uppercase(), safe(&page.summary[1..]));
        if !page.about.is_empty() {
            let _ = writeln!(out, "{}", safe(page.about));
        }
        for (option, meaning) in page.options {
            let _ = writeln!(out, ".TP\n.B {}\n{}", safe(option), safe(meaning));
        }
        for (line, meaning) in page.examples {
            let _ = writeln!(out, ".PP\n.EX\nclearway {}\n.EE\n{}", safe(line), safe(meaning));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where options are read.
    const SOURCES: [&str; 6] = [
        include_str!("args.rs"),
        include_str!("watch.rs"),
        include_str!("backup/args.rs"),
        include_str!("import/mod.rs"),
        include_str!("time.rs"),
        include_str!("schema.rs"),
    ];

    #[test]
    fn every_page_fits_eighty_columns_and_has_examples() {
        assert!(text(None).lines().all(|line| line.len() <= WIDTH), "{}", text(None));
        for page in PAGES {
            let text = text(Some(page.name));
            let wide: Vec<&str> = text.lines().filter(|line| line.len() > WIDTH).collect();
            assert!(wide.is_empty(), "{}: {wide:?}", page.name);
            assert!(!page.examples.is_empty(), "{}", page.name);
        }
    }

    #[test]
    fn every_option_that_is_read_stands_on_a_page_and_the_other_way() {
        let mut read: Vec<&str> = SOURCES.iter().flat_map(|source| source.split("Long(\"").skip(1)).collect();
        read = read.into_iter().filter_map(|rest| rest.split('"').next()).collect();
        // --load is how the demonstration starts itself.
        read.retain(|option| !matches!(*option, "help" | "version" | "load"));
        let shown: Vec<&str> =
            PAGES.iter().flat_map(long_options).map(|option| option.trim_start_matches("--")).collect();
        assert_eq!(read.iter().find(|option| !shown.contains(option)), None);
        assert_eq!(shown.iter().find(|option| !read.contains(option)), None);
    }

    #[test]
    fn a_word_that_is_nearly_a_command_leads_to_it() {
        assert_eq!(
            ["serv", "bakcup", "tops", "xyz", ""].map(nearest),
            [Some("serve"), Some("backup"), Some("top"), None, None]
        );
        assert_eq!((distance("", "ab"), distance("kitten", "sitting"), distance("a", "a")), (2, 3, 0));
    }

    #[test]
    fn the_manual_page_has_no_line_that_troff_would_take_for_a_request() {
        let known = [".TH", ".SH", ".SS", ".TP", ".PP", ".EX", ".EE", ".B", ".I", ".br"];
        for line in man().lines().filter(|line| line.starts_with(['.', '\''])) {
            assert!(known.contains(&line.split(' ').next().unwrap_or("")), "{line}");
        }
    }
}
