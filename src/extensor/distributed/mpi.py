"""Where MPI comes from, and what to do where it is missing."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

__all__ = ["EXTRA", "launched_ranks", "load_mpi"]

EXTRA = "pip install mpi4py mpich (the extra 'mpi' of ExTensor)"

# What launchers tell the processes they start: MPICH and its kin, Open MPI, MVAPICH, Slurm's steps.
_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMIX_SIZE", "SLURM_STEP_NUM_TASKS")


def launched_ranks() -> int:
    """How many ranks the launcher of this process started, as it says; 1 without one."""
    for name in _SIZES:
        text = os.environ.get(name, "")
        if text.isdecimal() and int(text) > 0:
            return int(text)
    return 1


def load_mpi() -> Any:
    """``mpi4py.MPI``, initialised.

    Raises:
        ImportError: mpi4py is not installed, or finds no MPI; the message says what to install.
    """
    if "mpi4py.MPI" in sys.modules:
        return sys.modules["mpi4py.MPI"]
    try:
        mpi4py = importlib.import_module("mpi4py")
    except ImportError:
        raise ImportError(
            f"[World] {launched_ranks()} processes were started, but mpi4py is not installed, through which they talk; "
            f"{EXTRA} brings it together with an MPI, pip install mpi4py alone uses the MPI of the machine"
        ) from None
    mpi4py.rc.finalize = False  # a rank whose peers are lost would wait there for ever; World finalises
    try:
        return importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise ImportError(
            f"[World] mpi4py is installed but finds no MPI ({error}); {EXTRA} brings one, a cluster has a module for it"
        ) from None
