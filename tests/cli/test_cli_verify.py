"""``extensor verify`` as people and machines call it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from click.testing import CliRunner, Result

import extensor
from extensor.cli import main

GOOD = """
    import numpy as np
    import extensor as et
    from extensor.testing import Case

    @et.differentiable
    def cube(x):
        return et.asarray(x.numpy() ** 3)

    def cube_backward(grad_output, x):
        return 3 * grad_output * x * x

    @et.differentiable
    def scaled(x, factor):
        return et.asarray(x.numpy() * factor)

    def scaled_backward(grad_output, factor):
        return grad_output * factor

    SAMPLES = {"scaled": [Case(np.array([1.0, -2.0]), 3.0), Case(et.tensor([[0.5]]), factor=-1.5)]}
"""

BAD = GOOD.replace("3 * grad_output", "2 * grad_output")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["verify", *arguments])


def write(folder: Path, text: str, name: str = "mine.py") -> str:
    path = folder / name
    path.write_text(dedent(text))
    return str(path)


def functions(result: Result) -> dict[str, Any]:
    return {f["name"]: f for f in json.loads(result.stdout)["functions"]}


class TestTheLibrary:
    def test_chosen_functions_pass(self) -> None:
        result = run("--only", "add", "--only", "m*imum")
        assert result.exit_code == 0, result.output
        assert "Every gradient is right" in result.output
        for name in ("add", "maximum", "minimum"):
            assert f"  {name} " in result.output
        assert "divide" not in result.output

    def test_a_family_and_a_backward_can_be_named(self) -> None:
        found = functions(
            run("--only", "arithmetic", "--only", "add_backward", "--dtype", "float64", "--json")
        )
        assert {"add", "power", "modulo"} <= set(found)
        assert {f["family"] for f in found.values()} == {"arithmetic"}

    def test_json_is_all_that_stdout_holds(self) -> None:
        result = run("--only", "divide", "--dtype", "float32", "--dtype", "bfloat16", "--seed", "5", "--json")
        data = json.loads(result.stdout)
        assert data["passed"] is True
        assert data["seed"] == 5
        assert data["dtypes"] == {
            "float32": {"rtol": 1e-4, "atol": 1e-5},
            "bfloat16": {"rtol": 8e-2, "atol": 8e-3},
        }
        (divide,) = data["functions"]
        assert divide["cases"] > 20
        assert divide["failures"] == []
        assert 0 < divide["worst_relative_error"]["float32"] < 1e-4
        assert 1e-4 < divide["worst_relative_error"]["bfloat16"] < 8e-2

    def test_the_seed_decides(self) -> None:
        def worst(seed: str) -> Any:
            return functions(run("--only", "divide", "--json", "--seed", seed))["divide"][
                "worst_relative_error"
            ]

        assert worst("1") == worst("1")
        assert worst("1") != worst("2")

    def test_a_pair_is_drawn_alike_alone_and_in_company(self) -> None:
        alone = functions(run("--only", "power", "--json"))["power"]
        assert alone == functions(run("--only", "arithmetic", "--json"))["power"]

    def test_second_derivatives(self) -> None:
        found = functions(run("--only", "power", "--order", "2", "--json"))
        assert found["power"]["passed"]
        assert set(found["power"]["worst_relative_error"]) == {"float64"}

    def test_second_derivatives_of_a_users_pairs(self, tmp_path: Path) -> None:
        """The upstream gradient is one of the inputs: what comes back to it is looked at too."""
        found = functions(run("--order", "2", "--json", write(tmp_path, GOOD, "again.py")))
        assert {name: f["failures"] for name, f in found.items()} == {"cube": [], "scaled": []}
        wrong = BAD.replace(
            "def cube_backward(grad_output, x):", "def cube_backward(grad_output, x):\n        x = x.detach()"
        )
        found = functions(run("--order", "2", "--json", write(tmp_path, wrong, "wrong.py")))
        assert not found["cube"]["passed"]

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (("--order", "2", "--dtype", "float32"), "second derivatives are checked in float64"),
            (("--order", "3"), "3"),
            (("--only", "nonsense"), "nothing is called 'nonsense'; there are: "),
            (("--only", "softmx"), "nothing is called 'softmx'; did you mean 'softmax'?"),
            (("--only", "conv2_backward"), "nothing is called 'conv2_backward'; did you mean 'conv2d'?"),
            (("--only", "reducton"), "nothing is called 'reducton'; did you mean 'reduction'?"),
            (("--dtype", "int8"), "int8"),
            (("--seed", "-1"), "-1"),
            (("no_such_file.py",), "[verify] there is no file no_such_file.py"),
        ],
    )
    def test_bad_arguments(self, arguments: tuple[str, ...], says: str) -> None:
        result = run(*arguments)
        assert result.exit_code != 0
        assert says in result.stderr
        assert "Traceback" not in result.stderr


class TestAUsersFile:
    def test_passes(self, tmp_path: Path) -> None:
        result = run(write(tmp_path, GOOD), "--json")
        assert result.exit_code == 0, result.output
        found = functions(result)
        assert set(found) == {"cube", "scaled"}
        assert found["cube"]["cases"] > found["scaled"]["cases"] > 0
        assert found["cube"]["family"] == "mine"

    def test_a_wrong_gradient_is_explained(self, tmp_path: Path) -> None:
        result = run(write(tmp_path, BAD))
        assert result.exit_code == 1
        assert "1 wrong: cube" in result.output
        assert "central differences give" in result.output
        assert "import mine" in result.output
        assert "mine.cube_backward(grad_output, x)" in result.output

    def test_the_snippet_runs(self, tmp_path: Path) -> None:
        failure = functions(run(write(tmp_path, BAD), "--json"))["cube"]["failures"][0]
        home = str(Path(extensor.__file__).parents[1])
        done = subprocess.run(
            [sys.executable, "-c", failure["snippet"]],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": home}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        printed = re.match(r"tensor\((\S+),", done.stdout)
        assert printed
        assert float(printed[1]) == pytest.approx(failure["analytic"], rel=1e-3)

    def test_pair_rows_with_edges(self, tmp_path: Path) -> None:
        text = """
            import numpy as np
            import extensor as et
            from extensor.testing import Case, Edge, Pair

            @et.differentiable
            def ramp(x):
                return et.asarray(np.maximum(x.numpy(), 0))

            def ramp_backward(grad_output, x):
                return et.where(x > 0, grad_output, 0.0)

            SAMPLES = [Pair("ramp", lambda draw: [Case(np.array([1.0, -1.0]))],
                            [Edge("the kink", Case(np.array(0.0)), expect=(EXPECT,))])]
        """
        assert run(write(tmp_path, text.replace("EXPECT", "0.0"))).exit_code == 0
        result = run(write(tmp_path, text.replace("EXPECT", "1.0"), "other.py"))
        assert result.exit_code == 1
        assert "at the edge 'the kink' it must be 1" in " ".join(result.output.split())

    @pytest.mark.parametrize(
        ("replace", "by", "says"),
        [
            ("@et.differentiable", "", "defines no differentiable function"),
            ('"scaled":', '"scalde":', "SAMPLES in mine.py names 'scalde'"),
            ("x.numpy() ** 3", "x.numpy() ** 3 @ et.ones((9, 9)).numpy()", "called with tensors of shape"),
            ("SAMPLES = {", "SAMPLES = 3 or {", "must be a dict of function names or a list of Pair rows"),
            (
                "[Case(np.array([1.0, -2.0]), 3.0), Case(et.tensor([[0.5]]), factor=-1.5)]",
                "[1.0]",
                "list of Case(...)",
            ),
            (
                "x.numpy() ** 3",
                "x.numpy() ** 3 * np.nan",
                "it gives inf or nan for the inputs that were tried",
            ),
            ("import numpy as np", "import numqy as np", "cannot be imported: ModuleNotFoundError"),
        ],
    )
    def test_friendly_errors(self, tmp_path: Path, replace: str, by: str, says: str) -> None:
        assert replace in GOOD
        result = run(write(tmp_path, GOOD.replace(replace, by)))
        assert result.exit_code == 1
        assert says in result.stderr
        assert result.stderr.startswith("Error: [verify]")

    def test_arguments_that_are_not_tensors(self, tmp_path: Path) -> None:
        text = GOOD.replace("factor)", "factor: float)", 1).replace("SAMPLES =", "_samples =")
        result = run(write(tmp_path, text))
        assert "its arguments (x, factor) are not all tensors" in result.stderr

    def test_a_domain_is_found_for_a_logarithm(self, tmp_path: Path) -> None:
        text = """
            import numpy as np
            import extensor as et

            @et.differentiable
            def ln(x: et.ExTensor):
                with np.errstate(all="ignore"):
                    return et.asarray(np.log(x.numpy()))

            def ln_backward(grad_output, x):
                return grad_output / x
        """
        assert run(write(tmp_path, text)).exit_code == 0

    def test_a_missing_backward(self, tmp_path: Path) -> None:
        result = run(write(tmp_path, GOOD.replace("def cube_backward", "def cube_gradient")))
        assert result.exit_code == 1
        assert "define cube_backward beside it" in " ".join(result.output.split())


def test_help_names_the_commands_without_importing_them() -> None:
    code = "import sys; from extensor.cli import main; main(['--help'], standalone_mode=False); print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "verify" in done.stdout
    assert done.stdout.endswith("False\n")


def test_the_library_does_not_import_the_command_line() -> None:
    code = "import sys, extensor; print({'click', 'rich', 'extensor.testing', 'extensor.cli'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
