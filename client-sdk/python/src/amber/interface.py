"""The interface of a device, as its ``.proto`` describes it. PURE.

``proto/interface.proto`` explains the options. ``amber describe --proto FILE`` checks every
rule of a description; this module checks what it needs.
"""

from __future__ import annotations

import collections
import keyword
from dataclasses import dataclass
from typing import Any

from . import motion, schemas
from .convert import (
    Codec,
    Options,
    Path,
    constant,
    inside,
    is_present,
    is_repeated,
    is_required,
    snake,
)
from .errors import BadAnswer, Refused
from .values import CLASSES

#: The default of an argument that has none.
REQUIRED: Any = object()

#: A path, and the value that the field has.
Setting = tuple[Path, Any]


@dataclass(frozen=True)
class Argument:
    """An argument of a method."""

    name: str
    path: Path
    #: The type, as text.
    annotation: str
    #: :data:`REQUIRED`, None if the field may be absent, or what its absence means.
    default: Any
    #: Its comment, unit and range. May be empty.
    docs: str


@dataclass(frozen=True)
class Part:
    """A field of an answer or of published data."""

    name: str
    path: Path
    #: The type, as text.
    annotation: str
    #: Whether it may be absent.
    is_optional: bool


@dataclass(frozen=True)
class Moves:
    """A request that moves something."""

    #: What it has to say to stop; None if it cannot stop.
    stop: tuple[Setting, ...] | None
    #: The arguments that are absent or empty then.
    empty: tuple[Path, ...]
    #: Whether the motion goes on without further requests until it is done.
    errand: bool


@dataclass(frozen=True)
class Method:
    """A request or a stream."""

    #: The name in Python, such as ``set_angle``.
    name: str
    #: ``ask``, ``tell``, ``subscribe``, or ``stream`` (by a request).
    kind: str
    docs: str
    message_class: Any
    codec: Codec
    flags: tuple[Path, ...]
    request: tuple[Path, ...]
    settings: tuple[Setting, ...]
    start: tuple[Setting, ...]
    stop: tuple[Setting, ...]
    arguments: tuple[Argument, ...]
    parts: tuple[Part, ...]
    #: The field of an answer that refuses the request.
    refusal: Path | None
    #: Seconds that a client waits for the answer by default; None for its own default.
    timeout_s: float | None
    #: The name of the argument for the time limit of the device in milliseconds.
    duration: str | None
    #: The name of the argument that is the period of a stream in milliseconds.
    period: str | None
    #: The class of the whole answer: a value of the SDK, or a named tuple; None for a single part.
    result: Any
    #: Whether an answer repeats the flags.
    repeats_flag: bool
    #: What it moves; None if it moves nothing.
    moves: Moves | None

    @property
    def is_stream(self) -> bool:
        return self.kind in ("subscribe", "stream")

    @property
    def fields(self) -> frozenset[int]:
        """The numbers of the fields of DriverMsg that carry an answer or published data."""
        return frozenset(part.path[0].number for part in self.parts)

    @property
    def result_annotation(self) -> str:
        """The type of an answer or of a published value, as text."""
        if self.kind == "tell":
            return "None"
        if self.result is not None:
            return str(self.result.__name__)
        (part,) = self.parts
        return f"{part.annotation} | None" if part.is_optional else part.annotation

    # For clients

    def order(self, arguments: dict[str, Any], settings: tuple[Setting, ...] = ()) -> Any:
        """The request message."""
        message = self.message_class(type=self.message_class.DATA)
        for flag in self.flags:
            self.codec.write(message, flag, True)
        if len(self.request) == 1 and self.request[0][-1].message_type is not None:
            self.codec.write(message, self.request[0], {})
        for argument in self.arguments:
            if arguments[argument.name] is not None:
                self.codec.write(message, argument.path, arguments[argument.name])
        for path, value in (*self.settings, *settings):
            self.codec.write(message, path, value)
        return message

    def answer(self, message: Any, device: Any) -> Any:
        """The value of an answer. Raises BadAnswer, or Refused."""
        if self.refusal is not None and is_present(message, self.refusal):
            raise _refusal(device, self.codec.read(message, self.refusal))
        found = self._found(message)
        for part in self.parts:
            if found[part.name] is None and not part.is_optional:
                raise BadAnswer(f"{device} answered without {part.path[-1].name}")
        return self._value(found)

    def published(self, message: Any) -> Any:
        """The value of a published message; None if the message belongs to another stream."""
        found = self._found(message)
        is_missing = [found[part.name] is None for part in self.parts if not part.is_optional]
        is_other = any(is_missing) or all(value is None for value in found.values())
        return None if is_other else self._value(found)

    def _found(self, message: Any) -> dict[str, Any]:
        """The values of all parts of an answer; None for those that are missing."""
        read = self.codec.read
        return {
            part.name: read(message, part.path) if is_present(message, part.path) else None
            for part in self.parts
        }

    def _value(self, found: dict[str, Any]) -> Any:
        if self.result is None:
            return found[self.parts[0].name]
        return getattr(self.result, "_join", self.result)(**found)

    # For drivers

    def fits(self, message: Any) -> bool:
        """Whether a message is a request for this."""
        if self.kind == "subscribe":
            return False
        codec = self.codec
        if not all(is_present(message, path) and codec.read(message, path) for path in self.flags):
            return False
        if not self.flags and not any(is_present(message, path) for path in self.request):
            return False
        return _holds(codec, message, self.settings)

    def is_stop(self, message: Any) -> bool:
        """Whether a message that fits ends a stream."""
        return _holds(self.codec, message, self.stop)

    def motion(self, message: Any) -> int:
        """What a message that fits does to things that move."""
        if self.moves is None:
            return motion.NOTHING
        if self.moves.stop is not None and _holds(self.codec, message, self.moves.stop):
            if all(_is_empty(message, path) for path in self.moves.empty):
                return motion.STOPS
        return motion.ERRAND if self.moves.errand else motion.MOVES

    def stop_message(self) -> Any:
        """The request that stops all motion; None if this cannot stop."""
        if self.moves is None or self.moves.stop is None:
            return None
        message = self.message_class(type=self.message_class.DATA)
        for flag in self.flags:
            self.codec.write(message, flag, True)
        for path, value in (*self.settings, *self.moves.stop):
            self.codec.write(message, path, value)
        return message

    def read_arguments(self, message: Any) -> dict[str, Any]:
        """The arguments of a request. Raises ValueError if one is missing."""
        found = {}
        for argument in self.arguments:
            if is_present(message, argument.path):
                found[argument.name] = self.codec.read(message, argument.path)
            elif argument.default is REQUIRED:
                raise ValueError(f"{self.name} without {argument.name}")
            else:
                found[argument.name] = argument.default
        return found

    def reply(self, value: Any) -> Any:
        """The message that carries an answer or published data."""
        message = self.message_class(type=self.message_class.DATA)
        if hasattr(value, "_split"):
            found = value._split()
        elif self.result is None:
            found = {self.parts[0].name: value}
        elif isinstance(value, dict):
            found = value
        else:
            found = dict(zip(self.result._fields, value))
        for flag in self.flags if self.repeats_flag else ():
            self.codec.write(message, flag, True)
        for part in self.parts:
            if found.get(part.name) is not None:
                self.codec.write(message, part.path, found[part.name])
            elif not part.is_optional:
                raise TypeError(f"{self.name} must return {part.name}")
        return message

    def refuse(self, error: Refused) -> Any:
        """The message that refuses a request; None if the device has no such answer."""
        if self.refusal is None:
            return None
        message = self.message_class(type=self.message_class.DATA)
        field = self.refusal[-1]
        if field.message_type is None:
            self.codec.write(message, self.refusal, str(error))
        else:
            words = {"message": str(error), "reason": error.reason, "hint": error.hint}
            known = [inner.name for inner in field.message_type.fields]
            told = {name: words[name] for name in known if words.get(name) is not None}
            self.codec.write(message, self.refusal, told)
        return message


@dataclass(frozen=True)
class Interface:
    """The interface of a type of device."""

    #: The name for people, such as ``drive-to-point``.
    name: str
    #: A second name that says what the device does, such as ``laser`` for ``hokuyo``; may be empty.
    alias: str
    device_type: int
    #: The name of the service, such as ``DriveToPoint``.
    service: str
    #: The file, such as ``drive_to_point.proto``.
    file: str
    docs: str
    message_class: Any
    #: Two extensions of mediator.proto.
    want_outcome: Any
    outcome: Any
    #: One of motion.proto.
    valid_ms: Any
    methods: tuple[Method, ...]
    #: The descriptor that a driver sends to the mediator; empty for Amber's own devices.
    description: bytes


def read(pool: Any, files: list[str]) -> list[Interface]:
    """The interfaces that files describe, by device type. Raises ValueError."""
    options = Options(pool)
    codec = Codec(options)
    found = []
    for name in files:
        package = pool.files[name].package
        for service in options.services[name]:
            full_name = f"{package}.{service.name}" if package else service.name
            if options.get(full_name, "device") is not None:
                found.append(_Service(pool, codec, name, package, service).read(full_name))
    return sorted(found, key=lambda interface: interface.device_type)


class _Service:
    def __init__(self, pool: Any, codec: Codec, file: str, package: str, service: Any) -> None:
        self.pool, self.codec, self.options = pool, codec, codec.options
        self.file, self.package, self.service = file, package, service

    def read(self, full_name: str) -> Interface:
        device = self.options.get(full_name, "device")
        methods = [self.method(f"{full_name}.{rpc.name}", rpc.name) for rpc in self.service.method]
        twice = [name for name, n in collections.Counter(m.name for m in methods).items() if n > 1]
        if twice:
            raise self.error(f"two methods have the name {twice[0]}")
        mediator = "amber.mediator_proto"
        return Interface(
            name=device.name,
            alias=device.alias,
            device_type=device.type,
            service=self.service.name,
            file=self.file,
            docs=self.options.docs[full_name],
            message_class=self.pool.message("amber.DriverMsg"),
            want_outcome=self.pool.extension(f"{mediator}.want_outcome"),
            outcome=self.pool.extension(f"{mediator}.outcome"),
            valid_ms=self.pool.extension("amber.motion_proto.valid_ms"),
            methods=tuple(methods),
            description=schemas.description_of(self.pool, self.file),
        )

    def method(self, full_name: str, name: str) -> Method:
        ways = {way: self.options.get(full_name, way) for way in ("ask", "tell", "stream")}
        ways = {way: option for way, option in ways.items() if option is not None}
        if len(ways) != 1:
            raise self.error(f"method {name} needs one of the options ask, tell and stream")
        ((kind, option),) = ways.items()
        paths = {
            field: self.paths(name, getattr(option, field, ()))
            for field in ("flag", "request", "answer", "may_answer", "data", "may_have")
        }
        settings = {
            field: self.settings(name, getattr(option, field, ()))
            for field in ("set", "start", "stop")
        }
        single = {
            field: self.path(name, getattr(option, field)) if getattr(option, field, "") else None
            for field in ("refusal", "period", "duration")
        }
        if kind == "stream" and not paths["request"]:
            kind = "subscribe"
        times = {single[what]: f"{what}_ms" for what in ("period", "duration") if single[what]}
        fixed = [path for path, _ in settings["set"] + settings["start"]]
        arguments = self.arguments(paths["request"], fixed, times)
        parts = self.parts(paths["answer"] + paths["data"], False)
        parts += self.parts(paths["may_answer"] + paths["may_have"], True)
        if kind != "tell" and not parts:
            raise self.error(f"method {name} needs a field for its data")
        return Method(
            name=_safe(snake(name)),
            kind=kind,
            docs=self.options.docs[full_name],
            message_class=self.pool.message("amber.DriverMsg"),
            codec=self.codec,
            flags=tuple(paths["flag"]),
            request=tuple(paths["request"]),
            settings=tuple(settings["set"]),
            start=tuple(settings["start"]),
            stop=tuple(settings["stop"]),
            arguments=tuple(arguments),
            parts=tuple(parts),
            refusal=single["refusal"],
            timeout_s=option.timeout_ms / 1000 if getattr(option, "timeout_ms", 0) else None,
            duration="duration_ms" if single["duration"] else None,
            period="period_ms" if single["period"] else None,
            result=self.result(name, getattr(option, "value", ""), parts),
            repeats_flag=bool(getattr(option, "repeats_flag", False)),
            moves=self.moves(full_name, name, paths["request"]),
        )

    def moves(self, full_name: str, name: str, request: list[Path]) -> Moves | None:
        option = self.options.get(full_name, "moves")
        if option is None:
            return None
        if not option.HasField("stop"):
            return Moves(None, (), option.errand)
        stop = tuple(self.settings(name, option.stop.set))
        empty = [one for one in request if not any(path[: len(one)] == one for path, _ in stop)]
        return Moves(stop, tuple(empty), option.errand)

    def result(self, method: str, value: str, parts: list[Part]) -> Any:
        if hasattr(CLASSES.get(value), "_join"):
            return CLASSES[value]
        if len(parts) < 2:
            return None
        name = f"{self.service.name}{method}"
        if f"{self.package}.{name}" in self.options.of:
            name += "Answer"  # the file has a message of this name
        make: Any = collections.namedtuple  # the types are in the stubs
        made = make(name, [part.name for part in parts])
        made.__doc__ = f"What ``{snake(method)}`` of {self.service.name} returns."
        return made

    def arguments(self, request: list[Path], fixed: list[Path], times: Any) -> list[Argument]:
        found = []
        for path in request:
            message = path[-1].message_type
            shape = self.codec.shape(message).kind if message is not None else "scalar"
            is_flat = shape in ("plain", "list") and len(request) == 1
            if message is not None and is_flat and not is_repeated(path[-1]):
                inner = [(*path, field) for field in message.fields]
                found += [self.argument(one, times) for one in inner if one not in fixed]
            else:
                fields = [] if message is None else message.fields
                is_bare = shape == "plain" and not any(map(is_required, fields))
                found.append(self.argument(path, times, None if is_bare else REQUIRED))
        # Arguments without a default come first, and the period before all others.
        return sorted(found, key=lambda it: (it.default is not REQUIRED, it.name != "period_ms"))

    def argument(self, path: Path, times: Any, default: Any = ...) -> Argument:
        field = path[-1]
        absent_means = self.options.get(field.full_name, "absent_means")
        if path in times and times[path] == "period_ms":
            default = REQUIRED
        elif default is ...:
            default = REQUIRED if is_required(field) or is_repeated(field) else None
        if absent_means is not None:
            default = constant(field, absent_means)
        annotation = self.codec.annotation(field, True)
        if default is None and annotation != "Any":
            annotation += " | None"
        unit = self.options.get(field.full_name, "unit") or ""
        name = times.get(path) or _with_unit(snake(field.name), unit)
        return Argument(name, path, annotation, default, self.about(field, unit, len(path) > 1))

    def about(self, field: Any, unit: str, with_comment: bool) -> str:
        """Comment, unit and range of a field, in one line."""
        lowest, highest = (self.options.get(field.full_name, end) for end in ("min", "max"))
        words = []
        if unit and not field.name.lower().endswith(unit.lower()):
            words.append(f"in {unit}")
        if lowest is not None and highest is not None:
            words.append(f"from {lowest:g} to {highest:g}")
        elif lowest is not None or highest is not None:
            words.append(f"at least {lowest:g}" if highest is None else f"at most {highest:g}")
        docs = " ".join(self.options.docs[field.full_name].split()) if with_comment else ""
        if words:
            docs = f"{docs} {', '.join(words).capitalize()}.".strip()
        return docs

    def parts(self, paths: list[Path], is_optional: bool) -> list[Part]:
        return [
            Part(
                _safe(snake(path[-1].name)),
                path,
                self.codec.annotation(path[-1], False),
                is_optional,
            )
            for path in paths
        ]

    def settings(self, method: str, values: Any) -> list[Setting]:
        found = []
        for setting in values:
            path = self.path(method, setting.field)
            found.append((path, constant(path[-1], setting.value)))
        return found

    def paths(self, method: str, names: Any) -> list[Path]:
        # A stream has at most one request.
        names = [names] if isinstance(names, str) and names else names
        return [self.path(method, name) for name in names]

    def path(self, method: str, name: str) -> Path:
        """The field that a description names: an extension of DriverMsg, or a field in one."""
        words = name.split(".")
        extension, rest = self.pool.extension(f"{self.package}.{words[0]}"), words[1:]
        for end in range(1, len(words) + 1):
            if extension is None:
                extension, rest = self.pool.extension(".".join(words[:end])), words[end:]
        path = [extension]
        for word in rest:
            message = path[-1].message_type if path[-1] is not None else None
            path.append(None if message is None else message.fields_by_name.get(word))
        if None in path:
            raise self.error(f"method {method}: there is no field {name!r}")
        return tuple(path)

    def error(self, text: str) -> ValueError:
        return ValueError(f"{self.file}: service {self.service.name}: {text}")


def _holds(codec: Codec, message: Any, settings: tuple[Setting, ...]) -> bool:
    return all(codec.read(message, path) == value for path, value in settings)


def _is_empty(message: Any, path: Path) -> bool:
    """Whether a field is absent, or a message or list without content."""
    if is_repeated(path[-1]):
        return not len(inside(message, path))
    if not is_present(message, path):
        return True
    return path[-1].message_type is not None and inside(message, path).ByteSize() == 0


def _refusal(device: Any, told: Any) -> Refused:
    if isinstance(told, str):
        return Refused(f"{device} refused the request: {told}")
    known = told.DESCRIPTOR.fields_by_name
    text = told.message if "message" in known else str(told).strip()
    reason = told.reason if "reason" in known and told.HasField("reason") else None
    if reason is not None and known["reason"].enum_type is not None:
        reason = known["reason"].enum_type.values_by_number[reason].name
    hint = told.hint if "hint" in known and told.HasField("hint") else None
    return Refused(f"{device} refused the request: {text}", reason, hint)


def _safe(name: str) -> str:
    """A name that Python accepts."""
    return f"{name}_" if keyword.iskeyword(name) or name == "self" else name


def _with_unit(name: str, unit: str) -> str:
    """The name of an argument, with its unit: ``angle_deg``."""
    unit = {"%": "percent", "ms since 1970": "ms", "us since 1970": "us"}.get(unit, unit)
    suffix = unit.replace("/", "_").replace("^", "").lower()
    is_name = suffix.isidentifier() and suffix.isascii()
    if is_name and name != suffix and not name.endswith(f"_{suffix}"):
        name = f"{name}_{suffix}"
    return _safe(name)


#: The interfaces of Amber's own devices, by device type.
OURS = read(schemas._SHARED, list(schemas._BASE_NAMES))
