//! A fixed number of random and of damaged messages: decoders and a live server give errors, never a panic or a hang.

use clearway_base::testkit::Rng;
use clearway_server::server::ListenOptions;
use clearway_server::wire::frontend::{self, Framing};
use clearway_server::wire::startup;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::stub::start;

const INPUTS: u64 = 200_000;
const CONNECTIONS: u64 = 300;

/// Well-formed messages to damage.
pub fn samples() -> Vec<(u8, Vec<u8>)> {
    vec![
        (b'Q', b"rows 3\0".to_vec()),
        (b'P', b"s\0rows $1\0\0\x02\0\0\0\x17\0\0\0\x19".to_vec()),
        (b'B', b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x01x\xff\xff\xff\xff\0\x01\0\0".to_vec()),
        (b'D', b"Ss\0".to_vec()),
        (b'C', b"Pp\0".to_vec()),
        (b'E', b"p\0\0\0\0\x05".to_vec()),
        (b'H', Vec::new()),
        (b'S', Vec::new()),
        (b'd', b"1\t2\n".to_vec()),
        (b'f', b"no\0".to_vec()),
        (b'p', b"SCRAM-SHA-256\0\0\0\0\x03n,,".to_vec()),
        (b'F', b"\0\0\0\x07\0\x01\0\x01\0\x02\0\0\0\x01x\xff\xff\xff\xff\0\0".to_vec()),
    ]
}

pub fn damage(rng: &mut Rng, body: &mut Vec<u8>) {
    for _ in 0..rng.below(4) {
        let at = rng.below(body.len() as u64 + 1) as usize;
        match rng.below(4) {
            0 => body.truncate(at),
            1 => body.insert(at, rng.below(256) as u8),
            2 if at < body.len() => body[at] = [0, 1, 0x7f, 0x80, 0xff][rng.below(5) as usize],
            _ if at < body.len() => body[at] ^= 1 << rng.below(8),
            _ => {}
        }
    }
}

#[test]
fn decoders_take_anything() {
    let (mut taken, mut refused) = (0u64, 0u64);
    for seed in 0..INPUTS {
        let mut rng = Rng::new(seed);
        let samples = samples();
        let (mut tag, mut body) = samples[rng.below(samples.len() as u64) as usize].clone();
        damage(&mut rng, &mut body);
        if rng.below(20) == 0 {
            tag = rng.below(256) as u8;
        }
        match frontend::decode(tag, &body) {
            Ok(_) => taken += 1,
            Err(_) => refused += 1,
        }
        let _ = startup::length(&body);
        let _ = startup::decode(&body);
        if let Ok(Framing::Whole(frame)) = frontend::frame(&body, 0, 1 << 20) {
            assert!(frame.body.end <= body.len(), "WIRE-1, seed {seed}");
        }
    }
    assert!(taken > INPUTS / 10 && refused > INPUTS / 10, "{taken} taken, {refused} refused");
}

#[test]
fn a_server_outlives_damaged_sessions() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let (server, address) = start(ListenOptions { message_bytes: 1 << 16, ..ListenOptions::default() }).await;
        for seed in 0..CONNECTIONS {
            let mut rng = Rng::new(seed);
            let mut stream = TcpStream::connect(address).await.expect("connects");
            let mut bytes = b"\0\0\0\x11\0\x03\0\0user\0me\0\0".to_vec();
            if rng.below(10) == 0 {
                damage(&mut rng, &mut bytes);
            }
            for _ in 0..rng.below(30) {
                let samples = samples();
                let (tag, mut body) = samples[rng.below(samples.len() as u64) as usize].clone();
                damage(&mut rng, &mut body);
                bytes.push(tag);
                let lie = if rng.below(30) == 0 { rng.below(1 << 17) as u32 } else { 0 };
                bytes.extend_from_slice(&(body.len() as u32 + 4 + lie).to_be_bytes());
                bytes.extend_from_slice(&body);
            }
            // The server may have closed already.
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer).await;
        }
        while server.backends.count() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        let mut stream = TcpStream::connect(address).await.expect("connects");
        stream.write_all(b"\0\0\0\x11\0\x03\0\0user\0me\0\0").await.expect("sent");
        assert_eq!(stream.read_u8().await.expect("answers"), b'R');
    });
}
