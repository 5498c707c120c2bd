"""A subscriber of the camera of `bench-pieces` with the Python SDK: pieces.py MEDIATOR SECONDS.

Prints a line when it begins, and then what it has seen as JSON, like that program's own subscribers.
"""

import asyncio
import json
import struct
import sys
import time

from google.protobuf.unknown_fields import UnknownFieldSet

from amber import aio

CAMERA = "110:0"
PICTURE = 110


def picture(message):
    """The number of a picture, and when it was sent, in nanoseconds since 1970."""
    for field in UnknownFieldSet(message):
        if field.field_number == PICTURE:
            return struct.unpack_from("<QQ", field.data)
    return None


async def main(mediator, seconds):
    async with aio.Client(mediator) as client:
        async with client.device(CAMERA).subscription(picture) as pictures:
            for _ in range(3):  # the beginning cuts the first ones
                await pictures.next()
            print("begins", flush=True)
            missed, cpu, began = None, time.process_time(), time.monotonic()
            latencies_ns, numbers = [], []
            while time.monotonic() < began + seconds:
                number, sent_ns = await asyncio.wait_for(pictures.next(), 3.0)
                # What was lost before the first picture is not among those that were sent.
                missed = pictures.missed if missed is None else missed
                latencies_ns.append(max(0, time.time_ns() - sent_ns))
                numbers.append(number)
            cpu, lasted = time.process_time() - cpu, time.monotonic() - began
            seen = {
                "whole": len(numbers),
                "sent": numbers[-1] - numbers[0] + 1,
                "missed": pictures.missed - missed,
                "latencies_ns": latencies_ns,
                "pieces": 0,
                "longest": 0,
                "resumed_ms": None,
                "cpu_percent": 100.0 * cpu / lasted,
            }
            print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
