"""Pictures of a run: one HTML page that needs no other file, and PNG files."""

from .comparison import write_comparison
from .writer import write_report

__all__ = ["write_comparison", "write_report"]
