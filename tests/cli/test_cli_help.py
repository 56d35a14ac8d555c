"""What the command line says about itself: help that fits a terminal, exit codes, completion by the Tab key."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from extensor.cli import COMMANDS, main


def call(*args: Any, **env: str) -> Result:
    return CliRunner(env=env).invoke(main, [str(a) for a in args])


# Help


@pytest.mark.parametrize("command", ["", *COMMANDS])
@pytest.mark.parametrize("columns", [80, 120])
def test_help_fits_the_terminal(command: str, columns: int) -> None:
    result = CliRunner().invoke(main, [*command.split(), "--help"], terminal_width=columns)
    assert result.exit_code == 0
    assert max(map(len, result.output.splitlines())) <= columns
    assert "  -h, --help" in result.output


def test_help_uses_a_wide_terminal_but_no_more_than_can_be_read() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "extensor.cli", "train", "--help"],
        env=os.environ | {"COLUMNS": "200"}, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert 100 < max(map(len, shown.splitlines())) <= 120


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_explains_itself(command: str) -> None:
    found = main.get_command(click.Context(main), command)
    assert found is not None
    for parameter in found.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, f"{command} {parameter.opts}"
            assert "RANGE" not in (parameter.make_metavar(click.Context(found)) or "")


def test_a_command_that_is_misspelt() -> None:
    assert "No such command 'trian'; did you mean 'train'?" in call("trian").stderr
    assert "No such command 'xyzzy'." in call("xyzzy").stderr


def test_help_tells_the_exit_codes() -> None:
    shown = call("--help").output
    assert [line.split()[0] for line in shown.split("Exit codes:")[1].splitlines()[1:5]] == [
        "0",
        "1",
        "2",
        "130",
    ]


# Exit codes

WRONG = """
import extensor as et

@et.differentiable
def twice(x):
    return et.asarray(2 * x.numpy())

def twice_backward(grad_output):
    return 3 * grad_output
"""


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--version"], 0),
        (["verify", "--only", "negate", "--dtype", "float64"], 0),
        (["verify", "wrong.py"], 1),
        (["inspect", "wrong.py"], 1),
        (["train", "chargpt"], 1),
        ([], 2),
        (["nothing"], 2),
        (["train", "--epochs", "0"], 2),
        (["train", "--epochs", "1", "--steps", "1"], 2),
        (["train", "--nothing"], 2),
        (["predict"], 2),
        (["predict", "nowhere"], 2),
        (["verify", "--only", "nothing"], 2),
        (["bench", "--only", "nothing"], 2),
        (["completion", "tcsh"], 2),
    ],
)
def test_exit_codes(args: list[str], code: int, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wrong.py").write_text(WRONG)
    result = call(*args)
    assert result.exit_code == code, result.output
    assert bool(result.stderr) == (code != 0) or args == ["verify", "wrong.py"]
    assert not Path("runs").exists()


def test_ctrl_c_in_a_command_is_130(monkeypatch: Any) -> None:
    def interrupted(*args: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("extensor.cli.verify._choose", interrupted)
    result = call("verify")
    assert (result.exit_code, result.stderr) == (130, "interrupted\n")


def test_ctrl_c_in_training_is_130_with_a_checkpoint(tmp_path: Path) -> None:
    run = tmp_path / "run"
    options = ["train", "mlp", "--steps", "1000000", "--out", str(run)]
    done = subprocess.Popen(
        [sys.executable, "-c", f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
         f"from extensor.cli import main; main({options!r})"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        for _ in range(600):
            if (run / "log.jsonl").exists() and (run / "log.jsonl").stat().st_size > 500:
                break
            time.sleep(0.1)
        done.send_signal(signal.SIGINT)
        shown = done.communicate(timeout=60)[0]
    finally:
        done.kill()
        done.wait()
    assert done.returncode == 130
    assert list((run / "checkpoints").iterdir())
    assert "the same command with --resume goes on" in shown
    assert "resume=True" not in shown
    assert "done" not in shown


# Completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_for_the_shells(shell: str) -> None:
    script = call("completion", shell)
    assert script.exit_code == 0
    assert "_EXTENSOR_COMPLETE" in script.stdout
    assert call("completion", SHELL=f"/usr/bin/{shell}").stdout == script.stdout
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n"], input=script.stdout, capture_output=True, text=True)
        assert (checked.returncode, checked.stderr) == (0, "")


def test_without_a_shell_that_is_known() -> None:
    result = call("completion", SHELL="/bin/tcsh")
    assert result.exit_code == 2
    assert "say which shell: bash, zsh, fish" in result.stderr


def offered(*words: str) -> list[str]:
    """What is offered after ``extensor`` and these words, the last of them unfinished."""
    env = {
        "_EXTENSOR_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["extensor", *words]),
        "COMP_CWORD": str(len(words)),
    }
    result = CliRunner(env=env).invoke(main, prog_name="extensor")
    return [line.partition(",")[2] for line in result.output.splitlines()]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pre"], ["predict"]),
        (["train", "l"], ["lenet", "lstm"]),
        (["train", "lenet", "--e"], ["--epochs"]),
        (["verify", "--only", "log_s"], ["log_sigmoid", "log_softmax"]),
        (["verify", "--only", "loss_m"], ["loss_margin", "loss_metric"]),
        (["verify", "--dtype", "b"], ["bfloat16"]),
        (["bench", "--group", "m"], ["moving", "matmul"]),
        (["completion", "f"], ["fish"]),
        (["--v"], ["--version"]),
    ],
)
def test_the_tab_key_offers(words: list[str], expected: list[str]) -> None:
    assert offered(*words) == expected


def test_commands_are_offered_without_importing_them() -> None:
    env = os.environ | {"_EXTENSOR_COMPLETE": "bash_complete", "COMP_WORDS": "extensor ", "COMP_CWORD": "1"}
    code = (
        "import sys, atexit; atexit.register(lambda: print('rich' in sys.modules, 'extensor.nn' in sys.modules))\n"
        "from extensor.cli import main; main(prog_name='extensor')"
    )
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    *names, modules = done.stdout.splitlines()
    assert [name.partition(",")[2] for name in names] == list(COMMANDS)
    assert modules == "False False"
