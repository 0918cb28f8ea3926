"""The ports of the web, where none is named."""

from __future__ import annotations

import socket

import pytest

from tests.support.running import attach, peeked, process, recoverable, until

ADDRESS = "127.0.0.38"


def may_listen() -> bool:
    try:
        with socket.socket() as sock:
            sock.bind((ADDRESS, 80))
    except OSError:
        return False
    return True


@pytest.mark.requirement("SRMP-2.1.1-03")
@pytest.mark.skipif(not may_listen(), reason="port 80 is not free, or not for this user")
def test_a_url_without_port_leads_to_port_80(tmp_path):
    options = ("--http", ADDRESS, "--queue", r"private$\q", "--host", f"alpha={ADDRESS}")
    receiver = process(tmp_path / "alpha", *options, address=ADDRESS)
    sender = process(tmp_path / "beta", "--host", f"alpha={ADDRESS}", address="127.0.0.39", name="beta")
    with receiver as alpha, sender as beta:
        assert alpha.http_port == 80
        with attach(beta.data) as local:
            local.call("send", to="DIRECT=HTTP://alpha/msmq/private$/q", messages=recoverable(b"m"))
        assert until(lambda: peeked(alpha.data, r"private$\q"), "the message") == [b"m"]
