//! A simple fuzzer for stable Rust: mutates seeds at random, reproducibly by stream number.
//!
//! `mutate resp|memcached EXECUTIONS [FIRST]` generates and checks that many streams, starting with
//! number FIRST (0). A failing stream is printed with its number and written to `artifacts/`.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use cachedyno_fuzz::{check, own_value};
use stats::SplitMix64;
use workloads::kv::numbers;

/// Seed of all streams.
const SEED: u64 = 20;
/// Maximum length of a stream, in bytes.
const BYTES_MAX: usize = 600;
/// Protocol fragments that a mutation can insert.
const WORDS: [&[u8]; 48] = [
    b"\r\n",
    b"\r",
    b"\n",
    b"+OK\r\n",
    b"$-1\r\n",
    b"*-1\r\n",
    b"_\r\n",
    b"*2\r\n",
    b"%1\r\n",
    b"~1\r\n",
    b">1\r\n",
    b"|1\r\n",
    b"$?\r\n",
    b"*?\r\n",
    b";3\r\nabc\r\n",
    b";0\r\n",
    b".\r\n",
    b"=7\r\ntxt:abc\r\n",
    b"!5\r\nERR x\r\n",
    b"#t\r\n",
    b",1.5\r\n",
    b"(123\r\n",
    b":1\r\n",
    b"-ERR no\r\n",
    b"-MOVED 1 ::1:7000\r\n",
    b"-ASK 16383 :1\r\n",
    b"-OOM x\r\n",
    b"*4294967296\r\n",
    b"$999999999999999999\r\n",
    b"VALUE k5 0 3\r\nabc\r\nEND\r\n",
    b"VALUE k5 0 ",
    b"END\r\n",
    b"VA 3\r\nabc\r\n",
    b"VA 3 kk5 b\r\nabc\r\n",
    b"HD\r\n",
    b"HD kk5\r\n",
    b"EN\r\n",
    b"NF\r\n",
    b"NS\r\n",
    b"EX\r\n",
    b"MN\r\n",
    b"STORED\r\n",
    b"NOT_FOUND\r\n",
    b"STAT a b\r\n",
    b"ERROR\r\n",
    b"SERVER_ERROR out of memory x\r\n",
    b"12\r\n",
    b" ",
];
/// Bytes with a meaning in the protocols.
const BYTES: &[u8] = b"\r\n$*%~>|?;.:+-_#,(!=0123456789 kVAEHD\x00\xff";

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "expected: resp|memcached EXECUTIONS [FIRST]";
    let [target, executions, first @ ..] = arguments.as_slice() else { return Err(usage.into()) };
    let check_stream: fn(&[u8]) = match target.as_str() {
        "resp" => check::<drivers::redis::Replies>,
        "memcached" => check::<drivers::memcached::Replies>,
        _ => return Err(usage.into()),
    };
    let first: u64 = first.first().map_or(Ok(0), |text| text.parse())?;
    let last = first + executions.parse::<u64>()?;
    let seeds = seeds(target)?;
    let started = Instant::now();
    for n in first..last {
        let stream = stream(&seeds, n);
        if catch_unwind(AssertUnwindSafe(|| check_stream(&stream))).is_err() {
            let path = format!("{}/artifacts/{target}-{n}", env!("CARGO_MANIFEST_DIR"));
            std::fs::create_dir_all(Path::new(&path).parent().unwrap_or(Path::new(".")))?;
            std::fs::write(&path, &stream)?;
            println!("number {n} of {target} fails: {} (in {path})", stream.escape_ascii());
            return Ok(ExitCode::FAILURE);
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{target}: {} streams from {} seeds passed, numbers {first} to {}, in {seconds:.0} s",
        last - first,
        seeds.len(),
        last - 1
    );
    Ok(ExitCode::SUCCESS)
}

/// Replies of real servers, and verifiable values in every reply form that contains values.
fn seeds(target: &str) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let mut paths = std::fs::read_dir(&directory)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    // Sorted, so that stream numbers are reproducible on every machine.
    paths.sort();
    let mut seeds = paths.iter().map(std::fs::read).collect::<Result<Vec<_>, _>>()?;
    let value = own_value(1);
    let framed = |head: &[u8], tail: &[u8]| [head, &value, tail].concat();
    if target == "resp" {
        seeds.push(framed(b"$100\r\n", b"\r\n"));
        seeds.push(framed(b"=104\r\ntxt:", b"\r\n+OK\r\n"));
        let pieces = [b"$?\r\n;60\r\n", &value[..60], b"\r\n;40\r\n", &value[60..], b"\r\n;0\r\n"];
        seeds.push(pieces.concat());
    } else {
        seeds.push(framed(b"VALUE key:05 0 100\r\n", b"\r\nEND\r\n"));
        seeds.push(framed(b"VA 100 kkey:05 t1\r\n", b"\r\nHD\r\n"));
    }
    Ok(seeds)
}

/// Stream number `n`: a part of one or two seeds with up to eight mutations.
fn stream(seeds: &[Vec<u8>], n: u64) -> Vec<u8> {
    let mut random = numbers(SEED, 0, n);
    let mut stream = part(seeds, &mut random).to_vec();
    for _ in 0..random.below(9) {
        change(&mut stream, seeds, &mut random);
    }
    stream.truncate(BYTES_MAX);
    stream
}

fn part<'a>(seeds: &'a [Vec<u8>], random: &mut SplitMix64) -> &'a [u8] {
    let seed = &seeds[random.below(seeds.len() as u64) as usize];
    let from = if random.below(3) == 0 { at(seed, random) } else { 0 };
    &seed[from..seed.len().min(from + BYTES_MAX)]
}

/// A random position in a stream, including its end.
fn at(stream: &[u8], random: &mut SplitMix64) -> usize {
    random.below(stream.len() as u64 + 1) as usize
}

fn change(stream: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut SplitMix64) {
    let from = at(stream, random);
    let to = (from + 1 + random.below(16) as usize).min(stream.len());
    let one = |of: &[u8], random: &mut SplitMix64| of[random.below(of.len() as u64) as usize];
    match random.below(9) {
        0 if from < stream.len() => stream[from] ^= 1 << random.below(8),
        1 if from < stream.len() => stream[from] = one(BYTES, random),
        2 => stream.insert(from, one(BYTES, random)),
        3 => {
            stream.drain(from..to);
        }
        4 => {
            let copy = stream[from..to].to_vec();
            stream.splice(from..from, copy);
        }
        5 => {
            let word = WORDS[random.below(WORDS.len() as u64) as usize];
            stream.splice(from..from, word.iter().copied());
        }
        6 => {
            let word = WORDS[random.below(WORDS.len() as u64) as usize];
            stream.splice(from..to, word.iter().copied());
        }
        7 => {
            let tail = part(seeds, random).to_vec();
            stream.truncate(from);
            stream.extend(tail);
        }
        // Replace a number with another one.
        _ => {
            if let Some(digit) = stream.iter().skip(from).position(u8::is_ascii_digit) {
                let bound = [10, 100, 5_000, u64::MAX][random.below(4) as usize];
                let number = random.below(bound).to_string();
                stream.splice(from + digit..=from + digit, number.bytes());
            }
        }
    }
}
