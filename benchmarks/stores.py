"""Compares reading a capture from a slow store by ranges with downloading it, and with fsspec's own caches.

    python benchmarks/stores.py [FRAMES] [--latency MS] [--rate MB] [--runs N]

The store is a model: every request waits for the latency (20 ms by default), then as long as its bytes take
at the rate of one connection (80 MB/s by default); requests at the same time do not slow each other down. Its
bytes come from a local file, so that only the waits are added. Each way reads all columns of a capture of
mixed sessions (400,000 frames by default; see `captures`); they take turns, and the best run of each counts.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import fsspec
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

import msmqwire
from benchmarks.support.captures import write

PARTS: Final = 8
"""Connections of the parallel download."""


class SlowStore(AbstractFileSystem):  # type: ignore[misc]
    """Local files behind a latency and a rate, both in seconds. It counts requests and bytes."""

    protocol = "slow"
    latency, rate = 0.02, 80e6
    requests = sent = 0

    def wait(self, size: int) -> None:
        """Wait as long as an answer of some bytes takes."""
        SlowStore.requests += 1
        SlowStore.sent += size
        time.sleep(self.latency + size / self.rate)

    def info(self, path: str, **more: Any) -> dict[str, Any]:
        """Describe a file."""
        self.wait(0)
        status = Path(path).stat()
        return {"name": path, "size": status.st_size, "type": "file", "mtime": status.st_mtime_ns}

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **more: Any) -> bytes:
        """Return a range of a file."""
        with open(path, "rb") as file:
            file.seek(start or 0)
            data = file.read(-1 if end is None else end - (start or 0))
        self.wait(len(data))
        return data

    def _open(self, path: str, mode: str = "rb", **more: Any) -> AbstractBufferedFile:
        return _SlowFile(self, path, mode, **more)


class _SlowFile(AbstractBufferedFile):  # type: ignore[misc]
    """A file of the store with a cache of fsspec."""

    def _fetch_range(self, start: int, end: int) -> bytes:
        data: bytes = self.fs.cat_file(self.path, start, end)
        return data


def ways(path: Path) -> dict[str, Callable[[], Any]]:
    """Return the ways to read a capture of the store, and the local file for comparison."""
    store = fsspec.filesystem("slow")
    name, size = str(path), path.stat().st_size

    def downloaded() -> Any:
        return msmqwire.read_capture(io.BytesIO(store.cat_file(name)))

    def downloaded_in_parts() -> Any:
        step = -(-size // PARTS)
        with ThreadPoolExecutor(PARTS) as pool:
            parts = pool.map(lambda at: store.cat_file(name, at, at + step), range(0, size, step))
            return msmqwire.read_capture(io.BytesIO(b"".join(parts)))

    def cached(kind: str, block_size: int) -> Callable[[], Any]:
        def read() -> Any:
            with store.open(name, cache_type=kind, block_size=block_size) as file:
                return msmqwire.read_capture(file)

        return read

    return {
        "ranged, with read-ahead": lambda: msmqwire.read_capture(f"slow://{name}"),
        "the local file": lambda: msmqwire.read_capture(name),
        "downloaded, then read": downloaded,
        f"downloaded by {PARTS} connections, then read": downloaded_in_parts,
        "fsspec, readahead, 5 MiB": cached("readahead", 5 << 20),
        "fsspec, readahead, 32 MiB": cached("readahead", 32 << 20),
        "fsspec, blockcache, 5 MiB": cached("blockcache", 5 << 20),
        "fsspec, background, 5 MiB": cached("background", 5 << 20),
        "fsspec, bytes, 5 MiB": cached("bytes", 5 << 20),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("frames", nargs="?", type=int, default=400_000)
    parser.add_argument("--latency", type=float, default=20, help="milliseconds of a request")
    parser.add_argument("--rate", type=float, default=80, help="MB/s of a connection")
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    SlowStore.latency, SlowStore.rate = args.latency / 1000, args.rate * 1e6
    fsspec.register_implementation("slow", SlowStore, clobber=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mixed.pcap"
        size = write(path, args.frames).bytes
        found = ways(path)
        rows = msmqwire.read_capture(str(path)).num_rows  # compiles too
        seconds: dict[str, float] = {}
        counts: dict[str, tuple[int, int]] = {}
        for _ in range(args.runs):
            for title, read in found.items():
                SlowStore.requests = SlowStore.sent = 0
                start = time.perf_counter()
                assert read().num_rows == rows
                seconds[title] = min(seconds.get(title, float("inf")), time.perf_counter() - start)
                counts[title] = SlowStore.requests, SlowStore.sent
    print(f"{size / 1e6:.0f} MB; {args.latency:.0f} ms a request, {args.rate:.0f} MB/s a connection")
    print(f"{'':<40} {'seconds':>8} {'MB/s':>6} {'requests':>9} {'fetched':>8} {'ours by':>8}")
    ours = next(iter(seconds.values()))
    for title, took in seconds.items():
        requests, sent = counts[title]
        print(
            f"{title:<40} {took:>8.2f} {size / took / 1e6:>6.0f} {requests:>9} {sent / size:>7.0%}"
            f" {took / ours:>8.2f}"
        )


if __name__ == "__main__":
    main()
