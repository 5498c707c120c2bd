"""Fields of messages as values of Python, and back. PURE."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Optional

from . import values
from .errors import BadAnswer

#: From a DriverMsg to a field: an extension, then fields of messages.
Path = tuple[Any, ...]


class Options:
    """The options and comments of a pool's files, by full name."""

    def __init__(self, pool: Any) -> None:
        read = pool.message("google.protobuf.FileDescriptorProto").FromString
        self.of: dict[str, Any] = {}
        self.docs: dict[str, str] = {}
        #: The services of each file.
        self.services: dict[str, list[Any]] = {}
        names = ("device", "ask", "tell", "stream", "moves", "unit", "min", "max", "absent_means")
        self._extensions = {
            name: pool.extension(f"amber.{name}") for name in (*names, "value", "columns")
        }
        for file in pool.files.values():
            self._add(read(file.SerializeToString()))

    def _add(self, file: Any) -> None:
        comments = {
            tuple(place.path): place.leading_comments for place in file.source_code_info.location
        }

        def note(outer: str, declared: Any, place: tuple[int, ...]) -> str:
            name = f"{outer}.{declared.name}" if outer else str(declared.name)
            self.of[name] = declared.options
            lines = comments.get(place, "").splitlines()
            self.docs[name] = "\n".join(line[line.startswith(" ") :] for line in lines).strip()
            return name

        def messages(outer: str, declared: Any, place: tuple[int, ...]) -> None:
            for index, message in enumerate(declared):
                name = note(outer, message, (*place, index))
                for number, field in enumerate(message.field):
                    note(name, field, (*place, index, 2, number))
                messages(name, message.nested_type, (*place, index, 3))

        messages(file.package, file.message_type, (4,))
        for index, extension in enumerate(file.extension):
            note(file.package, extension, (7, index))
        for index, service in enumerate(file.service):
            name = note(file.package, service, (6, index))
            for number, method in enumerate(service.method):
                note(name, method, (6, index, 2, number))
        self.services[file.name] = list(file.service)

    def get(self, full_name: str, option: str) -> Any:
        """An option of interface.proto, or None."""
        extension = self._extensions[option]
        found = self.of.get(full_name)
        if found is None or not found.HasExtension(extension):
            return None
        return found.Extensions[extension]


class Shape(NamedTuple):
    """The form of a message in Python."""

    #: ``value``, ``rows``, ``tuples``, ``list`` or ``plain``.
    kind: str
    #: The class of the value, or of one row.
    value: Any = None


class Codec:
    """Reads and writes fields as the options of their messages say."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._shapes: dict[str, Shape] = {}

    def shape(self, message: Any) -> Shape:
        if message.full_name not in self._shapes:
            value = values.CLASSES.get(self.options.get(message.full_name, "value") or "")
            is_table = bool(self.options.get(message.full_name, "columns"))
            if value is not None:
                shape = Shape("rows" if hasattr(value, "_columns") else "value", value)
            elif is_table:
                shape = Shape("tuples")
            elif len(message.fields) == 1 and is_repeated(message.fields[0]):
                shape = Shape("list")
            else:
                shape = Shape("plain")
            self._shapes[message.full_name] = shape
        return self._shapes[message.full_name]

    # Reading

    def read(self, message: Any, path: Path) -> Any:
        for field in path[:-1]:
            message = _inside(message, field)
        field = path[-1]
        found = _inside(message, field)
        if is_repeated(field):
            return [self._one(field, one) for one in found]
        return self._one(field, found)

    def _one(self, field: Any, found: Any) -> Any:
        if field.message_type is None:
            return found
        shape = self.shape(field.message_type)
        if shape.kind == "value":
            return shape.value._read(found)
        if shape.kind == "rows":
            return [shape.value(*row) for row in _rows(found, shape.value._columns)]
        if shape.kind == "tuples":
            return list(_rows(found, [column.name for column in field.message_type.fields]))
        if shape.kind == "list":
            return self.read(found, (field.message_type.fields[0],))
        return found

    # Writing

    def write(self, message: Any, path: Path, value: Any) -> None:
        for field in path[:-1]:
            message = _inside(message, field)
        field = path[-1]
        try:
            if is_repeated(field):
                found = _inside(message, field)
                del found[:]
                for one in value:
                    if field.message_type is not None:
                        self.fill(found.add(), one)
                    else:
                        found.append(_number(field, one))
            elif field.message_type is not None:
                self.fill(_inside(message, field), value)
            elif field.is_extension:
                message.Extensions[field] = _number(field, value)
            else:
                setattr(message, field.name, _number(field, value))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{field.name}: {error}") from None

    def fill(self, message: Any, value: Any) -> None:
        """Fills a message with a value: that of its class, a mapping, a tuple, or a message."""
        message.SetInParent()
        descriptor = message.DESCRIPTOR
        fields = list(descriptor.fields)
        shape = self.shape(descriptor)
        if hasattr(value, "SerializeToString"):
            # Messages of another pool have other classes.
            message.MergeFromString(value.SerializePartialToString())
        elif shape.kind in ("rows", "tuples"):
            _fill_rows(message, shape.value, value)
        elif shape.kind == "list":
            self.write(message, (fields[0],), value)
        elif shape.value is not None and isinstance(value, shape.value):
            value._write(message)
        elif isinstance(value, Mapping):
            known = {field.name: field for field in fields}
            for name, one in value.items():
                if name not in known:
                    raise ValueError(f"{descriptor.name} has no field {name!r}")
                self.write(message, (known[name],), one)
        elif isinstance(value, tuple) and len(value) <= len(fields):
            for field, one in zip(fields, value):
                self.write(message, (field,), one)
        elif isinstance(value, str) and descriptor.full_name == "amber.mediator_proto.Device":
            from .device import Device

            self.fill(message, Device.parse(value))
        else:
            wanted = shape.value.__name__ if shape.value else descriptor.name
            raise TypeError(f"{value!r} is not a {wanted}")

    # Types

    def annotation(self, field: Any, for_argument: bool) -> str:
        """The type of a field in Python, as text."""
        one = self._type(field, for_argument)
        if is_repeated(field):
            return f"Iterable[{one}]" if for_argument else f"list[{one}]"
        return one

    def _type(self, field: Any, for_argument: bool) -> str:
        if field.message_type is None:
            name = _SCALARS[field.cpp_type]
            if field.enum_type is not None:
                return "int | str" if for_argument else "int"
            return "bytes" if field.type == field.TYPE_BYTES else name
        shape = self.shape(field.message_type)
        if shape.kind == "value":
            return str(shape.value.__name__)
        several = "Iterable" if for_argument else "list"
        if shape.kind == "rows":
            return f"{several}[{shape.value.__name__}]"
        if shape.kind == "tuples":
            cells = [_SCALARS[column.cpp_type] for column in field.message_type.fields]
            rows = f"{several}[tuple[{', '.join(cells)}]]"
            is_mapping = for_argument and len(cells) == 2
            return f"Mapping[{', '.join(cells)}] | {rows}" if is_mapping else rows
        if shape.kind == "list":
            return self.annotation(field.message_type.fields[0], for_argument)
        return "Any"


def is_present(message: Any, path: Path) -> bool:
    """Whether a message has a field. Lists always are there."""
    for field in path:
        if is_repeated(field):
            return True
        there = message.HasExtension(field) if field.is_extension else message.HasField(field.name)
        if not there:
            return False
        message = _inside(message, field)
    return True


def inside(message: Any, path: Path) -> Any:
    """The field of a message, without conversion."""
    for field in path:
        message = _inside(message, field)
    return message


def is_repeated(field: Any) -> bool:
    modern: Optional[bool] = getattr(field, "is_repeated", None)  # from protobuf 6
    return bool(field.label == field.LABEL_REPEATED) if modern is None else modern


def is_required(field: Any) -> bool:
    modern: Optional[bool] = getattr(field, "is_required", None)  # from protobuf 6
    return bool(field.label == field.LABEL_REQUIRED) if modern is None else modern


def snake(name: str) -> str:
    """``SetAngle`` as ``set_angle``."""
    edges = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])"
    return re.sub(edges, "_", name).replace("-", "_").lower()


def constant(field: Any, text: str) -> Any:
    """The value of a field that a description writes as text."""
    if field.enum_type is not None:
        return _number(field, text)
    kind = _SCALARS[field.cpp_type]
    return text == "true" if kind == "bool" else {"int": int, "float": float}.get(kind, str)(text)


def _inside(message: Any, field: Any) -> Any:
    return message.Extensions[field] if field.is_extension else getattr(message, field.name)


def _number(field: Any, value: Any) -> Any:
    """The number of an enum's value."""
    if field.enum_type is None or not isinstance(value, str):
        return value
    known = {each.name: each.number for each in field.enum_type.values}
    if value not in known:
        raise ValueError(f"{value!r} is not one of {', '.join(known)}")
    return known[value]


def _fill_rows(message: Any, value: Any, rows: Any) -> None:
    """Fills the columns of a table with rows: tuples, or values of a class."""
    names = value._columns if value else [field.name for field in message.DESCRIPTOR.fields]
    columns = [getattr(message, name) for name in names]
    for row in rows.items() if isinstance(rows, Mapping) else rows:
        if value is not None and not isinstance(row, value):
            row = value(*row)
        cells = tuple(row) if value is None else tuple(vars(row).values())
        if len(cells) != len(columns):
            raise ValueError(f"a row has {len(columns)} values, not {len(cells)}")
        for column, cell in zip(columns, cells):
            column.append(cell)


def _rows(message: Any, names: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    columns = [getattr(message, name) for name in names]
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise BadAnswer(f"the columns of {message.DESCRIPTOR.name} have different lengths")
    return zip(*columns)


#: The types of scalars, by the descriptor's ``cpp_type``.
_SCALARS = {1: "int", 2: "int", 3: "int", 4: "int", 5: "float", 6: "float", 7: "bool", 8: "int"}
_SCALARS[9] = "str"
