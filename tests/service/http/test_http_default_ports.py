"""The ports of the web, where none is named."""

from __future__ import annotations

import socket

import pytest

from tests.support.certificates import Certificates
from tests.support.running import attach, peeked, process, recoverable, until

ADDRESS = "127.0.0.38"


def may_listen() -> bool:
    try:
        for port in (80, 443):
            with socket.socket() as sock:
                sock.bind((ADDRESS, port))
    except OSError:
        return False
    return True


@pytest.mark.requirement("SRMP-2.1.1-03")
@pytest.mark.skipif(not may_listen(), reason="port 80 or 443 is not free, or not for this user")
def test_a_url_without_port_leads_to_port_80_or_443(tmp_path):
    certificates = Certificates(tmp_path)
    certificate, key = map(str, certificates.issue("alpha"))
    options = ("--queue", r"private$\q", "--host", f"alpha={ADDRESS}")
    http = ("--http", ADDRESS, "--https", ADDRESS, "--tls-cert", certificate, "--tls-key", key)
    trusting = ("--host", f"alpha={ADDRESS}", "--tls-ca", str(certificates.authority))
    receiver = process(tmp_path / "alpha", *options, *http, address=ADDRESS)
    sender = process(tmp_path / "beta", *trusting, address="127.0.0.39", name="beta")
    with receiver as alpha, sender as beta:
        assert (alpha.http_port, alpha.https_port) == (80, 443)
        for count, scheme in enumerate(("HTTP", "HTTPS"), 1):
            with attach(beta.data) as local:
                local.call("send", to=f"DIRECT={scheme}://alpha/msmq/private$/q", messages=recoverable(b"m"))
            until(lambda count=count: len(peeked(alpha.data, r"private$\q")) == count, "the message")
