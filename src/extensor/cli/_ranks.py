"""One rank of ``extensor train`` on several processes: who speaks, how many threads, and what the launcher learns."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import click

from .. import config
from ..distributed import LostRankError, World
from ..distributed.mpi import launched_ranks
from . import _output

__all__ = ["JOB", "LOST", "as_rank"]

JOB = "EXTENSOR_JOB"  # the folder in which ranks leave word for the launcher of --processes
LOST = 75  # the exit code of a rank that lost another: the same command with --resume may succeed


@contextlib.contextmanager
def as_rank(threads: int | None) -> Iterator[World | None]:
    """The processes this one was started with, in this block; None where it is alone.

    Only rank 0 speaks. An error of one rank ends all of them, with its message.
    """
    if launched_ranks() == 1:
        yield None
        return
    try:
        world = World()
    except (ImportError, LostRankError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    if threads is None and "EXTENSOR_NUM_THREADS" not in os.environ:
        _divide_threads(world)
    _output.quiet = world.rank != 0
    _leave_word(world, "pid", str(os.getpid()))
    try:
        yield world
        world.close()
    except LostRankError as error:
        if not world.is_broken:
            _leave_word(world, "lost", str(error))
            # rank 1 speaks if rank 0 is the one that is lost; the launcher of --processes speaks itself
            _output.quiet = world.rank not in (0, 1) or JOB in os.environ
        _output.say(str(error), err=True)
        raise SystemExit(1 if world.is_broken else LOST) from None
    except BaseException as error:
        if not isinstance(error, SystemExit):
            world.fail(error)
        if world.rank != 0:
            raise SystemExit(
                getattr(error, "exit_code", 1) if not isinstance(error, SystemExit) else error.code
            ) from None
        raise
    finally:
        _output.quiet = False


def _divide_threads(world: World) -> None:
    """The processors of a host among its ranks, unless the launcher has bound each to its own."""
    usable = len(os.sched_getaffinity(0))
    if usable == os.cpu_count():
        config.set_num_threads(max(usable // world.host_size, 1))


def _leave_word(world: World, kind: str, text: str) -> None:
    folder = os.environ.get(JOB)
    if folder:
        with contextlib.suppress(OSError):  # the launcher waits for the processes anyway
            Path(folder, f"{kind}-{world.rank}").write_text(text)
