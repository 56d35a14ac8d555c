"""Are all ranks still there? A line to rank 0 from each of them, and a sign of life every half second.

A process that ends closes its line, which rank 0 sees at once; one that is stopped, or whose host is lost, falls silent.
Rank 0 tells the others, so that nobody waits for a message that will never come. This is done beside MPI, whose answer to
a lost process differs from one MPI to the next and is often to wait for ever.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from .errors import LostRankError

__all__ = ["EXIT_CODE", "Watch"]

EXIT_CODE = 75  # EX_TEMPFAIL: the same command may succeed when it is run again
_BEAT = 0.5
_LINGER = 2.0  # how long a wait may last after another rank has left in good order, and one that failed for the others


class Watch:
    """Watches the other ranks from a thread of its own.

    Args:
        rank: the own number.
        names: who the ranks are, in words: ``rank 3 (host b, process 4711)``.
        share: gives every rank what rank 0 passes to it (a broadcast).
        timeout: after so many seconds of silence a rank counts as lost.
    """

    def __init__(self, rank: int, names: list[str], share: Callable[[Any], Any], timeout: float) -> None:
        self.rank, self.names, self.timeout = rank, names, timeout
        self.problem: str | None = None
        self.broke = False  # whether the problem is an error of the program, which would come again
        self._noticed = 0.0
        self._left: dict[int, float] = {}
        self._told = self._closing = False
        self._lines: dict[int, socket.socket] = {}
        self._lock = threading.Lock()
        listener = _listen() if rank == 0 else None
        token, addresses, port = share(
            None if listener is None else (secrets.token_hex(16), _addresses(), listener.getsockname()[1])
        )
        if listener is not None:
            self._accept(listener, token, len(names) - 1)
        else:
            self._lines[0] = _connect(addresses, port, token, rank, timeout)
        self._heard = dict.fromkeys(self._lines, time.monotonic())
        self._thread = threading.Thread(target=self._run, name="extensor-watch", daemon=True)
        self._thread.start()

    def _accept(self, listener: socket.socket, token: str, count: int) -> None:
        """The lines of all others; whoever does not know the token is no rank of this job."""
        deadline = time.monotonic() + max(self.timeout, 30)
        with listener:
            while len(self._lines) < count:
                listener.settimeout(max(deadline - time.monotonic(), 0.01))
                try:
                    line, _ = listener.accept()
                    line.settimeout(5)
                    greeting = _exactly(line, 36)
                except OSError:
                    if time.monotonic() > deadline:
                        missing = [n for r, n in enumerate(self.names) if r and r not in self._lines]
                        raise LostRankError(f"[World] no word from {', '.join(missing)}") from None
                    continue
                if not secrets.compare_digest(greeting[:32], token.encode()):
                    line.close()
                    continue
                self._lines[struct.unpack("!I", greeting[32:])[0]] = line

    # In the thread

    def _run(self) -> None:
        selector = selectors.DefaultSelector()
        for rank, line in self._lines.items():
            line.setblocking(False)
            selector.register(line, selectors.EVENT_READ, rank)
        rests = dict.fromkeys(self._lines, b"")
        next_beat = 0.0
        awake = time.monotonic()
        while not self._closing:
            if time.monotonic() >= next_beat:
                for rank in list(self._lines):
                    self._send(rank, ".")
                next_beat = time.monotonic() + _BEAT
            for key, _ in selector.select(_BEAT / 2):
                self._read(key.data, rests, selector)
            now = time.monotonic()
            if (
                now - awake > 2 * _BEAT
            ):  # we slept ourselves, and with us perhaps the whole job, put aside for a while
                self._heard = {rank: min(heard + now - awake, now) for rank, heard in self._heard.items()}
            awake = now
            for rank, heard in list(self._heard.items()):
                if rank in self._lines and now - heard > self.timeout:
                    selector.unregister(self._lines.pop(rank))
                    self._lost(
                        rank, f"has been silent for {now - heard:.0f} seconds: stopped, or its host is lost"
                    )
            self._end_if_ignored(now)
        selector.close()

    def _read(self, rank: int, rests: dict[int, bytes], selector: selectors.BaseSelector) -> None:
        line = self._lines[rank]
        try:
            data = line.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            selector.unregister(line)
            self._lines.pop(rank)
            line.close()
            if rank not in self._left:
                self._lost(rank, "ended without a word: killed, or out of memory")
            return
        self._heard[rank] = time.monotonic()
        *words, rests[rank] = (rests[rank] + data).split(b"\n")
        for word in words:
            self._take(rank, word.decode("utf-8", "replace"))

    def _take(self, rank: int, word: str) -> None:
        kind, _, text = word.partition(" ")
        if kind == "left":
            about = int(text) if text else rank
            self._left[about] = time.monotonic()
            if self.rank == 0:
                self._tell(f"left {about}", but=about)
        elif kind == "failed":
            self._lost(rank, f"failed: {text}", broke=True)
        elif kind in ("lost", "broke"):
            self._set(text, kind == "broke")

    def _lost(self, rank: int, why: str, broke: bool = False) -> None:
        text = f"{self.names[rank]} {why}"
        if self.rank == 0:
            self._tell(f"{'broke' if broke else 'lost'} {text}", but=rank)
        self._set(text, broke)

    def _set(self, text: str, broke: bool = False) -> None:
        if self.problem is None:
            self._noticed = time.monotonic()
            self.problem, self.broke = text, broke

    def _end_if_ignored(self, now: float) -> None:
        """End the process if the main thread cannot be told: it may wait inside a library for ever."""
        if self.problem is not None and not self._told and now - self._noticed > self.timeout:
            sys.stderr.write(f"extensor: {self._message()}\n")
            sys.stderr.flush()
            os._exit(self.exit_code)

    def _tell(self, word: str, but: int) -> None:
        for rank in list(self._lines):
            if rank != but:
                self._send(rank, word)

    def _send(self, rank: int, word: str) -> None:
        line = self._lines.get(rank)
        with self._lock, contextlib.suppress(OSError):  # a line that is broken shows when it is read
            if line is not None:
                line.sendall(" ".join(word.split()).encode()[:2000] + b"\n")

    # For the main thread

    @property
    def has_leavers(self) -> bool:
        """Whether a rank has left in good order."""
        return bool(self._left)

    def check(self) -> None:
        """Raise if a rank is lost.

        Raises:
            LostRankError: with who it was and what is known about it.
        """
        if self.problem is None and self._left:
            rank, since = min(self._left.items(), key=lambda item: item[1])
            if time.monotonic() - since > _LINGER:
                self._set(f"{self.names[rank]} has left the job while others still wait for it")
        if self.problem is not None:
            self._told = True
            raise LostRankError(self._message())

    @property
    def exit_code(self) -> int:
        """Of a process that ends because of the problem."""
        return 1 if self.broke else EXIT_CODE

    def _message(self) -> str:
        advice = "" if self.broke else ". A run with checkpoints goes on with --resume"
        return f"[World] {self.problem}; {self.names[self.rank]} ends too{advice}"

    def leave(self, failure: str | None = None) -> None:
        """Say goodbye, or why the others must not wait for this rank."""
        word = "left" if failure is None else f"failed {failure}"
        if self.rank == 0:
            word = "left 0" if failure is None else f"broke {self.names[0]} failed: {failure}"
        for rank in list(self._lines):
            self._send(rank, word)
        self._told = True

    def let_others_end(self) -> None:
        """After a failure was told, stay until the others have gone or failed as well: launchers kill every rank as soon as one
        ends, before it could say why."""
        end = time.monotonic() + _LINGER
        while self._lines and self.problem is None and time.monotonic() < end:
            time.sleep(0.01)

    def expect_nothing_more(self) -> None:
        """The main thread is about to wait inside MPI; the thread ends the process if a rank is lost now."""
        self._told = False

    def close(self) -> None:
        """Stop watching."""
        self._closing = True
        self._thread.join(2 * _BEAT)
        for line in self._lines.values():
            line.close()


def _listen() -> socket.socket:
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    return socket.create_server(
        ("", 0), family=family, backlog=1024, dualstack_ipv6=family == socket.AF_INET6
    )


def _addresses() -> list[str]:
    """Where this host may be reached, the likeliest first; the own host answers on the loopback."""
    found = ["127.0.0.1"]
    for name in (socket.gethostname(), socket.getfqdn()):
        with contextlib.suppress(OSError):
            found += [str(info[4][0]) for info in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]
    with contextlib.suppress(ImportError, OSError):
        import fcntl

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            for _, name in socket.if_nameindex():
                with contextlib.suppress(OSError):
                    asked = fcntl.ioctl(
                        any_socket, 0x8915, struct.pack("256s", name.encode()[:15])
                    )  # SIOCGIFADDR
                    found.append(socket.inet_ntoa(asked[20:24]))
    return list(dict.fromkeys(found))


def _connect(addresses: list[str], port: int, token: str, rank: int, timeout: float) -> socket.socket:
    """The line to rank 0."""
    errors = []
    for address in addresses:
        try:
            line = socket.create_connection((address, port), timeout=min(timeout, 5))
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line.sendall(token.encode() + struct.pack("!I", rank))
            return line
        except OSError as error:
            errors.append(f"{address}: {error}")
    raise LostRankError(
        f"[World] rank {rank} cannot reach rank 0 on port {port} ({'; '.join(errors)}); "
        "the ranks of a job need TCP connections between their hosts"
    )


def _exactly(line: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        part = line.recv(count - len(found))
        if not part:
            raise OSError("closed")
        found += part
    return found
