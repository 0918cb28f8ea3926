"""The addresses of the loopback as those of many computers, for servers in the process of the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from msmqwire.names import origins


@contextmanager
def many_computers() -> Iterator[None]:
    """Each address of the loopback is an origin of its own; otherwise all of them are one."""
    with mock.patch.object(origins, "_is_loopback", return_value=False):
        origins.origin_of.cache_clear()
        try:
            yield
        finally:
            origins.origin_of.cache_clear()
