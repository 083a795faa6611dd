//! Mutated messages in every state that a connection can be in: before the startup packet, at the first and the second message of an
//! authentication, idle, in a batch after an error, in a suspended portal, in a block, in a failed block, in COPY both ways, while a
//! statement is being cancelled. Whatever arrives, the server answers within the protocol or closes the connection, no client gets in
//! without the password, and another session continues.
//!
//! CI sends a few thousand; `CLEARWAY_FUZZ=1000000 cargo test -p clearway-server --test it states` sends that many in each state, and
//! `CLEARWAY_FUZZ_SEED` sets the first seed.

use clearway_base::testkit::Rng;
use clearway_server::access;
use clearway_server::server::ListenOptions;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::fuzz::{damage, samples};
use crate::stub::start;

/// Messages in each state, in CI.
const MESSAGES: u64 = 600;

fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn startup(user: &str) -> Vec<u8> {
    let mut body = 196_608u32.to_be_bytes().to_vec();
    body.extend_from_slice(format!("user\0{user}\0\0").as_bytes());
    let mut packet = (body.len() as u32 + 4).to_be_bytes().to_vec();
    packet.extend_from_slice(&body);
    packet
}

fn first_message() -> Vec<u8> {
    let first = b"n,,n=,r=abcdefgh";
    let mut body = b"SCRAM-SHA-256\0".to_vec();
    body.extend_from_slice(&(first.len() as u32).to_be_bytes());
    body.extend_from_slice(first);
    body
}

/// A state: its name, the role, what brings a connection there, and the messages that belong there.
struct State {
    name: &'static str,
    user: &'static str,
    before: Vec<Vec<u8>>,
    belongs: Vec<(u8, Vec<u8>)>,
}

fn states() -> Vec<State> {
    let all = samples();
    let state = |name, user, before, belongs| State { name, user, before, belongs };
    let last = b"c=biws,r=abcdefgh,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".to_vec();
    let parse = frame(b'P', b"s\0rows 9\0\0\0");
    let bind = frame(b'B', b"p\0s\0\0\0\0\0\0\0");
    vec![
        state("start", "", Vec::new(), vec![(0, startup("me")), (0, vec![0, 0, 0, 8, 4, 210, 22, 47])]),
        state("first proof", "secret", Vec::new(), vec![(b'p', first_message())]),
        state("last proof", "secret", vec![frame(b'p', &first_message())], vec![(b'p', last)]),
        state("idle", "me", Vec::new(), all.clone()),
        state("after an error", "me", vec![frame(b'P', b"\0fail\0\0\0")], all.clone()),
        state("suspended", "me", vec![parse, bind, frame(b'E', b"p\0\0\0\0\x02")], all.clone()),
        state("in a block", "me", vec![frame(b'Q', b"begin\0")], all.clone()),
        state("in a failed block", "me", vec![frame(b'Q', b"begin\0"), frame(b'Q', b"fail\0")], all.clone()),
        state("copy in", "me", vec![frame(b'Q', b"copyin\0")], all.clone()),
        state("copy out", "me", vec![frame(b'Q', b"copyout 300\0")], all.clone()),
        state(CANCELLED, "me", vec![frame(b'Q', b"sleep\0")], all),
    ]
}

/// A mutated message of a state; few lie about their length.
fn message(rng: &mut Rng, state: &State) -> Vec<u8> {
    let (mut tag, mut body) = state.belongs[rng.below(state.belongs.len() as u64) as usize].clone();
    damage(rng, &mut body);
    if tag == 0 {
        return body;
    }
    if rng.below(20) == 0 {
        tag = rng.below(256) as u8;
    }
    let mut bytes = frame(tag, &body);
    if rng.below(30) == 0 {
        bytes[1..5].copy_from_slice(&(rng.below(1 << 17) as u32).to_be_bytes());
    }
    bytes
}

/// The state in which a statement waits until it is cancelled.
const CANCELLED: &str = "being cancelled";

/// Asks for a statement's end as long as its session goes on: a request that comes before the statement does nothing.
async fn cancel(address: std::net::SocketAddr, answer: &[u8]) {
    let Some(at) = answer.windows(5).position(|bytes| bytes == [b'K', 0, 0, 0, 12]) else { return };
    let Some(key) = answer.get(at + 5..at + 13) else { return };
    let request = [&[0, 0, 0, 16, 4, 210, 22, 46][..], key].concat();
    loop {
        if let Ok(mut stream) = TcpStream::connect(address).await {
            let _ = stream.write_all(&request).await;
            let _ = stream.read_u8().await;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

/// Sends everything and gives everything that comes back.
async fn exchange(address: std::net::SocketAddr, state: &State, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.expect("connects");
    let mut answer = Vec::new();
    // The server may have closed already.
    if state.name != CANCELLED {
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        let _ = stream.read_to_end(&mut answer).await;
        return answer;
    }
    let first = startup(state.user).len();
    let _ = stream.write_all(&bytes[..first]).await;
    while !answer.ends_with(&[b'Z', 0, 0, 0, 5, b'I']) {
        assert!(stream.read_buf(&mut answer).await.expect("answers") > 0, "no answer to the start");
    }
    let key = answer.clone();
    let rest = async {
        let _ = stream.write_all(&bytes[first..]).await;
        let _ = stream.shutdown().await;
        let _ = stream.read_to_end(&mut answer).await;
    };
    tokio::select! {
        () = rest => {}
        () = cancel(address, &key) => {}
    }
    answer
}

/// Whether an answer lets the client in: AuthenticationOk, which only the password may bring.
fn lets_in(answer: &[u8]) -> bool {
    answer.windows(9).any(|bytes| bytes == [b'R', 0, 0, 0, 8, 0, 0, 0, 0])
}

#[test]
fn every_state_outlives_mutated_messages() {
    let wanted = asked("CLEARWAY_FUZZ").unwrap_or(MESSAGES);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let options = ListenOptions { message_bytes: 1 << 16, ..ListenOptions::default() };
        let (server, address) = start(options.clone()).await;
        let (closed, behind_password) = start(ListenOptions { password_on_loopback: true, ..options }).await;
        let states = states();
        let (mut sent, mut seed) = (vec![0; states.len()], asked("CLEARWAY_FUZZ_SEED").unwrap_or(0));
        while sent.iter().any(|sent| *sent < wanted) {
            let mut rng = Rng::new(seed);
            let at = (seed % states.len() as u64) as usize;
            let state = &states[at];
            let place = if state.user == "secret" { behind_password } else { address };
            // Else each login that fails would make the next one wait.
            closed.failures.succeeded(Some(address.ip()), "secret");
            let mut bytes = if state.user.is_empty() { Vec::new() } else { startup(state.user) };
            bytes.extend(state.before.concat());
            for _ in 0..=rng.below(40) {
                bytes.extend(message(&mut rng, state));
                sent[at] += 1;
            }
            let answer = exchange(place, state, &bytes).await;
            assert!(state.user != "secret" || !lets_in(&answer), "seed {seed}, {}: let in", state.name);
            if state.user == "me" {
                assert!(lets_in(&answer), "seed {seed}, {}: no answer to the start", state.name);
            }
            seed += 1;
        }
        for (state, sent) in states.iter().zip(&sent) {
            println!("{}: {sent} messages", state.name);
        }
        while server.backends.count() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        let mut stream = TcpStream::connect(address).await.expect("connects");
        stream.write_all(&startup("me")).await.expect("sent");
        assert_eq!(stream.read_u8().await.expect("answers"), b'R');
    });
}

/// The access file, mutated: each line is a rule or says why it is none, rules are what their text says, and nothing panics.
#[test]
fn the_access_file_takes_anything() {
    let good = "# TYPE DATABASE USER ADDRESS METHOD\nlocal all \"all\",+staff peer\nhost a,b, c u 10.0.0.0/8 scram-sha-256 # x\n\
                hostssl all all ::1 ffff:: cert clientcert=verify-full\nhostnossl sameuser \\\n all all reject\n";
    let (mut rules, mut refused) = (0u64, 0u64);
    let times = asked("CLEARWAY_FUZZ").unwrap_or(20_000);
    for seed in 0..times {
        let mut rng = Rng::new(seed);
        let mut bytes = good.as_bytes().to_vec();
        damage(&mut rng, &mut bytes);
        damage(&mut rng, &mut bytes);
        let text = String::from_utf8_lossy(&bytes);
        for line in access::read(&text) {
            let Ok(rule) = line.rule else {
                refused += 1;
                continue;
            };
            rules += 1;
            // Names with blanks, commas and quotes are written as they are.
            let plain = rule.databases.iter().chain(&rule.users).all(|word| {
                let word = word.shown();
                word.chars().all(|c| c.is_ascii_alphanumeric() || c == '+') && word.trim_start_matches('+') != "all"
            });
            if plain {
                let again = access::read(&rule.text());
                let same = again.first().and_then(|line| line.rule.as_ref().ok());
                assert_eq!(same.map(access::Rule::text), Some(rule.text()), "seed {seed}");
            }
        }
    }
    assert!(rules > times && refused > times / 10, "{rules} rules, {refused} refused");
}
