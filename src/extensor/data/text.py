"""Plain text as characters, for models that write the next one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..checks import as_int, as_number
from ..errors import describe
from ._files import DamagedFileError, as_file, read_text
from .dataset import Dataset

__all__ = ["Text", "Windows"]


class Text:
    """A text as numbers: each character is its place in the vocabulary.

    Args:
        text: the text.
        vocabulary: the characters in order; by default those of the text, sorted.

    Attributes:
        ids: the characters of the text as numbers, int32.
        vocabulary: the characters, as one string.

    Example:
        >>> import extensor as et
        >>> text = et.data.Text("hello")
        >>> text.vocabulary, text.ids.tolist(), text.decode([0, 1])
        ('ehlo', [1, 0, 2, 2, 3], 'eh')
    """

    def __init__(self, text: str, vocabulary: Sequence[str] | str | None = None) -> None:
        if not isinstance(text, str):
            raise TypeError(f"[Text] text must be a str, got {describe(text)}")
        if not text:
            raise ValueError("[Text] text is empty")
        self.vocabulary = "".join(sorted(set(text)) if vocabulary is None else vocabulary)
        if len(set(self.vocabulary)) != len(self.vocabulary):
            raise ValueError(f"[Text] a character is twice in vocabulary {describe(self.vocabulary)}")
        self.ids = self.encode(text)

    @classmethod
    def read(cls, path: Any, vocabulary: Sequence[str] | str | None = None) -> Text:
        """The text in a file, in UTF-8.

        Example:
            >>> import tempfile, pathlib
            >>> from extensor.data import Text
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     _ = pathlib.Path(folder, "input.txt").write_text("to be or not to be")
            ...     Text.read(pathlib.Path(folder, "input.txt"))
            Text(18 characters, 7 different)
        """
        file = as_file("Text.read", path)
        text = read_text("Text.read", file)
        if not text:
            raise DamagedFileError(f"[Text.read] {file} is empty")
        return cls(text, vocabulary)

    def encode(self, text: str) -> np.ndarray:
        """The characters of ``text`` as numbers, int32."""
        codes, known = _codes(text), _codes(self.vocabulary)
        order = np.argsort(known)
        places = np.searchsorted(known, codes, sorter=order).clip(max=len(known) - 1)
        ids = order[places]
        strangers = known[ids] != codes
        if strangers.any():
            raise ValueError(f"[Text.encode] {text[int(np.argmax(strangers))]!r} is not in the vocabulary")
        return ids.astype(np.int32)

    def decode(self, ids: Iterable[Any]) -> str:
        """The text that numbers stand for."""
        numbers = [as_int("Text.decode", "ids", i) for i in np.asarray(ids).reshape(-1)]
        for number in numbers:
            if not 0 <= number < len(self.vocabulary):
                raise ValueError(
                    f"[Text.decode] ids: there is no character {number}, the vocabulary has {len(self.vocabulary)}"
                )
        return "".join(self.vocabulary[number] for number in numbers)

    def split(self, fraction: float) -> tuple[Text, Text]:
        """The beginning and the rest, with one vocabulary. A random split would share text between the two.

        Example:
            >>> from extensor.data import Text
            >>> train, validation = Text("a rose is a rose").split(0.75)
            >>> len(train), len(validation)
            (12, 4)
        """
        part = as_number("Text.split", "fraction", fraction)
        cut = int(part * len(self)) if 0 < part < 1 else 0
        if not 0 < cut < len(self):
            raise ValueError(
                f"[Text.split] fraction must leave text on both sides, got {fraction} of {len(self)} characters"
            )
        return self._part(self.ids[:cut]), self._part(self.ids[cut:])

    def _part(self, ids: np.ndarray) -> Text:
        part = object.__new__(Text)
        part.vocabulary, part.ids = self.vocabulary, ids
        return part

    def windows(self, length: int) -> Windows:
        """Every stretch of ``length`` characters, with the characters one further on as its targets."""
        return Windows(self.ids, length)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Text({len(self)} characters, {len(self.vocabulary)} different)"


def _codes(text: str) -> np.ndarray:
    """The characters of a text as the numbers Unicode gives them."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


class Windows(Dataset):
    """Stretches of a sequence: sample i is ``ids[i : i + length]``, its targets are ``ids[i + 1 : i + length + 1]``.

    They are cut when they are asked for; only the sequence itself is in memory.

    Example:
        >>> import numpy as np
        >>> from extensor.data import Windows
        >>> x, y = Windows(np.arange(10), 3)[2]
        >>> x.tolist(), y.tolist()
        ([2, 3, 4], [3, 4, 5])
    """

    def __init__(self, ids: Any, length: int) -> None:
        super().__init__(ids)
        if self.inputs.ndim != 1 or self.inputs.dtype.kind not in "iu":
            raise ValueError(
                f"[Windows] ids must be whole numbers along one axis, got {self.inputs.shape} {self.inputs.dtype}"
            )
        self.length = as_int("Windows", "length", length)
        if not 1 <= self.length < len(self.inputs):
            raise ValueError(
                f"[Windows] length must be at least 1 and less than the {len(self.inputs)} ids, got {length}"
            )

    def __len__(self) -> int:
        return len(self.inputs) - self.length

    def gather(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """The windows that begin at ``indices``, and their targets."""
        places = np.asarray(indices)[:, None] + np.arange(self.length + 1)
        found = self.inputs[places]
        return found[:, :-1], np.ascontiguousarray(found[:, 1:])

    def split(self, fraction: float, rng: Any) -> tuple[Dataset, Dataset]:
        """Refused: windows overlap, so a random split would share text between the two parts."""
        raise ValueError("[Windows.split] windows overlap; split the text first: text.split(0.9)")

    def __repr__(self) -> str:
        return f"Windows({len(self)} windows of {self.length})"
