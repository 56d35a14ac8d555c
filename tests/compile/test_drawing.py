"""The picture of a compiled function."""

from __future__ import annotations

import xml.etree.ElementTree
from pathlib import Path

import pytest

import extensor as et
from extensor import models, optim


def texts(svg: str) -> list[str]:
    root = xml.etree.ElementTree.fromstring(svg)
    return [t.text or "" for t in root.iter("{http://www.w3.org/2000/svg}text")]


def test_a_training_step_is_drawn_whole(tmp_path: Path) -> None:
    model = models.LeNet5(rng=0)
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    @et.compile
    def step(images: et.ExTensor, labels: et.ExTensor) -> et.ExTensor:
        optimizer.zero_grad()
        loss = et.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    step(et.ones((2, 1, 28, 28)), et.zeros(2, dtype="int64"))
    drawn = texts(et.draw_graph(step, tmp_path / "step.svg").svg)
    assert (tmp_path / "step.svg").exists()
    titles = drawn[::2]
    assert {"images", "labels", "conv1.weight", "fc3.bias", "SGD.step", "return"} <= set(titles)
    assert titles.count("conv2d") == 2
    assert titles.count("conv2d_backward") == 2
    assert titles.index("cross_entropy") < titles.index("cross_entropy_backward") < titles.index("SGD.step")
    assert "(2, 6, 28, 28)" in drawn
    boxes = step.programs[0].boxes()
    assert all(0 <= i < position for position, box in enumerate(boxes) for i in box.inputs)
    convolution = next(box for box in boxes if box.title == "conv2d")
    assert [boxes[i].title for i in convolution.inputs] == ["images", "conv1.weight", "conv1.bias"]
    assert [boxes[i].title for i in boxes[-1].inputs] == ["cross_entropy"]


def test_each_program_has_its_picture() -> None:
    double = et.compile(lambda x: {"twice": x * 2.0})
    with pytest.raises(et.CompileError, match=r"draw_graph: nothing is recorded yet"):
        et.draw_graph(double)
    double(et.ones(2)), double(et.ones(3))
    newest, oldest = (texts(et.draw_graph(program).svg) for program in double.programs)
    assert texts(et.draw_graph(double).svg) == newest
    assert "(3,)" in newest
    assert "(2,)" in oldest


def test_what_cannot_be_drawn_is_named() -> None:
    with pytest.raises(
        TypeError, match=r"\[draw_graph\] output must be a recorded tensor or a compiled function, got int 3"
    ):
        et.draw_graph(3)  # type: ignore[arg-type]
