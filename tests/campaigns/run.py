"""``python3 dev.py campaign NAME --minutes N``: search for what breaks."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from campaign import Campaign

NAMES = ("fuzz", "files", "kill", "memory", "threads", "soak", "compile", "ranks")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long, at most")
    parser.add_argument(
        "--count", type=int, help="how many calls, files, kills, processes, steps or trainings, at most"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    campaign = Campaign(options.name, options.minutes, options.seed, options.count)
    import_module(options.name).run(campaign)
    return campaign.close()


if __name__ == "__main__":
    sys.exit(main())
