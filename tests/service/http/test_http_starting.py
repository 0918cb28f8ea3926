"""What a server sends by HTTP while it starts."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import pytest

from msmqwire.qm.runtime.http.options import HttpOptions
from msmqwire.qm.runtime.local import attach
from tests.support.running import ADDRESS, PATIENCE_S, message, options, served

PEER = "127.0.0.34"


@pytest.mark.requirement("SRMP-3.1.7.2.4-20")
def test_a_stream_older_than_the_start_names_its_receipt_queue(data: Path) -> None:
    """It gives the port that the server now listens at."""
    with socket.create_server((PEER, 0)) as listener:
        listener.settimeout(PATIENCE_S)
        url = f"DIRECT=http://{PEER}:{listener.getsockname()[1]}/msmq/private$/ledger"
        with served(options(data)):
            pass
        with attach(data) as local:
            local.call("send", to=url, messages=[message(b"first", delivery="transactional")])
        with served(options(data, protocols={"srmp": HttpOptions((ADDRESS, 0))})) as server:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(PATIENCE_S)
                request = b""
                while not (found := re.search(rb"<sendReceiptsTo>(.*?)</sendReceiptsTo>", request)):
                    more = connection.recv(1 << 16)
                    assert more, request
                    request += more
            port = server.do(lambda running: running.joined["srmp"].endpoints["http"])
    assert port is not None
    assert found[1].decode() == f"http://alpha:{port[1]}/MSMQ/PRIVATE$/order_queue$"
