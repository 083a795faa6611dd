//! A server that only speaks PostgreSQL's protocol. Its rate is the limit that sockets, kernel and load generator set for any database.
//!
//! Every statement that begins with SELECT returns one row with the integer 1, every other statement returns none. Nothing is parsed, stored
//! or looked up. The server is for the load generator only: it checks no password, and its only state is the shape of the prepared
//! statements.

use std::collections::HashMap;
use std::net::SocketAddr;

use bytes::{Buf as _, BufMut as _, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The type `integer`.
const INT4: u32 = 23;

/// Serves until the process ends.
///
/// # Errors
/// The address can't be used.
pub fn serve(address: SocketAddr) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpSocket::new_v4()?;
        listener.set_reuseaddr(true)?;
        listener.bind(address)?;
        let listener: TcpListener = listener.listen(4096)?;
        loop {
            let (stream, _) = listener.accept().await?;
            // A client that goes away in the middle is no affair of the others.
            tokio::spawn(async move { drop(one(stream).await) });
        }
    })
}

async fn one(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut input, mut output) = (BytesMut::with_capacity(8192), BytesMut::with_capacity(8192));
    let length = loop {
        if input.len() >= 4 {
            let length = u32::from_be_bytes([input[0], input[1], input[2], input[3]]) as usize;
            if input.len() >= length {
                break length;
            }
        }
        if stream.read_buf(&mut input).await? == 0 {
            return Ok(());
        }
    };
    input.advance(length);
    message(&mut output, b'R', |body| body.put_u32(0));
    message(&mut output, b'S', |body| body.put_slice(b"server_version\0wire only\0"));
    message(&mut output, b'S', |body| body.put_slice(b"client_encoding\0UTF8\0"));
    ready(&mut output);
    let mut statements = HashMap::new();
    loop {
        while let Some((kind, body)) = next(&mut input) {
            if kind == b'X' {
                return Ok(());
            }
            answer(kind, &body, &mut statements, &mut output);
        }
        stream.write_all(&output).await?;
        output.clear();
        if stream.read_buf(&mut input).await? == 0 {
            return Ok(());
        }
    }
}

/// The next whole message.
fn next(input: &mut BytesMut) -> Option<(u8, BytesMut)> {
    let kind = *input.first()?;
    let length = u32::from_be_bytes(input.get(1..5)?.try_into().ok()?) as usize;
    (length >= 4 && input.len() > length).then(|| {
        input.advance(5);
        (kind, input.split_to(length - 4))
    })
}

/// What is known of a statement: whether it has rows, and its number of parameters.
type Shape = (bool, u16);

fn answer(kind: u8, body: &[u8], statements: &mut HashMap<Vec<u8>, Shape>, output: &mut BytesMut) {
    let mut texts = body.split(|byte| *byte == 0);
    let mut text = || texts.next().unwrap_or_default();
    match kind {
        b'P' => {
            let (name, sql) = (text().to_vec(), text());
            statements.insert(name, shape(sql));
            message(output, b'1', |_| {});
        }
        b'D' => {
            let (has_rows, parameters) =
                statements.get(text().get(1..).unwrap_or_default()).copied().unwrap_or_default();
            message(output, b't', |body| {
                body.put_u16(parameters);
                (0..parameters).for_each(|_| body.put_u32(INT4));
            });
            if has_rows { columns(output) } else { message(output, b'n', |_| {}) }
        }
        b'B' => {
            let (_, name) = (text(), text());
            // Execute has no name of the statement: the portal stands for it.
            let shape = statements.get(name).copied().unwrap_or_default();
            statements.insert(b"\0portal".to_vec(), shape);
            message(output, b'2', |_| {});
        }
        b'E' => {
            let has_rows = statements.get(&b"\0portal"[..]).is_some_and(|shape| shape.0);
            rows(has_rows, output, |body| body.put_i32(1));
        }
        b'C' => message(output, b'3', |_| {}),
        b'Q' => {
            let has_rows = shape(text()).0;
            if has_rows {
                columns(output);
            }
            rows(has_rows, output, |body| body.put_u8(b'1'));
            ready(output);
        }
        b'S' => ready(output),
        _ => {}
    }
}

fn shape(sql: &[u8]) -> Shape {
    let has_rows = sql.get(..6).is_some_and(|word| word.eq_ignore_ascii_case(b"select"));
    let parameters = (1..=9).take_while(|n| sql.windows(2).any(|two| two == [b'$', b'0' + n])).count();
    (has_rows, parameters as u16)
}

fn columns(output: &mut BytesMut) {
    message(output, b'T', |body| {
        body.put_u16(1);
        body.put_slice(b"b\0");
        body.put_u32(0);
        body.put_u16(0);
        body.put_u32(INT4);
        body.put_i16(4);
        body.put_i32(-1);
        body.put_u16(0);
    });
}

fn rows(has_rows: bool, output: &mut BytesMut, value: impl FnOnce(&mut BytesMut)) {
    if has_rows {
        let mut field = BytesMut::new();
        value(&mut field);
        message(output, b'D', |body| {
            body.put_u16(1);
            body.put_u32(field.len() as u32);
            body.put_slice(&field);
        });
    }
    message(output, b'C', |body| body.put_slice(if has_rows { b"SELECT 1\0" } else { b"UPDATE 1\0" }));
}

fn ready(output: &mut BytesMut) {
    message(output, b'Z', |body| body.put_u8(b'I'));
}

fn message(output: &mut BytesMut, kind: u8, body: impl FnOnce(&mut BytesMut)) {
    output.put_u8(kind);
    let at = output.len();
    output.put_u32(0);
    body(output);
    let length = (output.len() - at) as u32;
    output[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_and_messages() {
        assert_eq!(shape(b"SELECT b FROM t WHERE a = $1 AND c = $2"), (true, 2));
        assert_eq!(shape(b"UPDATE t SET a = 1"), (false, 0));
        let mut output = BytesMut::new();
        ready(&mut output);
        assert_eq!(&output[..], b"Z\0\0\0\x05I");
        let mut input = output.clone();
        assert_eq!(next(&mut input).map(|(kind, body)| (kind, body.to_vec())), Some((b'Z', b"I".to_vec())));
        assert_eq!(next(&mut BytesMut::from(&b"Z\0\0\0\x05"[..])), None);
    }
}
