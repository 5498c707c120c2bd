"""Tests of the bytes on the wire."""

import random
import unittest

from amber.device import Device
from amber.errors import FrameError
from amber.frame import MAX_PART, FrameReader, Header, decode, encode

# A PING with synNum 7 for dummy:0: the id is encoded although it is 0.
PING = bytes.fromhex("0004 0805 1000 0004 1002 1807")


class Frames(unittest.TestCase):
    def test_worked_bytes(self):
        message = bytes.fromhex("10021807")
        self.assertEqual(encode(Header(5, 0), message), PING)
        self.assertEqual(decode(PING), (Header(5, 0, ()), message))

    def test_absent_is_not_zero(self):
        self.assertEqual(decode(bytes.fromhex("0000 0000")), (Header(None, None, ()), b""))
        self.assertEqual(encode(Header(), b""), bytes(4))

    def test_client_ids_packed_or_not(self):
        for header in ("1a020507", "18051807"):
            raw = bytes([0, len(header) // 2]) + bytes.fromhex(header) + bytes(2)
            self.assertEqual(decode(raw).header.clients, (5, 7))
        self.assertEqual(encode(Header(clients=(5, 7)), b"").hex(), "00041a0205070000")

    def test_every_wrong_length_is_an_error(self):
        for length in range(len(PING)):
            with self.assertRaises(FrameError):
                decode(PING[:length])
        with self.assertRaises(FrameError):
            decode(PING + b"\0")

    def test_an_invalid_header(self):
        with self.assertRaises(FrameError):
            decode(bytes.fromhex("0002 0805 0000")[:3] + b"\xff\0\0")

    def test_too_long(self):
        encode(Header(), bytes(MAX_PART))
        with self.assertRaises(FrameError):
            encode(Header(), bytes(MAX_PART + 1))

    def test_a_stream_in_pieces_of_any_size(self):
        frames = [encode(Header(5, n % 3, tuple(range(n))), bytes(n * 37)) for n in range(60)]
        stream = b"".join(frames)
        for seed in range(20):
            chance = random.Random(seed)
            reader = FrameReader()
            found = []
            at = 0
            while at < len(stream):
                size = chance.choice([1, 2, 3, 100, 5000])
                found += reader.feed(stream[at : at + size])
                at += size
            self.assertEqual([encode(*frame) for frame in found], frames, f"seed {seed}")
            self.assertEqual(reader.waiting, 0)


class Devices(unittest.TestCase):
    def test_names_and_numbers(self):
        for text, device in [
            ("hokuyo", (4, 0)),
            ("Hokuyo:1", (4, 1)),
            ("4:1", (4, 1)),
            ("201", (201, 0)),
            ("drive-to-point", (8, 0)),
            ("laser", (4, 0)),
            ("Wheels:1", (2, 1)),
        ]:
            self.assertEqual(Device.parse(text), device)
        self.assertEqual(str(Device(4, 1)), "hokuyo:1")
        self.assertEqual(str(Device(201, 0)), "201:0")
        for text in ("", "lasr", "4:x", "4:1:2"):
            with self.assertRaises(ValueError):
                Device.parse(text)


if __name__ == "__main__":
    unittest.main()
