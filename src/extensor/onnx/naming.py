"""What the nodes of a file are called here: by the modules they come from where the file tells, else by their operators."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["label", "node_names", "unused"]

_SCOPES = "pkg.torch.onnx.name_scopes"  # where PyTorch's newer exporter writes the modules around a node


def label(proto: Any, position: int) -> str:
    """A node as messages call it."""
    domain = f"{proto.domain}." if proto.domain not in ("", "ai.onnx") else ""
    return f"node {proto.name or position!r} ({domain}{proto.op_type})"


def node_names(protos: Sequence[Any]) -> list[str]:
    """A name for each node, not yet made unique.

    A module that is one node gives it its name, ``layer1.0.conv1``; of several nodes each adds its operator, ``layer1.0.add``.
    """
    scopes = [_scope(proto) for proto in protos]
    inside: Counter[str] = Counter()  # nodes in each module, those of modules in it included
    for scope in scopes:
        parts = [] if scope is None else scope.split(".")
        inside.update(".".join(parts[:n]) for n in range(1, len(parts) + 1))
    found = []
    for i, (proto, scope) in enumerate(zip(protos, scopes)):
        kind = _word(proto.op_type).lower()
        if scope is None:
            found.append(".".join(filter(None, map(_word, re.split(r"[/.]", proto.name)))) or f"{kind}_{i}")
        elif scope and inside[scope] == 1:
            found.append(scope)
        else:
            found.append(f"{scope}.{kind}" if scope else kind)
    return found


def _scope(proto: Any) -> str | None:
    """The path of the module that a node belongs to; None where the file does not say."""
    for entry in proto.metadata_props:
        if entry.key == _SCOPES:
            *modules, _ = re.findall(r"'([^']*)'", entry.value) or [""]
            last = modules[-1] if modules and not modules[-1].startswith("_") else ""
            return ".".join(filter(None, map(_word, last.split("."))))
    *modules, last = proto.name.split("/")
    if not modules or re.sub(r"_\d+$", "", last) != proto.op_type:
        return None
    path: list[str] = []
    for name in filter(None, modules):  # layer1/layer1.0/conv1: a name may begin with the one before it
        if path and name.startswith(f"{path[-1]}."):
            path.pop()
        path.append(name)
    return ".".join(_word(part) for name in path for part in name.split(".") if _word(part))


def _word(text: str) -> str:
    return re.sub(r"\W+", "_", text)


def unused(name: str, taken: Mapping[str, Any]) -> str:
    """The name, or the name with a number, if another has it."""
    found, count = name, 1
    while found in taken:
        count += 1
        found = f"{name}_{count}"
    return found
