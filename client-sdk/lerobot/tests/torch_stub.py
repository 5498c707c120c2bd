"""Stands for PyTorch, which LeRobot's robots and cameras need for annotations only."""

import sys
import types
from typing import Any


class _Anything(types.ModuleType):
    """Each name is a class, and each module in it is another one like this."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (), {})
        setattr(self, name, made)
        return made


def install() -> None:
    for name in ["torch", "torch.nn", "torch.utils", "torch.utils.data", "torch.distributed"]:
        module = _Anything(name)
        module.__path__ = []
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
