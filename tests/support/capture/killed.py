"""A process that is killed at one of its steps on a lake, in the process of the test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from deltalake import DeltaTable, transaction

from msmqwire.tables.lake.sorted_files import DataFile

STEPS = ("open", "fsync", "mkdir", "unlink", "rmdir", "rename", "replace")
COMMITS = (
    (DeltaTable, "create_write_transaction"),
    (DeltaTable, "create_checkpoint"),
    (transaction, "create_table_with_add_actions"),
)


class Killed(BaseException):
    """The process is gone: nothing that it would do afterwards reaches the disk."""


@contextmanager
def killed_at(step: int) -> Iterator[Callable[[], int]]:
    """Run the block; from this step on nothing reaches the disk. Gives the number of steps so far."""
    steps = 0

    def counting(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            nonlocal steps
            if function is real_open and not arguments[1] & (os.O_WRONLY | os.O_RDWR):
                return function(*arguments, **more)  # a folder to be synced, or listed
            steps += 1
            if steps >= step:
                raise Killed
            return function(*arguments, **more)

        return call

    real_open = os.open
    with pytest.MonkeyPatch.context() as patch:
        for name in STEPS:
            patch.setattr(os, name, counting(getattr(os, name)))
        patch.setattr(DataFile, "write", counting(DataFile.write))
        for owner, name in COMMITS:
            patch.setattr(owner, name, counting(getattr(owner, name)))
        with suppress(Killed):
            yield lambda: steps
