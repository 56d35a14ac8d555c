"""The API reference: every public name with its signature, its docstring, and the source of the operations."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from typing import Any

import numpy as np

from .catalogue import MODULES, PAGES, Name, Page, find, names
from .docstrings import entries, is_formula, parse
from .markdown import WIDE, Link, block, code, prose, table


def reference_page(page: Page) -> str:
    """One page of the reference as Markdown."""
    parts = [f"# {page.title}", page.about]
    here = [name for name in names() if name.page == page.name]
    here.sort(key=lambda name: _is_result(name.value))  # the tuples that functions return come after them
    if any(source in MODULES for source in page.sources):
        here.sort(key=lambda name: name.dotted.count(".") == 1)  # and what also has a name at the top, last
    for name in here:
        if _documented(name.value):
            parts += _entry(name, page)
    parts += _plain([name for name in here if not _documented(name.value)])
    return "\n\n".join(parts) + "\n"


def reference_index() -> str:
    """All pages, with what stands on them."""
    rows = []
    for page in PAGES:
        listed = [
            name
            for name in names()
            if name.page == page.name and not name.dotted.endswith("_backward") and not _is_result(name.value)
            if name is _first(name) or name.dotted.count(".") == 1
        ]
        links = " ".join(f"[{code(name.dotted.rpartition('.')[2])}]({_place(name)})" for name in listed)
        rows.append((f"[{page.title}]({page.name}.md)", links))
    return (
        f"{WIDE}# API reference\n\nEvery public name. Functions stand with their `_backward` right below them, and both show their "
        "source: an operation is a check of its arguments and one call of a kernel.\n\n"
        + table(("page", "names"), rows)
        + "\n"
    )


def _documented(value: Any) -> bool:
    return callable(value) and bool(inspect.getdoc(value)) and hasattr(value, "__name__")


def _is_result(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, tuple)


def _first(name: Name) -> Name:
    """The name that an object is explained under, where it has several."""
    return next(other for other in names() if other.value is name.value)


def _place(name: Name) -> str:
    return f"{name.page}.md#{name.dotted}"


def _link_from(page: Page) -> Link:
    def link(spelling: str) -> str | None:
        found = find(spelling)
        if found is None or not _documented(found.value):
            return None
        return f"#{found.dotted}" if found.page == page.name else _place(found)

    return link


def _plain(listed: list[Name]) -> list[str]:
    """Names with nothing to explain: dtypes, constants, type aliases."""
    if not listed:
        return []
    marked = {name.dotted: f'<a id="{name.dotted}"></a>{code(name.short)}' for name in listed}
    if all(isinstance(name.value, np.dtype) for name in listed):
        return ["## Dtypes", "NumPy's dtypes under their names: " + ", ".join(marked.values()) + "."]
    rows = [(marked[name.dotted], code(_value_text(name.value))) for name in listed]
    return ["## Values", table(("name", "value"), rows)]


def _value_text(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {v}" for k, v in value.items()) + "}"
    return repr(value)


def _entry(name: Name, page: Page) -> list[str]:
    """The heading, signature, text and source of one name; a backward stands one level below its forward."""
    backward = name.dotted.endswith("_backward")
    heading = f"{'###' if backward else '##'} {code(name.short)} {{ #{name.dotted} }}"
    first = _first(name)
    if first is not name:
        return [heading, f"Another name of [{code(first.short)}]({_link_from(page)(first.dotted)})."]
    parts = [heading, _signature(name), *_text(name.value, _link_from(page))]
    if isinstance(name.value, type):
        parts += _methods(name.value, _link_from(page))
    elif str(name.value.__module__).startswith("extensor.ops."):
        parts.append(_source(name.value))
    return parts


def _signature(name: Name) -> str:
    """The call as one types it, a parameter per line where it is long."""
    short = name.short
    try:
        signature = inspect.signature(name.value)
    except (TypeError, ValueError):
        return block(short, "python")
    if isinstance(name.value, type):
        if issubclass(name.value, (BaseException, tuple)) and not _is_result(name.value):
            return block(f"class {short}", "python")
        signature = signature.replace(return_annotation=signature.empty)
    text = f"{short}{_annotations(signature)}"
    if len(text) > 88:
        inner = _annotations(signature.replace(return_annotation=signature.empty))[1:-1]
        arguments = "".join(f"    {part},\n" for part in _split(inner))
        returns = _annotations(signature).rpartition(" -> ")
        text = f"{short}(\n{arguments})" + (f" -> {returns[2]}" if returns[1] else "")
    return block(text, "python")


def _annotations(signature: inspect.Signature) -> str:
    """The signature as text; annotations are written without quotes, defaults as one writes them."""
    text = str(signature).replace("'", "")
    text = re.sub(r"(?:dtype|ForwardRef)\(([^()]+)\)", r"\1", text)
    text = re.sub(r"<class (?:\w+\.)*(\w+)>", r"\1", text)
    text = re.sub(r"<function (?:\w+\.)*(\w+) at 0x\w+>", r"\1", text)
    strings = {p.default for p in signature.parameters.values() if isinstance(p.default, str) and p.default}
    for default in strings:
        text = re.sub(rf"(= ){re.escape(default)}(?=[,)])", lambda m, d=default: f'{m[1]}"{d}"', text)
    return text


def _split(arguments: str) -> list[str]:
    """Arguments at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, sign in enumerate(arguments):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and not depth:
            parts.append(arguments[start:i].strip())
            start = i + 1
    return [*parts, arguments[start:].strip()]


def _text(value: Any, link: Link) -> list[str]:
    """The docstring, part by part."""
    doc = parse(value)
    parts = [prose(doc.summary, link)]
    if doc.formula:
        parts.append(block(doc.formula.replace(",  ", "\n"), "text"))
    parts += [block(text, "text") if is_formula(text) else prose(text, link) for text in doc.paragraphs]
    for title, section in doc.sections.items():
        if title == "Example":
            parts += _example(section, link)
        else:
            parts.append(f"**{title}**")
            lines = [
                f"- {', '.join(code(n.strip()) for n in name.split(','))}: {prose(text, link)}"
                if name
                else f"- {prose(text, link)}"
                for name, text in (entries(section) if title != "Returns" else [("", section)])
            ]
            parts.append("\n".join(lines))
    return parts


def _example(section: str, link: Link) -> list[str]:
    pieces = re.split(r"\n\s*\n", section)
    shown = [
        block(piece.replace("<BLANKLINE>", ""), "pycon") if piece.startswith(">>>") else prose(piece, link)
        for piece in pieces
    ]
    return ["**Example**", *shown]


def _methods(value: type, link: Link) -> list[str]:
    """Public methods and properties that a class defines itself and explains; methods that are functions, as links."""
    rows, mirrored = [], []
    for name, member in _members(value).items():
        target = getattr(member, "fget", None) or getattr(member, "__func__", member)
        if name.startswith("_") or not inspect.getdoc(target) or not callable(target):
            continue
        function = link(f"extensor.{name}")
        if function and value.__name__ == "ExTensor" and not isinstance(member, property):
            mirrored.append(f"[{code(name)}]({function})")
            continue
        shown = name if isinstance(member, property) else f"{name}{_arguments(target)}"
        rows.append((code(shown), prose(parse(target).summary, link)))
    parts = [table(("method", ""), rows)] if rows else []
    if mirrored:
        parts.append(f"Functions that are methods too, with the tensor first: {' '.join(mirrored)}.")
    return parts


def _members(value: type) -> dict[str, Any]:
    """What a class defines, or takes over from bases that have no page of their own."""
    public = {id(name.value) for name in names()}
    found: dict[str, Any] = {}
    for base in value.__mro__:
        if base is value or (base.__module__.startswith("extensor.") and id(base) not in public):
            found = {**vars(base), **found}
    return found


def _arguments(method: Any) -> str:
    """Only the names of the arguments, as they are passed to a method."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    listed = list(inspect.signature(method).parameters.values())
    shown = [stars.get(p.kind, "") + p.name for p in listed[1:]]
    return f"({', '.join(shown)})"


def _source(value: Any) -> str:
    """The body of a function in a block that opens, without the docstring that stands above it."""
    lines = inspect.getsource(getattr(value, "fn", inspect.unwrap(value))).rstrip().split("\n")
    function = ast.parse("\n".join(lines)).body[0]
    if isinstance(function, ast.FunctionDef) and ast.get_docstring(function):
        docstring = function.body[0]
        del lines[docstring.lineno - 1 : docstring.end_lineno]
    return '??? quote "Source"\n\n' + textwrap.indent(block("\n".join(lines), "python"), "    ")
