"""Servers that sign messages by HTTP, and one that takes signed messages only."""

from __future__ import annotations

import time
from contextlib import ExitStack

import pytest

from tests.support.running import attach, called, listed, peeked, process, recoverable, until
from tests.support.srmp.srmp_signatures import issue, key

YEAR = 365 * 86_400
SAFE, OPEN = r"private$\safe", r"private$\open"


@pytest.mark.requirement("SRMP-3.1.5.1.6.1-01", "SRMP-3.1.5.1.6.1-02", "SRMP-3.1.5.1.6.1-20")
def test_a_queue_for_signed_messages(tmp_path):
    now = int(time.time())
    trusted, unknown = (
        issue(name, key(kind), start=now - YEAR, end=now + YEAR)
        for name, kind in (("trusted", "DSA"), ("unknown", "RSA"))
    )
    trust = tmp_path / "trust.pem"
    trust.write_bytes(trusted.cert_pem)
    signers: dict[str, list[str]] = {"unsigned": []}
    for name, issued in (("trusted", trusted), ("unknown", unknown)):
        cert, private = tmp_path / f"{name}.pem", tmp_path / f"{name}.key"
        cert.write_bytes(issued.cert_pem)
        private.write_bytes(issued.key_pem)
        signers[name] = ["--http-sign-cert", str(cert), "--http-sign-key", str(private)]
    with ExitStack() as stack:
        receiver = stack.enter_context(
            process(
                tmp_path / "beta", "--http", "127.0.0.31:0", "--http-trust", str(trust), "--queue", OPEN,
                name="beta",
            )
        )  # fmt: skip
        assert called("queue", "create", "--data", receiver.data, SAFE, "--authenticated").status == 0
        to = f"DIRECT=http://127.0.0.31:{receiver.http_port}/msmq/private$"
        for name, options in signers.items():
            sender = stack.enter_context(process(tmp_path / name, *options, name=name))
            with attach(sender.data) as local:
                for queue in ("safe", "open"):
                    wanted = recoverable(name.encode(), dead_letter=True)
                    local.call("send", to=f"{to}/{queue}", messages=wanted)
            until(
                lambda data=sender.data: (
                    not any(
                        queue["messages"] for queue in listed(data).values() if queue["kind"] == "outgoing"
                    )
                ),
                f"the messages of {name} to leave",
            )
            refused = {"unsigned": [b"unsigned"], "trusted": [], "unknown": [b"unknown"] * 2}[name]
            assert peeked(sender.data, r"system$;deadletter") == refused
        assert peeked(receiver.data, SAFE) == [b"trusted"]
        assert peeked(receiver.data, OPEN) == [b"unsigned", b"trusted"]
