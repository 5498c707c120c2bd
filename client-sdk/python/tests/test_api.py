"""The public API of the package is that of ``api.txt``. A change of it is on purpose.

    python3 tests/test_api.py --write

writes the file. Lines that are lost or changed break programs: docs/compatibility.md says when that
is allowed, and CHANGELOG.md must say so.
"""

import difflib
import inspect
import os
import sys
import types
import unittest
from typing import TypeVar

from google.protobuf.message import Message

import amber
from amber import (
    aio,
    aio_robot,
    client,
    device,
    devices,
    driver,
    drivers,
    errors,
    frame,
    lease,
    proxies,
    robot,
    scene,
    schemas,
    stubs,
    typed,
    typed_driver,
    values,
)

FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "api.txt")
MODULES = [amber, aio, aio_robot, client, device, devices, driver, drivers, errors, frame, lease]
MODULES += [proxies, robot, scene, schemas, stubs, typed, typed_driver, values]
EXTRAS = "amber.extras"
HINT = """the public API is not that of client-sdk/python/tests/api.txt:
{}
If this is on purpose, write the file with `PYTHONPATH=src python3 tests/test_api.py --write` in
client-sdk/python, and CHANGELOG.md if programs notice it. Lines with - are lost: programs that use
them break."""


def api():
    """A line for each public name, in the order of the modules."""
    lines = []
    for module in MODULES:
        lines.append(f"module {module.__name__}")
        names = getattr(module, "__all__", None) or [
            name for name, value in vars(module).items() if is_own(module, name, value)
        ]
        for name in sorted(names):
            lines += described(name, getattr(module, name), module)
        lines.append("")
    return lines


def is_own(module, name, value):
    """Whether a module without ``__all__`` defines the name."""
    return not name.startswith("_") and getattr(value, "__module__", None) == module.__name__


def described(name, value, module):
    if inspect.ismodule(value):
        return [f"  {name}: module"]
    if isinstance(value, TypeVar):
        return []
    if isinstance(value, types.GenericAlias):
        return [f"  {name}: {value}"]
    if not inspect.isclass(value):
        return [f"  {name}{signature(value) if callable(value) else ': ' + type(value).__name__}"]
    if issubclass(value, Message):
        return [f"  {name}: message of protobuf"]
    home = value.__module__
    if home != module.__name__:
        return [f"  {name}: class of {home}"]
    bases = [base.__name__ for base in value.__bases__ if base is not object]
    lines = [f"  class {name}({', '.join(bases)})"]
    # The methods that a class of a device has from a class that is not public.
    levels = [level for level in value.__mro__ if level is value or level.__module__ == EXTRAS]
    members = {key: it for level in reversed(levels) for key, it in vars(level).items()}
    # Versions of Python differ in what they add.
    own = {key: it for key, it in members.items() if getattr(it, "__module__", "") != "typing"}
    shown = {key: it for key, it in own.items() if not key.startswith("_") or key == "__init__"}
    for key, member in sorted(shown.items()):
        lines.append(f"    {key}{of_member(member)}")
    return lines


def of_member(member):
    if isinstance(member, property):
        return f" -> {member.fget.__annotations__.get('return', 'Any')}"
    if isinstance(member, (classmethod, staticmethod)):
        return f"{signature(member.__func__)} {type(member).__name__}"
    if inspect.isfunction(member):
        return signature(member)
    return ""


def signature(function):
    """The signature, which all versions of Python write in the same way."""
    try:
        found = inspect.signature(function)
    except ValueError:
        return "(...)"
    parts, has_star = [], False
    for one in found.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not has_star:
            parts.append("*")
            has_star = True
        star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        has_star = has_star or star == "*"
        default = "" if one.default is one.empty else " = " + default_of(one.default)
        parts.append(f"{star}{one.name}{annotation(': ', one.annotation)}{default}")
    head = "async " if inspect.iscoroutinefunction(function) else ""
    return f"({', '.join(parts)}){annotation(' -> ', found.return_annotation)} {head}".rstrip()


def annotation(before, value):
    if value is inspect.Signature.empty:
        return ""
    return before + (value if isinstance(value, str) else getattr(value, "__name__", str(value)))


def default_of(value):
    simple = (int, float, str, bool, tuple, type(None))
    return repr(value) if isinstance(value, simple) else "..."


class Api(unittest.TestCase):
    def test_the_public_api_is_that_of_the_file(self):
        with open(FILE, encoding="utf-8") as file:
            expected = file.read().splitlines()
        changes = difflib.unified_diff(expected, api(), "api.txt", "the package", lineterm="", n=0)
        text = "\n".join(changes)
        self.assertFalse(text, HINT.format(text))

    def test_everything_public_has_a_docstring(self):
        missing = []
        for module in MODULES:
            for name, value in vars(module).items():
                is_class = inspect.isclass(value)
                if not is_own(module, name, value) or not (is_class or inspect.isfunction(value)):
                    continue
                # A class of protobuf has none; Python writes one for a data class or a named tuple.
                if is_class and issubclass(value, Message):
                    continue
                if not value.__doc__ or value.__doc__.startswith(f"{name}("):
                    missing.append(f"{module.__name__}.{name}")
                for key, member in vars(value).items() if is_class else ():
                    function = getattr(member, "fget", getattr(member, "__func__", member))
                    is_method = inspect.isfunction(function) and not key.startswith("_")
                    if is_method and not function.__doc__:
                        missing.append(f"{module.__name__}.{name}.{key}")
        self.assertEqual(missing, [])

    def test_a_lost_name_is_noticed(self):
        self.assertIn("  Robot: class of amber.robot", api())
        self.assertTrue(any(line.startswith("    take_wheels(self, name: str") for line in api()))


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        with open(FILE, "w", encoding="utf-8") as out:
            out.write("\n".join(api()) + "\n")
        print("wrote", FILE)
    else:
        unittest.main()
