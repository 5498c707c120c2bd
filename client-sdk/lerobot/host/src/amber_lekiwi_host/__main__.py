"""The command line of the host. IO."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ipaddress
import logging
import signal
import sys
from typing import Callable, Optional

import amber
import zmq

from .host import LOG, Host, Settings
from .sockets import Sockets

_DESCRIPTION = """\
Lets LeRobot's LeKiwiClient use a robot of Amber that has a base, an arm and cameras. The client
needs no change: for it, this is the LeKiwi. The host runs until Ctrl-C."""
_NOTES = """\
examples:
  amber demo --robot lekiwi                   a simulated robot, in another terminal
  amber-lekiwi-host                           for a client on this computer
  amber-lekiwi-host --listen 192.168.2.201    for clients in the network, by this address
  amber-lekiwi-host --camera front=camera:0 --camera wrist=camera:1 --max-width 640

The protocol of LeRobot has no password and no encryption: whoever reaches the two ports sees the
cameras and moves the robot. So the host listens on this computer only, unless --listen says
otherwise. Do that only in a network where you trust everybody.

The robot stops half a second after the last command of its client, and when this program ends or is
killed. While another program of Amber holds the lease of the base or the arm, it says so, and moves
nothing."""


def main(arguments: Optional[list[str]] = None) -> int:
    """Returns the exit code: 0 after Ctrl-C or SIGTERM, 1 if it cannot start, 2 for wrong options."""
    options = _parser().parse_args(arguments)
    style = "%(asctime)s %(levelname)s %(message)s"
    logging.basicConfig(format=style, datefmt="%H:%M:%S", level=logging.INFO, stream=sys.stderr)
    try:
        return asyncio.run(_serve(options))
    except amber.Unreachable as error:
        return _fail(str(error), error.hint)


async def _serve(options: argparse.Namespace) -> int:
    command_port, observation_port = options.ports
    try:
        sockets = Sockets(options.listen, command_port, observation_port)
    except zmq.ZMQError as error:
        where = f"{options.listen}, ports {command_port} and {observation_port}"
        return _fail(
            f"cannot listen on {where}: {error}",
            "is another host running? --ports 6555,6556 uses others; --listen needs an address of"
            " this computer",
        )
    with contextlib.closing(sockets):
        LOG.info(
            "listening on %s, port %d for commands, port %d for observations",
            options.listen,
            sockets.command_port,
            sockets.observation_port,
        )
        if not ipaddress.ip_address(options.listen).is_loopback:
            LOG.warning("whoever reaches these ports moves the robot: there is no password")
        cameras = dict(options.camera) if options.camera else None
        settings = Settings(options.arm, options.base, cameras, options.max_width)
        async with amber.aio.Client(options.mediator) as robot:
            host = Host(robot, sockets, settings)
            serving = asyncio.ensure_future(host.run())
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, serving.cancel)
            try:
                await serving
            except asyncio.CancelledError:
                pass
            finally:
                LOG.info("%s", ", ".join(f"{count} {name}" for name, count in host.counts.items()))
    return 0


def _fail(text: str, hint: Optional[str]) -> int:
    print(f"error: {text}", file=sys.stderr)
    if hint is not None:
        print(f"\nhint: {hint}", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="amber-lekiwi-host",
        description=_DESCRIPTION,
        epilog=_NOTES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--mediator",
        metavar="HOST[:PORT]",
        help="mediator of the robot (default: AMBER_MEDIATOR, or this computer)",
    )
    parser.add_argument(
        "--arm",
        metavar="DEVICE",
        type=_device("arm"),
        default="arm:0",
        help="arm with the joints of an SO-101 (default: arm:0)",
    )
    parser.add_argument(
        "--base",
        metavar="DEVICE",
        type=_device("base"),
        default="base:0",
        help="base (default: base:0)",
    )
    parser.add_argument(
        "--camera",
        metavar="NAME=DEVICE",
        type=_camera,
        action="append",
        help="a camera, and its name for the client; may be given several times"
        " (default: front=camera:0 and wrist=camera:1, if the robot has them)",
    )
    parser.add_argument(
        "--max-width",
        metavar="PIXELS",
        type=_width,
        help="make wider pictures smaller: to a half, a third and so on (default: as they are)",
    )
    parser.add_argument(
        "--listen",
        metavar="ADDRESS",
        type=_address,
        default="127.0.0.1",
        help="address of this computer; 0.0.0.0 means all (default: 127.0.0.1, for clients on this"
        " computer only)",
    )
    parser.add_argument(
        "--ports",
        metavar="COMMANDS,OBSERVATIONS",
        type=_ports,
        default=(5555, 5556),
        help="ports; 0 picks a free one (default: 5555,5556)",
    )
    return parser


def _device(kind: str) -> Callable[[str], amber.Device]:
    def read(text: str) -> amber.Device:
        try:
            device = amber.Device.parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        if device.type != amber.Device.parse(kind).type:
            raise argparse.ArgumentTypeError(f"{text} is no {kind}: use for example {kind}:0")
        return device

    return read


def _camera(text: str) -> tuple[str, amber.Device]:
    name, separator, device = text.partition("=")
    if not name or not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=DEVICE, such as front=camera:0")
    return name, _device("camera")(device)


def _width(text: str) -> int:
    if not text.isdecimal() or not 16 <= int(text) <= 8192:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 16 to 8192")
    return int(text)


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no IP address") from None


def _ports(text: str) -> tuple[int, int]:
    parts = text.split(",")
    if len(parts) != 2 or not all(it.isdecimal() and int(it) <= 65535 for it in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not two ports, such as 5555,5556")
    return int(parts[0]), int(parts[1])


if __name__ == "__main__":
    sys.exit(main())
