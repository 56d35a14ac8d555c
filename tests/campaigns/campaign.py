"""What campaigns share: how long they go on, what they say, and the corpus of what once failed."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parent / "corpus"
SUPPORT = tuple(Path(__file__).parents[1] / name for name in ("support", "fuzz", "compile"))
for folder in SUPPORT:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


class Campaign:
    """One search: ``while campaign.goes_on(): ...; campaign.did("calls")``.

    A case is what it takes to try again, as JSON: a seed, a name. Cases of the corpus come first in each search; a case that
    fails is added to it, so that what was mended stays so.
    """

    def __init__(
        self, name: str, minutes: float, seed: int = 0, most: int | None = None, corpus: Path = CORPUS
    ) -> None:
        self.name, self.seed, self.most = name, seed, most
        self.end = time.monotonic() + 60 * minutes
        self.began = self.said = time.monotonic()
        self.counts: dict[str, int] = {}
        self.findings: list[str] = []
        self.file = corpus / f"{name}.jsonl"

    def goes_on(self) -> bool:
        """Whether there is time left, and something left to do."""
        done = max(self.counts.values(), default=0)
        return self.has_time() and (self.most is None or done < self.most)

    def has_time(self) -> bool:
        now = time.monotonic()
        if now - self.said > 30:
            self.said = now
            self.say(f"{self.so_far()} after {now - self.began:.0f} s")
        return now < self.end

    def did(self, what: str, count: int = 1) -> None:
        """Count what was tried."""
        self.counts[what] = self.counts.get(what, 0) + count

    def found(self, problem: str, case: Any) -> None:
        """Something that must not be: say so, and keep the case."""
        self.findings.append(problem)
        self.say(f"FOUND {problem}\n    case {json.dumps(case)}")
        if case not in self.corpus():
            self.file.parent.mkdir(exist_ok=True)
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(case) + "\n")

    def corpus(self) -> list[Any]:
        """The cases that once failed."""
        if not self.file.exists():
            return []
        return [json.loads(line) for line in self.file.read_text(encoding="utf-8").splitlines() if line]

    def so_far(self) -> str:
        return ", ".join(f"{count:,} {what}" for what, count in self.counts.items()) or "nothing yet"

    def say(self, text: str) -> None:
        print(f"[{self.name}] {text}", flush=True)

    def close(self) -> int:
        """The last line; 1 if something was found."""
        seconds = time.monotonic() - self.began
        self.say(f"{self.so_far()} in {seconds:.0f} s, seed {self.seed}: {len(self.findings)} findings")
        return int(bool(self.findings))
