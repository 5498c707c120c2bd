"""Tests of messages that are longer than a frame."""

import random
import time
import unittest

import test_client
import test_driver

import amber
from amber import pieces, schemas
from amber.frame import MAX_PART
from amber.schemas import DriverMsg

BYTES = 100_000


def parsed(message):
    return DriverMsg.FromString(message)


def cut(number, stream, data, size):
    long = pieces.Long(number, stream, data)
    return [parsed(long.piece(size, index)).piece for index in range(long.count(size))]


def content(length, seed=0):
    return bytes((i * 7 + i // 251 ^ seed) & 0xFF for i in range(length))


class Joining(unittest.TestCase):
    def test_the_bytes_are_those_of_the_rust_sdk(self):
        data = b"\x10\x01\x20\x00\x92\x03\x14" + bytes(range(20))
        long = pieces.Long(4711, 50, data)
        self.assertEqual(
            long.piece(10, 2).hex(), "1001" + "3212" + "08e724" + "1002" + "1803" + "2207"
            "0d0e0f10111213" + "2832"
        )
        self.assertEqual(pieces.Ability().to_append().hex(), "4a03109c09")
        local = pieces.Ability(piece_bytes=pieces.LOCAL_PIECE_BYTES)
        self.assertEqual(local.to_append().hex(), "4a041080fa01")

    def test_a_message_arrives_exactly_once_or_not_at_all(self):
        chance = random.Random(5)
        for _ in range(200):
            joiner = pieces.Joiner()
            sent = {number: content(chance.randrange(11, 900), number) for number in range(4)}
            all_pieces = [it for number in sent for it in cut(number, None, sent[number], 10)]
            order = [it for it in all_pieces if chance.random() > 0.002]
            order += chance.sample(all_pieces, 9)
            chance.shuffle(order)
            arrived = []
            for piece in order:
                joined = joiner.piece(0.0, "camera:0", piece)
                if joined is not None:
                    arrived.append(joined.data)
            came = {(it.message, it.index) for it in order}
            for number, data in sent.items():
                whole = all((number, index) in came for index in range(-(-len(data) // 10)))
                self.assertEqual(arrived.count(data), int(whole))
            joiner.timeout(60.0)
            self.assertEqual((joiner.memory, joiner.next_timeout()), (0, None))

    def test_a_newer_message_of_the_stream_wins(self):
        joiner = pieces.Joiner()
        for piece in cut(0xFFFF_FFFF, 5, content(30), 10)[:2] + cut(8, None, content(30), 10)[:2]:
            self.assertIsNone(joiner.piece(0.0, 1, piece))
        joined = [joiner.piece(0.0, 1, piece) for piece in cut(0, 5, content(30), 10)]
        self.assertEqual(joined[2], pieces.Joined(content(30), 5))
        self.assertEqual(joiner.lost, [pieces.Lost(1, 5, 1)])
        for piece in cut(0xFFFF_FFFF, 5, content(30), 10):
            self.assertIsNone(joiner.piece(0.5, 1, piece))
        self.assertIsNotNone(joiner.piece(0.0, 1, cut(8, None, content(30), 10)[2]))

    def test_a_lost_message_counts_once(self):
        joiner = pieces.Joiner(gives_receipts=True)
        for piece in cut(7, 5, content(30), 10)[:2]:
            self.assertIsNone(joiner.piece(0.0, 1, piece))
        joiner.timeout(1.0)
        # Late copies of its pieces begin nothing.
        for piece in cut(7, 5, content(30), 10):
            self.assertIsNone(joiner.piece(1.001, 1, piece))
        joiner.timeout(3.0)
        self.assertEqual(joiner.lost, [pieces.Lost(1, 5, 1)])
        # All pieces come behind those of a newer one.
        for number in (9, 8):
            joined = [joiner.piece(4.0, 1, piece) for piece in cut(number, 5, content(30), 10)]
            self.assertEqual(sum(it is not None for it in joined), number - 8)
        self.assertEqual(joiner.lost[1:], [pieces.Lost(1, 5, 3)])
        # A sender must not take a request that was given up for one that has arrived.
        self.assertIsNone(joiner.piece(5.0, 1, cut(20, None, content(30), 10)[0]))
        joiner.timeout(10.0)
        joiner.to_send.clear()
        self.assertIsNone(joiner.piece(10.001, 1, cut(20, None, content(30), 10)[0]))
        self.assertEqual((joiner.to_send, joiner.memory), ([], 0))
        self.assertEqual(joiner.lost[2:], [pieces.Lost(1, None, 2)])

    def test_calls_name_gaps_first_and_the_end_later(self):
        joiner = pieces.Joiner()
        all_pieces = cut(9, 5, content(100), 10)
        for index in (0, 2, 3, 5, 6, 7):
            joiner.piece(0.0, 1, all_pieces[index])
        calls = []
        for now in (0.004, 0.005, 0.02, 0.026, 0.05, 0.2):
            joiner.timeout(now)
            calls.append([list(message.missing.index) for _, message in joiner.to_send])
            joiner.to_send.clear()
        tail = [1, 4, 8, 9]
        self.assertEqual(calls, [[], [[1, 4]], [tail], [], [tail], []])

    def test_what_does_not_fit_is_refused_and_memory_is_bounded(self):
        chance = random.Random(6)
        joiner = pieces.Joiner(gives_receipts=True)
        for _ in range(3000):
            piece = DriverMsg().piece
            piece.message, piece.index = chance.randrange(6), chance.randrange(9)
            piece.count = chance.choice([0, 1, 2, 9, 8192, 9000])
            piece.data = bytes(chance.choice([0, 1, 10, 32_000, 40_000]))
            joiner.piece(0.0, chance.randrange(9), piece)
            self.assertLessEqual(joiner.memory, 16 << 20)
        self.assertGreater(joiner.malformed, 0)


class Sending(unittest.TestCase):
    def test_pieces_come_in_bursts_and_again_only_for_receivers(self):
        paced = pieces.Paced(6)
        paced.push(10.0, content(30_000), 54, {1180: [3, 4]})
        self.assertEqual(len(paced.poll(10.0).pieces), 16)
        self.assertIsNone(paced.poll(10.0))
        call = DriverMsg().missing
        call.message = 7
        call.index.extend([3, 16, 900])
        paced.missing(5, call)
        paced.missing(4, call)
        again = paced.poll(10.0)
        self.assertEqual(again.clients, (4,))
        self.assertEqual([parsed(it).piece.index for it in again.pieces], [3])
        del call.index[:]
        call.index.extend([0] * 400)
        paced.missing(4, call)
        self.assertEqual(sum(len(paced.poll(10.0).pieces) for _ in range(2)), 25)
        self.assertAlmostEqual(paced.next_timeout(), 10.005)
        self.assertEqual(len(paced.poll(10.006).pieces), 10)
        self.assertIsNone(paced.poll(10.6))
        self.assertIsNone(paced.next_timeout())


def said(value, number):
    """The answer, or published data, of a dummy."""
    message = DriverMsg(type=DriverMsg.DATA, ackNum=number)
    message.Extensions[schemas.dummy.message] = value
    message.Extensions[schemas.dummy.enable] = True
    return message


class Abilities(unittest.TestCase):
    def test_pictures_go_in_pieces_as_soon_as_they_do_not_fit_into_a_datagram(self):
        picture = DriverMsg(type=DriverMsg.DATA, ackNum=0)
        picture.Extensions[schemas.camera.picture].data = b"x"
        network = pieces.Ability()
        local = pieces.Ability(piece_bytes=pieces.LOCAL_PIECE_BYTES)
        for ability, length, is_cut, size in (
            (network, 1_180, False, 590),
            (network, 1_181, True, 1_180),
            (local, 16_362, False, 8_181),
            (local, 16_363, True, 8_182),
            (local, 32_001, True, 32_000),
            (pieces.Ability(longest=5_000), 5_001, False, 1_180),
        ):
            with self.subTest(ability=ability, length=length):
                self.assertEqual(ability.cuts(picture, length), is_cut)
                self.assertEqual(ability.size(length), size)
        self.assertFalse(network.cuts(said("other messages wait", 0), 5_000))


class Clients(unittest.TestCase):
    def setUp(self):
        self.mediator = test_client.FakeMediator()
        self.addCleanup(self.mediator.close)
        self.robot = amber.Client(self.mediator.address, deadline=test_client.PATIENCE)
        self.addCleanup(self.robot.close)

    def pieces(self, message, number, stream=None):
        """The pieces of a message, as messages."""
        data = message.SerializeToString()
        long = pieces.Long(number, stream, data)
        count = long.count(pieces.LOCAL_PIECE_BYTES)
        return [parsed(long.piece(pieces.LOCAL_PIECE_BYTES, index)) for index in range(count)]

    def test_an_answer_in_pieces_is_joined_and_its_gaps_are_called_for(self):
        lost, asked = [], []

        def device(message):
            if message.HasField("missing"):
                asked.append(list(message.missing.index))
                return lost
            if message.type != DriverMsg.DATA:
                return []
            self.assertEqual(self.mediator.joins, pieces.LOCAL_PIECE_BYTES)
            found = self.pieces(said("x" * BYTES, message.synNum), 7)
            lost.append(found.pop(1))
            return found

        self.mediator.answers[(5, 0)] = device
        self.assertEqual(self.robot.dummy().status().message, "x" * BYTES)
        self.assertEqual(asked, [[1]])

    def test_a_long_request_follows_the_receipts(self):
        joiner, numbers = pieces.Joiner(gives_receipts=True), []

        def device(message):
            if not message.HasField("piece"):
                return []
            numbers.append(message.synNum)
            joined = joiner.piece(0.0, 1, message.piece)
            replies = [reply for _, reply in joiner.to_send]
            joiner.to_send.clear()
            if joined is not None:
                request = parsed(joined.data)
                self.assertEqual(request.synNum, numbers[0])
                said_to_it = request.Extensions[schemas.dummy.message]
                answer = said(f"{len(said_to_it)} letters", request.synNum)
                replies.append(answer)
            return replies

        self.mediator.answers[(5, 0)] = device
        request = DriverMsg()
        request.Extensions[schemas.dummy.message] = "z" * BYTES
        answer = self.robot.device("dummy").request(request)
        self.assertEqual(test_driver.text(answer), f"{BYTES} letters")
        self.assertEqual(numbers[1:], [0, 0, 0], "only the first piece has the number")

    def test_a_driver_that_cannot_join_is_named(self):
        request = DriverMsg()
        request.Extensions[schemas.dummy.message] = "z" * BYTES
        with self.assertRaisesRegex(amber.AmberError, "too long for dummy:0"):
            self.robot.device("dummy").request(request)

    def test_only_the_newest_waits_for_a_slow_reader(self):
        messages = self.robot.dummy().messages()
        with messages:
            self.mediator.wait_for((5, 0), DriverMsg.SUBSCRIBE)
            for number, letter in enumerate("abc"):
                found = self.pieces(said(letter * BYTES, 0), number, 50)
                for piece in found[1:] if letter == "b" else found:
                    self.mediator.send((5, 0), piece)
            self.mediator.send((5, 0), said("end", 0))
            read = []
            for message in messages:
                read.append(message)
                if message == "end":
                    break
        self.assertIn("c" * BYTES, read)
        self.assertNotIn("b" * BYTES, read)


    def test_a_picture_that_never_gets_whole_is_missed_by_those_who_read_pictures(self):
        camera = self.robot.camera()
        message = DriverMsg(type=DriverMsg.DATA, ackNum=0)
        message.Extensions[schemas.camera.picture].data = b"x" * BYTES
        with camera.pictures(100) as pictures, camera.info_updates() as infos:
            everything = self.robot.device("camera").messages().open()
            self.mediator.wait_for((17, 0), DriverMsg.SUBSCRIBE)
            for piece in self.pieces(message, 7, 261)[:2]:
                self.mediator.send((17, 0), piece)
            end = time.monotonic() + test_client.PATIENCE
            while pictures.missed == 0 and time.monotonic() < end:
                time.sleep(0.01)
            missed = pictures.missed, infos.missed, everything.missed
            self.assertEqual(missed, (1, 0, 1))


class Drivers(unittest.TestCase):
    def setUp(self):
        self.bench = test_driver.Bench()
        self.addCleanup(self.bench.end)

    def joined(self, client):
        """The next long message to a client."""
        joiner = pieces.Joiner()
        while True:
            header, message = self.bench.receive()
            if not message.HasField("piece"):
                continue
            self.assertEqual(header.clients, (client,))
            joined = joiner.piece(0.0, 0, message.piece)
            if joined is not None:
                return parsed(joined.data)

    def test_a_long_request_is_joined_and_its_answer_goes_in_pieces(self):
        request = DriverMsg(type=DriverMsg.DATA, synNum=5)
        request.Extensions[schemas.dummy.message] = "y" * BYTES
        request.joins.piece_bytes = pieces.PIECE_BYTES
        long = pieces.Long(3, None, request.SerializeToString())
        size = pieces.LOCAL_PIECE_BYTES
        for index in range(long.count(size)):
            self.bench.send(parsed(long.piece(size, index)))
            receipt = self.bench.receive()[1].receipt
            self.assertEqual((receipt.message, receipt.upto), (3, index + 1))
        answer = self.joined(7)
        self.assertEqual(answer.ackNum, 5)
        self.assertEqual(test_driver.text(answer), "y" * BYTES + " from 7")

    def test_clients_that_do_not_join_get_no_pieces(self):
        self.assertGreater(BYTES, MAX_PART)
        request = DriverMsg(type=DriverMsg.DATA, synNum=5)
        request.Extensions[schemas.dummy.message] = "y" * (MAX_PART - 14)
        self.bench.send(request)
        self.bench.ask("next", 6)
        # "from 7" makes the answer too long for a frame.
        self.assertEqual(self.bench.receive()[1].ackNum, 6)


if __name__ == "__main__":
    unittest.main()
