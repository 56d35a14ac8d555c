"""The examples run, and do what they say."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner

from extensor.cli import main

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_mlp_by_hand_learns_the_hill(capsys: pytest.CaptureFixture[str]) -> None:
    assert load("mlp_by_hand").train() < 1e-3
    assert "step     0" in capsys.readouterr().out


def test_conv_net_by_hand_learns_the_stripes(capsys: pytest.CaptureFixture[str]) -> None:
    assert load("conv_net_by_hand").train(60) > 0.95
    assert "step   40" in capsys.readouterr().out


def test_custom_loss_backward(capsys: pytest.CaptureFixture[str]) -> None:
    module = load("custom_loss_backward")
    slope, offset = module.fit()
    assert slope == pytest.approx(2.0, abs=0.1)
    assert offset == pytest.approx(1.0, abs=0.15)
    module.main()
    assert "agrees with central differences" in capsys.readouterr().out


def test_custom_loss_backward_can_be_verified() -> None:
    result = CliRunner().invoke(main, ["verify", str(EXAMPLES / "custom_loss_backward.py")])
    assert result.exit_code == 0, result.output
    assert "log_cosh" in result.output


def test_numerical_validation(capsys: pytest.CaptureFixture[str]) -> None:
    module = load("numerical_validation")
    assert module.one_function() < 1e-8
    assert "element" in module.why_upstream_gradients_are_random()
    assert max(module.a_whole_network().values()) < 1e-7
    module.main()
    assert "zeros instead of it" in capsys.readouterr().out


def test_three_ways_give_the_same_bits(capsys: pytest.CaptureFixture[str]) -> None:
    module = load("three_ways")
    hand, recorded, transformed = module.by_hand(20), module.with_backward(20), module.with_grad(20)
    for name, value in hand.items():
        assert value.tolist() == recorded[name].tolist() == transformed[name].tolist()
    module.main()
    losses = {line.split()[-1] for line in capsys.readouterr().out.splitlines()}
    assert len(losses) == 1


def test_gradient_penalty_holds_the_slope(capsys: pytest.CaptureFixture[str]) -> None:
    module = load("gradient_penalty")
    assert module.train(weight=1.0) < 0.5 * module.train(weight=0.0)
    assert "penalty" in capsys.readouterr().out


def test_every_example_is_run() -> None:
    tested = Path(__file__).read_text()
    for path in EXAMPLES.glob("*.py"):
        assert path.stem in tested, f"{path.name} is not run by any test here"


def test_every_everyday_mistake_has_an_answer() -> None:
    """An error that names the function and says what to do, or the result that was meant; never a silent wrong one."""
    module = load("everyday_mistakes")
    assert len(module.MISTAKES) == 60
    results = {}
    for typed, call in module.MISTAKES.items():
        try:
            results[typed] = repr(call())
        except Exception as error:
            text = str(error)
            assert re.search(
                r"^(in \w+: )?\[\w+(\.\w+)?\] |has no attribute '\w+'; (use|leave) |is not the folder of a run",
                text,
            ), typed
    assert sorted(results.values()) == ["[1.5, 2.5, 3.5]", *["dtype('float32')"] * 4]
