//! Files are what the mcap crate reads.

use mcap::sans_io::{LinearReadEvent, LinearReader, LinearReaderOptions};

use super::*;

/// What the mcap crate reads: topic, number, time and bytes of each message.
fn read(file: &[u8]) -> Vec<(String, u32, u64, Vec<u8>)> {
    let messages = mcap::MessageStream::new(file).unwrap();
    messages
        .map(|message| {
            let message = message.unwrap();
            assert_eq!(message.publish_time, message.log_time);
            let topic = message.channel.topic.clone();
            (
                topic,
                message.sequence,
                message.log_time,
                message.data.into_owned(),
            )
        })
        .collect()
}

fn written(compression: Compression, count: u32, bytes: usize) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), compression).unwrap();
    let schema = writer
        .add_schema("acme.Lamp", PROTOBUF, b"descriptors")
        .unwrap();
    assert_eq!(
        writer
            .add_schema("acme.Lamp", PROTOBUF, b"descriptors")
            .unwrap(),
        schema
    );
    assert_ne!(
        writer.add_schema("acme.Lamp", PROTOBUF, b"others").unwrap(),
        schema
    );
    let about = BTreeMap::from([("device".to_owned(), "lamp:0".to_owned())]);
    let channels = ["/a", "/b"].map(|it| writer.add_channel(schema, it, PROTOBUF, &about).unwrap());
    assert_eq!(
        writer.add_channel(schema, "/a", PROTOBUF, &about).unwrap(),
        channels[0]
    );
    let metadata = Metadata {
        name: "facts".to_owned(),
        metadata: about.clone(),
    };
    writer.add_metadata(&metadata).unwrap();
    for number in 0..count {
        let channel = channels[(number % 2) as usize];
        let content = vec![number as u8; bytes];
        let add = |out: &mut Vec<u8>| out.extend_from_slice(&content);
        writer.add(channel, 1000 + u64::from(number), add).unwrap();
        if number == count / 2 {
            writer.flush().unwrap();
        }
    }
    writer.finish().unwrap()
}

#[test]
fn the_mcap_crate_reads_files_and_their_index() {
    for (count, bytes) in [(0, 0), (1, 0), (10, 3), (300, 10_000)] {
        let file = written(Compression::None, count, bytes);
        let expected: Vec<_> = (0..count)
            .map(|number| {
                let topic = ["/a", "/b"][(number % 2) as usize].to_owned();
                (
                    topic,
                    number + 1,
                    1000 + u64::from(number),
                    vec![number as u8; bytes],
                )
            })
            .collect();
        assert_eq!(read(&file), expected);
        let summary = mcap::Summary::read(&file).unwrap().unwrap();
        let stats = summary.stats.clone().unwrap();
        assert_eq!(stats.message_count, u64::from(count));
        assert_eq!((stats.schema_count, stats.channel_count), (2, 2));
        assert_eq!(stats.metadata_count, 1);
        assert_eq!(summary.metadata_indexes[0].name, "facts");
        let mut indexed = 0;
        let chunks = summary.chunk_indexes.iter();
        // Those with schemas only have no index.
        for chunk in chunks.filter(|it| !it.message_index_offsets.is_empty()) {
            for (channel, entries) in summary.read_message_indexes(&file, chunk).unwrap() {
                for entry in entries {
                    let message = summary.seek_message(&file, chunk, &entry).unwrap();
                    assert_eq!(message.channel.id, channel.id);
                    assert_eq!(message.log_time, entry.log_time);
                    indexed += 1;
                }
            }
        }
        assert_eq!(indexed, count);
    }
}

/// Checks all checksums.
fn check(file: &[u8]) -> Result<(), McapError> {
    let options = LinearReaderOptions::default()
        .with_validate_chunk_crcs(true)
        .with_validate_data_section_crc(true)
        .with_validate_summary_section_crc(true);
    let (mut reader, mut rest) = (LinearReader::new_with_options(options), file);
    while let Some(event) = reader.next_event() {
        if let LinearReadEvent::ReadRequest(need) = event? {
            let (now, later) = rest.split_at(need.min(rest.len()));
            reader.insert(now.len())[..now.len()].copy_from_slice(now);
            reader.notify_read(now.len());
            rest = later;
        }
    }
    Ok(())
}

#[test]
fn damage_is_noticed_in_all_parts() {
    let file = written(Compression::None, 10, 100);
    check(&file).unwrap();
    let places = |bytes: &[u8]| -> Vec<usize> {
        let all = file.windows(bytes.len()).enumerate();
        all.filter(|(_, it)| *it == bytes)
            .map(|(place, _)| place)
            .collect()
    };
    let facts = places(b"facts");
    let message = places(&[3; 100]).first().copied();
    let (metadata, summary) = (facts.first().copied(), facts.last().copied());
    assert_ne!(metadata, summary);
    for (part, place) in [
        ("chunk", message),
        ("metadata", metadata),
        ("summary", summary),
    ] {
        let mut damaged = file.clone();
        damaged[place.unwrap()] ^= 1;
        assert!(check(&damaged).is_err(), "{part}");
    }
}

#[cfg(feature = "zstd")]
#[test]
fn compressed_files_have_the_same_messages() {
    let (plain, packed) = (
        written(Compression::None, 300, 10_000),
        written(Compression::Zstd, 300, 10_000),
    );
    assert!(read(&plain) == read(&packed));
    assert!(packed.len() * 10 < plain.len());
}
