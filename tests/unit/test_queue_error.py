"""Refusals of queue managers name their codes."""

from __future__ import annotations

import pytest

from msmqwire.constants import HResult
from msmqwire.errors import QueueError, ReadTimeout


@pytest.mark.parametrize(
    "code, name",
    [
        (0xC00E0003, "MQ_ERROR_QUEUE_NOT_FOUND"),
        (HResult.MQ_ERROR_SHARING_VIOLATION, "MQ_ERROR_SHARING_VIOLATION"),
        (0xC0000008, "STATUS_INVALID_HANDLE"),
        (0xC0000001, "0xC0000001"),
    ],
)
def test_a_refusal_names_its_code(code: int, name: str) -> None:
    error = QueueError("why", code)
    assert (str(error), error.why, error.hresult, error.name) == ("why", "why", code, name)


def test_a_read_timeout_is_a_timeout_error_of_python_too() -> None:
    error = ReadTimeout("why")
    assert isinstance(error, TimeoutError)
    assert isinstance(error, QueueError)
    assert (str(error), error.why, error.hresult, error.name) == (
        "why",
        "why",
        0xC00E001B,
        "MQ_ERROR_IO_TIMEOUT",
    )
