"""The client of a control channel whose other end is something else."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock

import pytest

from msmqwire.errors import Unreachable
from msmqwire.qm.runtime.served_requests import ServedRequests


@pytest.mark.parametrize(
    "line, why",
    [
        (b"HTTP/1.1 400 Bad Request\n", "not JSON from line 1, column 1 on"),
        (b'{"id": 1, "answer": "\xff"}\n', "not JSON: byte 21 is not UTF-8"),
        (b"{}\n", "it answers an unknown request, or in another form"),
        (b"[7]\n", "it answers an unknown request, or in another form"),
    ],
    ids=["http", "not utf-8", "empty", "list"],
)
def test_wrong_answers_are_explained_in_words(line: bytes, why: str) -> None:
    async def ask() -> None:
        requests = ServedRequests("token")
        requests.connection_made(Mock(asyncio.Transport, is_closing=Mock(return_value=False)))
        asked = asyncio.ensure_future(requests.call("status"))
        await asyncio.sleep(0)
        requests.data_received(line)
        await asked

    with pytest.raises(Unreachable) as caught:
        asyncio.run(ask())
    assert str(caught.value).startswith(f"the answer is not that of our server: {why}")
