//! Damaged files: all that is intact is found, and nothing else is taken for it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::process::{Command, Stdio};

use super::*;
use crate::chunk::{HEAD, first_record};
use crate::writer::{Compression, PROTOBUF, Writer};

/// The same file with chunks that are compressed with LZ4. It has no index.
pub(crate) fn lz4(file: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (mcap::MAGIC.to_vec(), &file[mcap::MAGIC.len()..]);
    let mut chunks = Vec::new();
    let mut others = Vec::new();
    while let Some((opcode, content, length)) = first_record(rest) {
        rest = &rest[length..];
        match opcode {
            mcap::records::op::CHUNK => {
                let Ok(mcap::records::Record::Chunk { mut header, data }) =
                    mcap::parse_record(opcode, content)
                else {
                    panic!("a chunk of our own");
                };
                let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
                encoder.write_all(&data).unwrap();
                let packed = encoder.finish().unwrap();
                let (first_ns, last_ns) = (header.message_start_time, header.message_end_time);
                header.compression = "lz4".to_owned();
                header.compressed_size = packed.len() as u64;
                let mut content = crate::writer::encoded(&header).unwrap();
                content.extend_from_slice(&packed);
                chunks.push(mcap::records::ChunkIndex {
                    message_start_time: first_ns,
                    message_end_time: last_ns,
                    chunk_start_offset: out.len() as u64,
                    chunk_length: (HEAD + content.len()) as u64,
                    message_index_offsets: BTreeMap::new(),
                    message_index_length: 0,
                    compression: "lz4".to_owned(),
                    compressed_size: header.compressed_size,
                    uncompressed_size: header.uncompressed_size,
                });
                out.extend(crate::writer::framed(opcode, &content));
            }
            mcap::records::op::HEADER => out.extend(crate::writer::framed(opcode, content)),
            mcap::records::op::SCHEMA
            | mcap::records::op::CHANNEL
            | mcap::records::op::STATISTICS => {
                others.extend(crate::writer::framed(opcode, content));
            }
            _ => {}
        }
    }
    out.extend(crate::writer::framed(mcap::records::op::DATA_END, &[0; 4]));
    let start = out.len() as u64;
    out.extend(others);
    for chunk in &chunks {
        let content = crate::writer::encoded(chunk).unwrap();
        out.extend(crate::writer::framed(
            mcap::records::op::CHUNK_INDEX,
            &content,
        ));
    }
    let footer = [&start.to_le_bytes()[..], &[0; 12]].concat();
    out.extend(crate::writer::framed(mcap::records::op::FOOTER, &footer));
    out.extend_from_slice(mcap::MAGIC);
    out
}

/// Time and number of each message that is not about the recovery, and its bytes.
type Found = BTreeMap<(u64, u32), Vec<u8>>;

fn found(file: &[u8]) -> Found {
    let (mut messages, mut all) = (Messages::new(Cursor::new(file)).unwrap(), Found::new());
    while messages
        .next(|channels, entry| {
            if let Entry::Message {
                channel,
                header,
                data,
                ..
            } = entry
                && channels[&channel].topic != crate::recording::GAPS
            {
                let key = (header.log_time, header.sequence);
                all.insert(key, data.to_vec());
            }
        })
        .unwrap()
    {}
    all
}

/// A recording of some chunks, with metadata and an attachment between them.
fn original(compression: Compression) -> Vec<u8> {
    let mut random = Random(1);
    let mut writer = Writer::new(Vec::new(), compression).unwrap();
    let hokuyo = Descriptors::of_device(&Schemas::built_in(), DeviceType::HOKUYO).unwrap();
    let schema = writer
        .add_schema(&hokuyo.name, PROTOBUF, &hokuyo.set)
        .unwrap();
    let about = [("device".to_owned(), "hokuyo:0".to_owned())].into();
    for number in 0..300_u64 {
        let topic = ["/hokuyo/0/scan", "/hokuyo/1/scan", "/hokuyo/2/scan"][number as usize % 3];
        // The last one begins late.
        let topic = if number < 200 {
            topic
        } else {
            "/hokuyo/3/scan"
        };
        let channel = writer.add_channel(schema, topic, PROTOBUF, &about).unwrap();
        let mut message = hokuyo::DriverMsg::data();
        message.scan = Some(hokuyo::Scan {
            angles: vec![0.5; random.below(10) as usize],
            distances: (0..random.below(40))
                .map(|_| random.below(9000) as i32)
                .collect(),
        });
        let data = message.encode_to_vec();
        let time_ns = 1_700_000_000_000_000_000 + number * 1_000_000;
        writer
            .add(channel, time_ns, |out| out.extend_from_slice(&data))
            .unwrap();
        if number % 20 == 19 {
            writer.flush().unwrap();
        }
        if number == 150 {
            let metadata = [("hall".to_owned(), "3".to_owned())].into();
            let name = "place".to_owned();
            writer
                .add_metadata(&mcap::records::Metadata { name, metadata })
                .unwrap();
        }
    }
    writer.finish().unwrap()
}

/// Start and end of each chunk, and its messages.
fn chunks(file: &[u8]) -> Vec<(usize, usize, Found)> {
    let (mut at, mut all) = (mcap::MAGIC.len(), Vec::new());
    while let Some((opcode, content, length)) = first_record(&file[at..]) {
        if opcode == mcap::records::op::CHUNK {
            let chunk = chunk::Chunk::open(content.to_vec(), true).unwrap();
            let (mut rest, mut messages) = (chunk.records(), Found::new());
            while let Some((opcode, content, length)) = first_record(rest) {
                rest = &rest[length..];
                if let Ok(mcap::records::Record::Message { header, data }) =
                    mcap::parse_record(opcode, content)
                {
                    messages.insert((header.log_time, header.sequence), data.into_owned());
                }
            }
            all.push((at, at + length, messages));
        }
        at += length;
        if opcode == mcap::records::op::FOOTER {
            break;
        }
    }
    all
}

/// A small generator: the same damages in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }
}

/// A damaged copy, and the bytes that are not as before.
fn damaged(file: &[u8], random: &mut Random) -> (Vec<u8>, BTreeSet<usize>) {
    let (mut copy, mut places) = (file.to_vec(), BTreeSet::new());
    let length = file.len() as u64;
    match random.below(5) {
        0 => {
            copy.truncate(random.below(length) as usize);
            places.extend(copy.len()..file.len());
        }
        1 => {
            let start = random.below(length / 512) as usize * 512;
            let end = (start + 512).min(file.len());
            copy[start..end].fill(0);
            places.extend((start..end).filter(|at| file[*at] != 0));
        }
        _ => {
            for _ in 0..=random.below(3) {
                let at = random.below(length) as usize;
                copy[at] ^= 1 << random.below(8);
                places.insert(at);
            }
        }
    }
    // Killed and damaged.
    if random.below(4) == 0 {
        let end = file.len() / 2 + random.below(length / 2) as usize;
        copy.truncate(end.min(copy.len()));
        places.extend(copy.len()..file.len());
    }
    (copy, places)
}

/// Compares what is recovered with what is intact. Returns the new file.
fn check(seed: u64, file: &[u8], all: &[(usize, usize, Found)]) -> Option<Vec<u8>> {
    let (copy, places) = damaged(file, &mut Random(seed));
    let recovered = recover(Cursor::new(&copy[..]), Vec::new(), Unverified::Leave);
    let Ok((recovered, new)) = recovered else {
        // Nothing says that this is a recording.
        let intact = places.first().is_none_or(|place| *place >= 8 + HEAD);
        assert!(!intact, "seed {seed}: it begins as a recording");
        return None;
    };
    let kept = found(&new);
    assert_eq!(kept.len() as u64, recovered.messages, "seed {seed}");
    let (mut intact, mut count) = (0, 0);
    for (start, end, messages) in all {
        let is_intact = places.range(start..end).next().is_none();
        // The checksum of a chunk that is cut off is not about what is left of it.
        let is_unverified = copy.len() < *end && recovered.unverified > 0;
        for (key, data) in messages {
            count += 1;
            match kept.get(key) {
                Some(found) => assert!(
                    found == data || is_unverified,
                    "seed {seed}: an altered message"
                ),
                None => assert!(!is_intact, "seed {seed}: {key:?} is lost"),
            }
            intact += usize::from(is_intact);
        }
    }
    assert!(kept.len() >= intact, "seed {seed}");
    let known: BTreeSet<_> = all.iter().flat_map(|(_, _, it)| it.keys()).collect();
    assert!(
        kept.keys().all(|key| known.contains(key)),
        "seed {seed}: invented messages"
    );
    // Truncated between two records, a file looks like one of a killed recorder.
    let is_cut = places.contains(&(file.len() - 1));
    assert!(
        recovered.has_lost || kept.len() == count || is_cut,
        "seed {seed}: {recovered:?}"
    );
    let info = Info::read(Cursor::new(&new[..])).unwrap();
    assert!(
        info.finished && info.damage.is_empty(),
        "seed {seed}: {info:?}"
    );
    let is_marked = info.gaps.is_empty() || info.metadata["amber.end"]["complete"] == "no";
    assert!(
        is_marked && (info.gaps.is_empty() != recovered.has_lost),
        "seed {seed}: {recovered:?}"
    );
    Some(new)
}

#[test]
fn of_500_damaged_files_all_that_is_intact_is_recovered_and_the_reference_reads_it() {
    const READ: &str = "
import os, sys
from mcap.reader import make_reader
from mcap_protobuf.decoder import DecoderFactory
for name in sorted(os.listdir(sys.argv[1])):
    with open(os.path.join(sys.argv[1], name), 'rb') as file:
        reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
        try:
            count = sum(1 for _ in reader.iter_decoded_messages())
            metadata = {it.name for it in reader.iter_metadata()}
            assert 'amber.end' in metadata, metadata
            assert count == reader.get_summary().statistics.message_count
        except Exception as error:
            sys.exit(f'{name}: {error!r}')
";
    let plain = original(Compression::None);
    let mut originals = vec![lz4(&plain)];
    #[cfg(feature = "zstd")]
    originals.push(original(Compression::Zstd));
    originals.push(plain);
    let originals: Vec<_> = originals.iter().map(|file| (file, chunks(file))).collect();
    let folder = tempfile::tempdir().unwrap();
    let mut written = 0;
    for seed in 0..500 {
        let (file, chunks) = &originals[seed as usize % originals.len()];
        let new = check(seed, file, chunks);
        if let Some(new) = new {
            std::fs::write(folder.path().join(format!("{seed:03}.mcap")), new).unwrap();
            written += 1;
        }
    }
    assert!(written > 480, "{written}");
    let mut python = Command::new("python3");
    let imports = python.args(["-c", "import mcap, mcap_protobuf"]);
    if !imports
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|it| it.success())
    {
        let _ = writeln!(
            std::io::stderr(),
            "SKIP damaged recordings read by Python: no python3 with mcap and mcap-protobuf-support"
        );
        return;
    }
    let read = Command::new("python3")
        .args(["-c", READ])
        .arg(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&read.stderr);
    assert!(read.status.success(), "{said}");
}

/// The index of this file has no checksum; its chunks have the same schemas, with one.
#[test]
fn a_damaged_schema_of_an_index_without_a_checksum_does_not_count() {
    let file = lz4(&original(Compression::None));
    let name = b"\x07time_ms";
    let places = (0..file.len()).filter(|at| file[*at..].starts_with(name));
    // In chunks, it is compressed.
    let places: Vec<_> = places.collect();
    assert!(!places.is_empty());
    for (place, bit) in places.iter().flat_map(|place| [(place, 0x80), (place, 1)]) {
        let mut copy = file.clone();
        copy[place + 5] ^= bit;
        let (recovered, new) =
            recover(Cursor::new(&copy[..]), Vec::new(), Unverified::Leave).unwrap();
        assert_eq!(recovered.messages, 300, "{recovered:?}");
        let mut messages = Messages::new(Cursor::new(&new[..])).unwrap();
        while messages.next(|_, _| ()).unwrap() {}
        let stored = messages.channels().values();
        let hokuyo = stored.filter(|it| it.topic.starts_with("/hokuyo"));
        let schemas: BTreeSet<_> = hokuyo.map(|it| it.descriptors.clone()).collect();
        let mut whole = Messages::new(Cursor::new(&file[..])).unwrap();
        while whole.next(|_, _| ()).unwrap() {}
        let right = &whole.channels().values().next().unwrap().descriptors;
        assert!(schemas.iter().eq([right]), "{} schemas", schemas.len());
    }
}

#[test]
fn one_flipped_bit_costs_one_chunk_and_is_said() {
    let file = original(Compression::None);
    let all = chunks(&file);
    let (start, end, messages) = &all[1];
    let mut damaged = file.clone();
    damaged[(start + end) / 2] ^= 1;
    let recovered =
        |unverified| recover(Cursor::new(&damaged[..]), Vec::new(), unverified).unwrap();
    let (strict, new) = recovered(Unverified::Leave);
    assert_eq!(strict.messages, 300 - messages.len() as u64);
    assert_eq!(strict.lost_messages, Some(messages.len() as u64));
    let [damage] = &strict.damage[..] else {
        panic!("{strict:?}");
    };
    let times = [messages.first_key_value(), messages.last_key_value()];
    let times = times.map(|it| it.map(|((time_ns, _), _)| *time_ns));
    assert_eq!([damage.first_ns, damage.last_ns], times);
    assert_eq!(
        (damage.messages, damage.effect),
        (messages.len() as u64, Effect::Lost)
    );
    let info = Info::read(Cursor::new(&new[..])).unwrap();
    assert_eq!(info.gaps.len(), 1);
    assert_eq!(
        [Some(info.gaps[0].first_ns), Some(info.gaps[0].last_ns)],
        times
    );
    assert!(!info.is_complete());
    // Those that no checksum confirms do not get one.
    let (all, new) = recovered(Unverified::Keep);
    assert_eq!((all.messages, all.unverified), (300, messages.len() as u64));
    let unchecked = chunks(&new)
        .into_iter()
        .filter(|(start, ..)| new[start + HEAD + 24..][..4] == [0; 4]);
    let unchecked: usize = unchecked.map(|(_, _, it)| it.len()).sum();
    assert_eq!(unchecked, messages.len());
    // Readers say it, and read on.
    let info = Info::read(Cursor::new(&damaged[..])).unwrap();
    assert_eq!((info.messages, info.damage.len()), (300, 1));
    assert_eq!(info.damage[0].effect, Effect::Doubtful);
}

#[test]
fn a_damaged_first_chunk_does_not_make_the_others_unreadable() {
    // Killed, and the schema or the channel is damaged.
    let file = original(Compression::None);
    let all = chunks(&file);
    let killed = &file[..all[all.len() - 1].1];
    for at in (all[0].0 + HEAD + 40..all[0].1).step_by(211) {
        let mut damaged = killed.to_vec();
        damaged[at] ^= 4;
        let (recovered, new) =
            recover(Cursor::new(&damaged[..]), Vec::new(), Unverified::Leave).unwrap();
        assert_eq!(recovered.messages, 300 - all[0].2.len() as u64, "{at}");
        let (mut messages, mut table) =
            (Messages::new(Cursor::new(&new[..])).unwrap(), Table::new());
        while messages
            .next(|channels, entry| {
                if let Entry::Message { channel, data, .. } = entry {
                    assert!(
                        table
                            .value(channel, &channels[&channel], data, Form::Whole)
                            .is_some(),
                        "{at}"
                    );
                }
            })
            .unwrap()
        {}
    }
}

#[test]
fn a_file_that_is_cut_off_anywhere_keeps_a_prefix_of_its_frames() {
    let (whole, _) = record(&feed(3), true);
    let all = frames(&whole);
    // Everywhere in the last part, with the frames, and here and there before.
    let last = whole.len().saturating_sub(1500);
    let ends = (0..last)
        .step_by(last / 50)
        .chain((last..whole.len()).step_by(17));
    for end in ends {
        let cut = Cursor::new(&whole[..end]);
        let Ok((_, file)) = recover(cut, Vec::new(), Unverified::Leave) else {
            assert!(end < mcap::MAGIC.len(), "{end}");
            continue;
        };
        let kept = frames(&file);
        assert_eq!(kept, all[..kept.len()], "{end}");
    }
}

/// A file of another program with attachments of these lengths.
fn attached(lengths: [u64; 2]) -> std::fs::File {
    use std::io::{Read as _, Seek as _, SeekFrom};

    let mut writer = mcap::Writer::new(tempfile::tempfile().unwrap()).unwrap();
    let channel = writer.add_channel(0, "/lamp", "json", &BTreeMap::new());
    let header = mcap::records::MessageHeader {
        channel_id: channel.unwrap(),
        sequence: 1,
        log_time: 7,
        publish_time: 7,
    };
    writer.write_to_known_channel(&header, b"{}").unwrap();
    writer.finish().unwrap();
    let mut file = writer.into_inner();
    // Attachments may be anywhere in the data: in front of the file's own.
    let mut own = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut own).unwrap();
    let mut new = tempfile::tempfile().unwrap();
    new.write_all(mcap::MAGIC).unwrap();
    let (_, header, length) = first_record(&own[mcap::MAGIC.len()..]).unwrap();
    new.write_all(&crate::writer::framed(mcap::records::op::HEADER, header))
        .unwrap();
    for length in lengths {
        let header = crate::writer::encoded(&mcap::records::AttachmentHeader {
            log_time: 1,
            create_time: 2,
            name: format!("{length} bytes"),
            media_type: "text/plain".to_owned(),
        });
        let header = header.unwrap();
        let record = header.len() as u64 + 8 + length + 4;
        let head = [
            &[mcap::records::op::ATTACHMENT][..],
            &record.to_le_bytes(),
            &header,
        ];
        new.write_all(&head.concat()).unwrap();
        new.write_all(&length.to_le_bytes()).unwrap();
        // Zeros that take no place on the disk, without a checksum.
        let end = new
            .seek(SeekFrom::Current((length + 4).cast_signed()))
            .unwrap();
        new.set_len(end).unwrap();
    }
    // Without its index, whose places are not right any more.
    let mut rest = &own[mcap::MAGIC.len() + length..];
    while let Some((opcode, content, length)) = first_record(rest) {
        if opcode == mcap::records::op::DATA_END {
            break;
        }
        new.write_all(&crate::writer::framed(opcode, content))
            .unwrap();
        rest = &rest[length..];
    }
    new.write_all(&crate::writer::framed(mcap::records::op::DATA_END, &[0; 4]))
        .unwrap();
    new.write_all(&crate::writer::framed(mcap::records::op::FOOTER, &[0; 20]))
        .unwrap();
    new.write_all(mcap::MAGIC).unwrap();
    new
}

#[test]
fn attachments_of_any_size_are_kept() {
    let names = |lengths: [u64; 2]| lengths.map(|length| (format!("{length} bytes"), length));
    // Longer than any record that is read into memory.
    let lengths = [10, 5 << 30];
    let info = Info::read(attached(lengths)).unwrap();
    assert!(info.finished && info.damage.is_empty(), "{info:?}");
    assert_eq!(
        (info.others, &info.attachments[..]),
        (1, &names(lengths)[..])
    );
    let lengths = [10, 3 << 20];
    let (recovered, copy) = recover(
        attached(lengths),
        Cursor::new(Vec::new()),
        Unverified::Leave,
    )
    .unwrap();
    assert!(
        !recovered.has_lost && recovered.damage.is_empty(),
        "{recovered:?}"
    );
    let copy = copy.into_inner();
    let info = Info::read(Cursor::new(&copy[..])).unwrap();
    assert_eq!(
        (info.others, &info.attachments[..]),
        (1, &names(lengths)[..])
    );
    let summary = mcap::Summary::read(&copy).unwrap().unwrap();
    let lengths = summary.attachment_indexes.iter().map(|it| it.data_size);
    assert_eq!(lengths.collect::<Vec<_>>(), [10, 3 << 20]);
}
