//! A model server for measurements: answers every Chat Completions request after a fixed time, and
//! costs as little as possible itself.
//!
//! `bench-server PORT MILLISECONDS`. A request whose user message begins with `## Context` is an
//! attempt and gets an answer that is right for about half of the items; every other one gets one
//! JSON object in which each optimizer stage finds what it looks for. `GET /` says how many
//! requests were answered and the most that were open at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

static ANSWERED: AtomicUsize = AtomicUsize::new(0);
static OPEN: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let mut args = std::env::args().skip(1);
    let mut number = |default: u64| {
        args.next()
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let (port, delay) = (number(8099), Duration::from_millis(number(20)));
    let listener = TcpListener::bind(("127.0.0.1", u16::try_from(port).unwrap_or(8099))).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(async move {
            // A client that goes away is none of our business.
            let _ = serve(stream, delay).await;
        });
    }
}

async fn serve(stream: TcpStream, delay: Duration) -> std::io::Result<()> {
    let mut stream = BufReader::with_capacity(16 << 10, stream);
    let mut line = String::new();
    loop {
        let (mut length, mut is_get, mut first) = (0, false, true);
        loop {
            line.clear();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            if first {
                (is_get, first) = (line.starts_with("GET"), false);
            }
            let header = line.trim_end();
            if header.is_empty() {
                break;
            }
            if let Some((name, value)) = header.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await?;
        let reply = if is_get {
            let (answered, most) = (
                ANSWERED.load(Ordering::Relaxed),
                MOST.load(Ordering::Relaxed),
            );
            format!(r#"{{"answered": {answered}, "most_open": {most}}}"#)
        } else {
            let open = OPEN.fetch_add(1, Ordering::Relaxed) + 1;
            MOST.fetch_max(open, Ordering::Relaxed);
            tokio::time::sleep(delay).await;
            OPEN.fetch_sub(1, Ordering::Relaxed);
            ANSWERED.fetch_add(1, Ordering::Relaxed);
            completion(&body)
        };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            reply.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(reply.as_bytes()).await?;
        stream.flush().await?;
    }
}

/// What an optimizer answers, whatever it was asked. `NOTE` becomes a number that the request
/// decides, so that every step makes another candidate.
const OPTIMIZER: &str = r#"{"reasoning":"r","batch_size":8,"failure_summary":[],"success_patterns":[],"selected_indices":[0,1,2,3],"patch":{"reasoning":"r","edits":[{"op":"append","content":"- Note NOTE."}]},"edits":[{"op":"append","content":"- Note NOTE."}]}"#;

fn completion(body: &[u8]) -> String {
    let is_attempt = find(body, b"\"## Context").is_some();
    let content = if is_attempt {
        // The question decides, so that the same item always has the same result.
        let at = find(body, b"## Question").unwrap_or(0);
        let sum: usize = body[at..]
            .iter()
            .take(60)
            .map(|byte| usize::from(*byte))
            .sum();
        let word = if sum.is_multiple_of(2) {
            "gold"
        } else {
            "lead"
        };
        format!("<answer>{word}</answer>")
    } else {
        let number = body.iter().fold(7_u32, |number, byte| {
            number.wrapping_mul(31).wrapping_add(u32::from(*byte))
        });
        OPTIMIZER.replace("NOTE", &number.to_string())
    };
    let content = content.replace('"', "\\\"");
    format!(
        r#"{{"id":"b","object":"chat.completion","created":1,"model":"bench","choices":[{{"index":0,"finish_reason":"stop","message":{{"role":"assistant","content":"{content}"}}}}],"usage":{{"prompt_tokens":{},"completion_tokens":{},"total_tokens":{}}}}}"#,
        body.len() / 4,
        content.len() / 4,
        (body.len() + content.len()) / 4
    )
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}
