//! Tests of replies against lines from real scanners.

use proptest::prelude::*;

use super::*;

const URG: &[u8] = b"PP\n00P\nMODL:URG-04LX(Hokuyo Automatic Co.,Ltd.);N\nDMIN:20;4\nDMAX:5600;_\n\
    ARES:1024;\\\nAMIN:44;7\nAMAX:725;o\nAFRT:384;6\nSCAN:600;e\n\n";

fn replies(bytes: &[u8]) -> (Vec<Reply>, u64) {
    let mut parser = Parser::default();
    parser.push(bytes);
    let replies = std::iter::from_fn(|| parser.poll()).collect();
    (replies, parser.spoilt())
}

fn only(bytes: &[u8]) -> Reply {
    let (mut replies, spoilt) = replies(bytes);
    assert_eq!((replies.len(), spoilt), (1, 0), "{}", bytes.escape_ascii());
    replies.remove(0)
}

#[test]
fn statuses_of_all_kinds() {
    for (bytes, echo, status) in [
        (&b"BM\n02R\n\n"[..], "BM", "02"),
        (b"CR00\n03S\n\n", "CR00", "03"),
        (b"GD0044072501\n10Q\n\n", "GD0044072501", "10"),
        (b"MD0044072501000\n00P\n\n", "MD0044072501000", "00"),
        (b"X\n0Bb\n\n", "X", "0B"),
        (b"X\n0Cc\n\n", "X", "0C"),
        (b"X\n0Dd\n\n", "X", "0D"),
        (b"SCIP2.0\n0Ee\n\n", "SCIP2.0", "0E"),
        (b"X\n04T\n\n", "X", "04"),
        // SCIP 1.1 rejects requests without a checksum, with or without an echo.
        (b"QT\nE\n\n", "QT", "E"),
        (b"E\n\n", "", "E"),
    ] {
        let reply = only(bytes);
        assert_eq!((&*reply.echo, &*reply.status), (echo, status));
        assert_eq!(reply.lines, [b""; 0]);
    }
}

#[test]
fn a_scan_of_six_points() {
    let reply = only(b"GD0380038501\n00P\n0N90W\n0?X0?Y0?Z00D1GP000D\n\n");
    let scan = reply.scan(6);
    assert_eq!(scan, Some((123_456, vec![1000, 1001, 1002, 20, 5600, 0])));
    assert_eq!(reply.scan(5), None);
    assert_eq!(reply.scan(7), None);
}

#[test]
fn values_may_span_two_lines() {
    let reply = only(
        b"GD0380040901\n00P\n0N90W\n\
        0?X0?Y0?Z0?[0?\\0?]0?^0?_0?`0?a0?b0?c0?d0?e0?f0?g0?h0?i0?j0?k0?l0E\n\
        ?m0?n0?o0@00@10@20@30@40@5f\n\n",
    );
    assert_eq!(reply.scan(30).unwrap().1, (1000..1030).collect::<Vec<_>>());
}

#[test]
fn the_start_of_a_real_scan() {
    assert_eq!(without_sum(b"JUGnD".to_vec()), Some(b"JUGn".to_vec()));
    assert_eq!(number(b"JUGn"), Some(6_968_830));
    let values: Vec<_> = (b"068068067061".chunks(3)).map(number).collect();
    assert_eq!(values, [392, 392, 391, 385].map(Some));
    assert_eq!(number(b"CB"), Some(1234));
    assert_eq!(number(b"1Dh"), Some(5432));
    assert_eq!(number(b"m2@0"), Some(16_000_000));
    assert_eq!(number(b"0/0"), None);
    assert_eq!(number(b"0p0"), None);
}

#[test]
fn real_scanners_describe_themselves() {
    assert_eq!(Geometry::of(&only(URG)), Some(Geometry::URG_04LX));
    let utm = b"PP\n00P\nDMIN:23;7\nDMAX:60000;J\nARES:1440;^\nAMIN:0;?\nAMAX:1080;Z\n\
        AFRT:540;0\nSCAN:2400;U\n\n";
    let utm = Geometry::of(&only(utm)).unwrap();
    assert_eq!((utm.points(), utm.rpm, utm.front), (1081, 2400, 540));
    assert_eq!(Geometry::URG_04LX.points(), 682);
    let version = only(
        b"VV\n00P\nVEND:Hokuyo Automatic Co.,Ltd.;[\nPROD:SOKUIKI Sensor URG-04LX;[\n\
        FIRM:3.1.04(02/Aug./2007);a\nPROT:SCIP 2.0;N\nSERI:H0706400;F\n\n",
    );
    assert_eq!(version.value("PROD"), Some("SOKUIKI Sensor URG-04LX"));
    let state = only(
        b"II\n00P\nLASR:OFF;7\nSCSP:Initial(600[rpm])<-Default setting by user;A\n\
        MESM:IDLE;:\nSBPS:19200[bps]<-Default setting by user;A\nTIME:6A5404;]\n\
        STAT:Sensor works well.;8\n\n",
    );
    assert_eq!(state.value("LASR"), Some("OFF"));
}

#[test]
fn requests_have_the_documented_text() {
    assert_eq!(Geometry::URG_04LX.single(), "GD0044072501");
    assert_eq!(Geometry::URG_04LX.continuous(0), "MD0044072501000");
    assert_eq!(Geometry::URG_04LX.continuous(3), "MD0044072501300");
}

#[test]
fn the_next_reply_after_garbage_is_found() {
    let good = &b"BM\n00P\n\n"[..];
    for bad in [
        &b"rubbish\n\n"[..],
        b"\xff\xfe\n\xfd\n\n",
        b"GD0380038501\n00P\n0N90W\n0?X0?Y0?Z00D1GP001D\n\n",
        b"GD0380038501\n00P\n0N\n\n90W\n0?X0?Y0?Z00D1GP000D\n\n",
        b"VV\n00P\nSERI:H0706400F\n\n",
        &[b'x'; 10_000],
        &b"x\n".repeat(10_000),
    ] {
        let (found, spoilt) = replies(&[good, bad, b"\n\n", good].concat());
        assert_eq!(
            found.len(),
            2,
            "{}",
            bad[..40.min(bad.len())].escape_ascii()
        );
        assert!(spoilt > 0);
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_neither_panic_nor_grow_the_buffer(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let mut parser = Parser::default();
        parser.push(&bytes);
        while let Some(reply) = parser.poll() {
            let _ = (reply.scan(3), Geometry::of(&reply));
        }
        prop_assert!(parser.line.len() <= MAX_LINE && parser.lines.len() <= MAX_LINES);
    }

    #[test]
    fn replies_are_found_wherever_reads_end(cuts in prop::collection::vec(1_usize..9, 1..200)) {
        let bytes = [URG, b"BM\n02R\n\n", URG].concat();
        let mut parser = Parser::default();
        let mut rest = &bytes[..];
        for cut in cuts.iter().cycle() {
            let (now, later) = rest.split_at(rest.len().min(*cut));
            parser.push(now);
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        let found: Vec<_> = std::iter::from_fn(|| parser.poll()).collect();
        prop_assert_eq!(found, replies(&bytes).0);
    }

    #[test]
    fn a_flipped_bit_never_changes_a_distance(at in 0_usize..46, bit in 0..7) {
        let mut bytes = b"GD0380038501\n00P\n0N90W\n0?X0?Y0?Z00D1GP000D\n\n".to_vec();
        let expected = only(&bytes).scan(6);
        if let Some(byte) = bytes.get_mut(at) {
            *byte ^= 1_u8 << bit;
        }
        for reply in replies(&bytes).0 {
            let scan = reply.scan(6);
            // The checksum ignores bit 6, but changing that bit always makes the character invalid.
            prop_assert!(scan.is_none() || scan == expected);
        }
    }
}
