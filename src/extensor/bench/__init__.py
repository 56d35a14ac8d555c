"""Side by side with the peers: the same computation, interleaved in one process, beside the machine's own limits."""

from .case import Case
from .cases import GROUPS, cases, peers
from .limits import Limits, machine, measure_limits
from .report import Result, Run, chart, compare_runs, markdown, read_json, write_json
from .timing import Timing, best_times, compare, table

__all__ = [
    "GROUPS", "Case", "Limits", "Result", "Run", "Timing", "best_times", "cases", "chart", "compare", "compare_runs",
    "machine", "markdown", "measure_limits", "peers", "read_json", "table", "write_json",
]  # fmt: skip
