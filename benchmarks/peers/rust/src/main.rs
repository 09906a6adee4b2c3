//! kafka-protocol as a peer: "load PATH", then "run WORK PASSES" -> "wall_ns cpu_ns records check".
use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{
    ApiVersionsResponse, FetchRequest, FetchResponse, HeartbeatRequest, MetadataResponse, ProduceRequest,
};
use kafka_protocol::protocol::{Decodable, Encodable};
use kafka_protocol::records::{Compression, Record, RecordBatchDecoder, RecordBatchEncoder, RecordEncodeOptions};
use std::io::{BufRead, Write};
use std::time::Instant;

fn cpu() -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

fn decode(data: &Bytes) -> (u64, i64) {
    let (mut count, mut check) = (0u64, 0i64);
    let mut left = data.clone();
    while !left.is_empty() {
        let set = RecordBatchDecoder::decode(&mut left).unwrap();
        for r in &set.records {
            count += 1;
            check = check
                .wrapping_add(r.offset)
                .wrapping_add(r.timestamp)
                .wrapping_add(r.key.as_ref().map_or(0, |k| k.len() as i64))
                .wrapping_add(r.value.as_ref().map_or(0, |v| v.len() as i64));
        }
    }
    (count, check)
}

fn encode(sets: &[Vec<Record>]) -> (u64, i64) {
    let options = RecordEncodeOptions { version: 2, compression: Compression::None };
    let (mut count, mut check) = (0u64, 0i64);
    let mut out = BytesMut::with_capacity(1 << 21);
    for set in sets {
        out.clear();
        RecordBatchEncoder::encode(&mut out, set, &options).unwrap();
        count += set.len() as u64;
        check += out.len() as i64;
    }
    (count, check)
}

fn crc(data: &[u8], size: usize) -> (u64, i64) {
    let (mut count, mut check) = (0u64, 0i64);
    for block in data.chunks_exact(size) {
        count += 1;
        check = check.wrapping_add(crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, block) as i64);
    }
    (count, check)
}

const INNER: usize = 20;

fn messages<T: Decodable + Encodable + 'static>(encoding: bool, data: &Bytes, version: i16) -> Box<dyn Fn() -> (u64, i64)> {
    let data = data.clone();
    if !encoding {
        return Box::new(move || {
            for _ in 0..INNER {
                std::hint::black_box(T::decode(&mut data.clone(), version).unwrap());
            }
            (INNER as u64, 0)
        });
    }
    let message = T::decode(&mut data.clone(), version).unwrap();
    let out = std::cell::RefCell::new(BytesMut::with_capacity(1 << 20));
    Box::new(move || {
        let mut out = out.borrow_mut();
        let mut check = 0;
        for _ in 0..INNER {
            out.clear();
            message.encode(&mut *out, version).unwrap();
            check += out.len() as i64;
        }
        (INNER as u64, check)
    })
}

fn message_work(work: &str, data: &Bytes) -> Option<Box<dyn Fn() -> (u64, i64)>> {
    let words: Vec<&str> = work.split(':').collect(); // message-decode:FetchRequest:12
    let encoding = words[0] == "message-encode";
    let version = words.get(2)?.parse().ok()?;
    Some(match words[1] {
        "MetadataResponse" => messages::<MetadataResponse>(encoding, data, version),
        "FetchRequest" => messages::<FetchRequest>(encoding, data, version),
        "ProduceRequest" => messages::<ProduceRequest>(encoding, data, version),
        "ApiVersionsResponse" => messages::<ApiVersionsResponse>(encoding, data, version),
        "HeartbeatRequest" => messages::<HeartbeatRequest>(encoding, data, version),
        "FetchResponse" => messages::<FetchResponse>(encoding, data, version),
        _ => panic!("unknown message"),
    })
}

fn main() {
    let (mut data, mut sets) = (Bytes::new(), Vec::new());
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        if words[0] == "load" {
            data = Bytes::from(std::fs::read(words[1]).unwrap());
            sets.clear();
            println!("ok");
        } else {
            if words[1] == "encode" && sets.is_empty() {
                sets = RecordBatchDecoder::decode_all(&mut data.clone()).unwrap().into_iter().map(|s| s.records).collect();
            }
            let message_pass = message_work(words[1], &data);
            let (wall, busy, mut result) = (Instant::now(), cpu(), (0, 0));
            for _ in 0..words[2].parse::<u32>().unwrap() {
                result = match words[1] {
                    "decode" => decode(&data),
                    "encode" => encode(&sets),
                    "crc32c-16k" => crc(&data, 16 << 10),
                    "crc32c-1m" => crc(&data, 1 << 20),
                    _ => message_pass.as_ref().expect("unknown work")(),
                };
                std::hint::black_box(result);
            }
            println!("{} {} {} {}", wall.elapsed().as_nanos(), cpu() - busy, result.0, result.1);
        }
        std::io::stdout().flush().unwrap();
    }
}
