"""What the pages show is true: Python blocks run from top to bottom and print what the page says, commands exist."""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import linecache
import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from pytorch_files import write_state_dict

import extensor as et
from extensor.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', re.DOTALL | re.MULTILINE)


def blocks(page: Path) -> list[tuple[str, str, str]]:
    """Language, title and text of the fenced blocks of a page."""
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def commands(page: Path) -> list[list[str]]:
    """The ``extensor`` commands of the shell blocks of a page, as words."""
    lines = [line for kind, _, text in blocks(page) if kind == "sh" for line in text.splitlines()]
    return [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("extensor ")]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT).with_suffix(""))


# Blocks of the kind "py" need more than the tests do; where that is missing, a file of the same kind takes its place.
NEEDED = {"there_and_back": "torch", "devices": "jax"}


def stand_in(page: Path, number: int) -> None:
    if page.stem == "there_and_back" and number == 1:
        layers = (
            et.nn.Conv2d(1, 4, 3, rng=0),
            et.nn.ReLU(),
            et.nn.Flatten(),
            et.nn.Linear(4 * 6 * 6, 3, rng=1),
        )
        net = et.nn.Sequential(*layers)
        write_state_dict(Path("net.pt"), net.state_dict())
        et.onnx.export(net, "theirs.onnx", et.zeros((2, 1, 8, 8)))


def run_python(page: Path) -> None:
    """Run the blocks of a page in one namespace, in the working folder; compare what it says they print."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = ""
    for number, (kind, title, text) in enumerate(blocks(page), 1):
        place = f"{page.name}, block {number}"
        more = kind == "py" and page.stem in NEEDED
        if more and not importlib.util.find_spec(NEEDED[page.stem]):
            stand_in(page, number)
        elif kind == "python" or more:
            if title:
                Path(title).write_text(text)
            linecache.cache[place] = (len(text), None, text.splitlines(keepends=True), place)  # for inspect
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(text, place, "exec"), namespace)
            printed = output.getvalue()
        elif title == "prints":
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            assert doctest.OutputChecker().check_output(text, printed, flags), (
                f"{place} says otherwise: {printed}"
            )


@pytest.mark.parametrize(
    "page", [p for p in PAGES if any(b[0] == "python" for b in blocks(p)) or p.stem in NEEDED], ids=name
)
def test_python_blocks(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page.stem == "kernel":
        pytest.importorskip("extensor._native", reason="the page measures the native kernel")
    monkeypatch.chdir(tmp_path)
    run_python(page)
    for drawn in tmp_path.glob("*.svg"):
        assert drawn.read_text() == (page.parent / drawn.name).read_text(), f"{drawn.name} is drawn otherwise"


@pytest.mark.parametrize("page", [p for p in PAGES if commands(p)], ids=name)
def test_commands_parse(page: Path) -> None:
    context = click.Context(main)
    for words in commands(page):
        command = main.get_command(context, words[0])
        assert command, f"there is no command {words[0]}"
        inner = click.Context(command, **command.context_settings)
        given, rest, _ = command.make_parser(inner).parse_args(words[1:])
        assert not rest, f"extensor {shlex.join(words)}: {rest} is too much"
        for parameter in command.params:
            if parameter.name in given and not isinstance(parameter.type, click.Path):
                parameter.type_cast_value(inner, given[parameter.name])


def is_ready(words: list[str]) -> bool:
    """Whether the data that a command reads is there; pages also speak of files that readers may have."""
    return "--data" not in words or Path(words[words.index("--data") + 1]).exists()


@pytest.mark.parametrize(
    "page",
    [ROOT / f"docs/{name}.md" for name in ("start", "adding", "your_data", "there_and_back")],
    ids=name,
)
def test_commands_do_what_the_page_says(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_python(page)
    shown = [words for words in commands(page) if is_ready(words) and "runs/chargpt" not in words]
    assert shown
    for words in shown:
        result = CliRunner().invoke(main, words)
        assert result.exit_code == 0, f"extensor {shlex.join(words)}: {result.output}"


def links(page: Path) -> list[str]:
    """The links of a page to other files, without the places in them."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    return re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"], ids=name)
def test_links_lead_somewhere_in_a_checkout(page: Path) -> None:
    assert [link for link in links(page) if not (page.parent / link).exists()] == []
