"""From the folder of a run to files one can look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..data import Dataset
from ..data._files import as_path
from ..nn import Module
from ..train.lock import writing_report
from ..train.run_files import check_own
from ..train.whole_files import write_whole
from .contents import gather
from .page import page
from .pictures import image_files
from .plots import chart_files
from .run_record import read_run

__all__ = ["write_report"]


def write_report(
    folder: Any,
    *,
    samples: Dataset | None = None,
    model: Module | None = None,
    data: Any = None,
    charts: bool = False,
) -> list[Path]:
    """Write ``report.html`` into the folder of a run, and its images as PNG files into ``pictures/``.

    The page holds everything it needs. It shows what the log and the best weights tell: the curves of loss, metrics and
    learning rate, gradient norms and update ratios of the layers, the confusion matrix with the most confused examples
    (or predicted over wanted quantities, or a piece of text), the filters of the first layer, the layers and the
    configuration. A run that is not finished, or whose log is damaged, is shown as far as it came, and the page says so.

    Args:
        folder: of a run, made by ``extensor train`` or by a :class:`~extensor.train.Trainer` with a folder.
        samples: test samples to predict; without them, those of the recipe.
        model: the model to show, for a run that no recipe made; it is shown as it is.
        data: where the data of the recipe is now, if it has moved.
        charts: draw the charts as PNG files too; that needs matplotlib.

    Returns:
        The files, the page first.

    Raises:
        FileNotFoundError: the folder is not that of a run.
        ValueError: nothing in its log can be read.

    Example:
        >>> import tempfile
        >>> import extensor as et
        >>> from extensor import data, nn, optim, report, train
        >>> model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10, rng=0))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trainer = train.Trainer(model, optim.Adam(model.parameters(), lr=0.01), et.cross_entropy,
        ...                             folder=folder, display="off")
        ...     history = trainer.fit(data.DataLoader(data.digits(), 128, shuffle=True, rng=0), epochs=2)
        ...     files = report.write_report(folder, samples=data.digits(), model=model)
        >>> files[0].name
        'report.html'
    """
    place = as_path("report", folder)
    check_own("report", place / "pictures")
    contents = gather(read_run(place), samples, model, None if data is None else as_path("report", data))
    files = {place / "report.html": page(contents).encode("utf-8")}
    pictures = image_files(contents) | (chart_files(contents) if charts else {})
    files |= {place / "pictures" / name: content for name, content in pictures.items()}
    with writing_report(place):
        for path, content in files.items():
            write_whole("report", path, [content])
    return list(files)
