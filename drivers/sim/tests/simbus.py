"""The bus of `amber sim` for libraries that are written for a real one, over its Unix socket."""

import socket
import sys
import time
import types
import typing

# Parts of Adafruit's firmware that the packages import; most are only type names.
for module, names in {
    "micropython": {"const": lambda value: value},
    "busio": {"I2C": object, "SPI": object, "UART": object},
    "digitalio": {"DigitalInOut": object},
    "circuitpython_typing": {"ReadableBuffer": bytes, "WriteableBuffer": bytearray},
    "circuitpython_typing.device_drivers": {"I2CDeviceDriver": object},
    "typing_extensions": {"Literal": typing.Literal},
}.items():
    sys.modules[module] = types.SimpleNamespace(**names)


class Bus:
    """The methods of `busio.I2C` that these libraries use."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(path)

    def try_lock(self):
        return True

    def unlock(self):
        pass

    def writeto(self, address, buffer, *, start=0, end=None):
        self.transfer(address, bytes(buffer[start:end]), 0)

    def readfrom_into(self, address, buffer, *, start=0, end=None):
        part = memoryview(buffer)[start:end]
        part[:] = self.transfer(address, b"", len(part))

    def writeto_then_readfrom(
        self, address, out, into, *, out_start=0, out_end=None, in_start=0, in_end=None
    ):
        part = memoryview(into)[in_start:in_end]
        part[:] = self.transfer(address, bytes(out[out_start:out_end]), len(part))

    def transfer(self, address, written, count):
        self.socket.sendall(bytes([address, len(written), count]) + written)
        if self.receive(1) != b"\x06":
            raise OSError("no chip answers")
        return self.receive(count)

    def receive(self, count):
        received = b""
        while len(received) < count:
            part = self.socket.recv(count - len(received))
            assert part, "the bus is gone"
            received += part
        return received


class SMBus(Bus):
    """The methods of `smbus.SMBus` that libraries use. `SMBus.path` is the socket of all buses."""

    path = None

    def __init__(self, number):
        super().__init__(self.path)

    def write_byte_data(self, address, register, value):
        self.transfer(address, bytes([register, value]), 0)

    def read_byte_data(self, address, register):
        return self.transfer(address, bytes([register]), 1)[0]

    def read_i2c_block_data(self, address, register, count):
        return list(self.transfer(address, bytes([register]), count))


for module in ("smbus", "smbus2"):
    sys.modules[module] = types.SimpleNamespace(SMBus=SMBus)


def mean(read, count=20):
    """The mean of each axis."""
    readings = []
    for _ in range(count):
        time.sleep(0.005)
        readings.append(read())
    return [sum(axis) / count for axis in zip(*readings)]


def near(values, expected, error):
    """Whether each axis is as expected."""
    return all(abs(a - b) <= error for a, b in zip(values, expected))
