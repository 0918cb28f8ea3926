"""nginx as a reverse proxy in front of each of two servers changes nothing."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.installed import installed
from tests.support.running import PATIENCE_S, attach, listed, message, peeked, process, recoverable, until

NGINX = installed("nginx")
ADDRESS = "127.0.0.32"
PROXY = "127.0.0.33"
ORDERS, LEDGER, ADMIN = r"private$\orders", r"private$\ledger", r"private$\admin"
CONFIGURATION = """
daemon off; worker_processes 1; error_log stderr notice; pid {folder}/pid;
events {{ worker_connections 64; }}
http {{
    access_log {folder}/access;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    {servers}
}}
"""
SERVER = """
    server {{
        listen {proxy}:{port}; client_max_body_size 8m; client_body_buffer_size 8m;
        location / {{
                      proxy_pass http://{behind}; proxy_http_version 1.1; proxy_set_header Host $http_host;
                      proxy_set_header Connection ""; }}
    }}
"""


def free_port(address: str) -> int:
    with socket.socket() as sock:
        sock.bind((address, 0))
        port: int = sock.getsockname()[1]
        return port


@contextmanager
def nginx(folder: Path, behind: dict[int, str]) -> Iterator[Path]:
    """Run nginx as a proxy: the port of each of its servers, and what is behind it. Yields its access log."""
    folder.mkdir()
    servers = "".join(
        SERVER.format(proxy=PROXY, port=port, behind=address) for port, address in behind.items()
    )
    configuration = folder / "nginx.conf"
    configuration.write_text(CONFIGURATION.format(folder=folder, servers=servers))
    running = subprocess.Popen([NGINX, "-p", str(folder), "-c", str(configuration)], stderr=subprocess.PIPE)
    try:
        for port in behind:
            until(lambda port=port: _listens(port), f"nginx at {port}")  # type: ignore[misc]
        yield folder / "access"
    finally:
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=PATIENCE_S)


def _listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex((PROXY, port)) == 0


def redirections(file: Path, name: str, port: int, *queues: str) -> Path:
    """Write the redirections of a server that is reached at the port of a proxy."""
    inbound = [
        {"From": f"http://{name}:{port}/msmq/private$/{queue}", "To": f"http://{name}/msmq/private$/{queue}"}
        for queue in queues
    ]
    receipts = f"http://{name}:{port}/MSMQ/PRIVATE$/order_queue$"
    content = {"InboundRedirectionCollection": inbound, "DefaultStreamReceiptURLReplacement": receipts}
    file.write_text(json.dumps(content))
    return file


@pytest.mark.requirement("SRMP-3.1.1.4.2-01", "SRMP-3.1.1.3.2-01")
def test_messages_streams_and_receipts_pass_a_proxy_unchanged(tmp_path):
    alpha_port, beta_port = free_port(PROXY), free_port(PROXY)
    hosts = [option for name in ("alpha", "beta") for option in ("--host", f"{name}={PROXY}")]
    # The URLs have the ports of the proxy, the servers listen at their own.
    to_alpha = redirections(tmp_path / "alpha.json", "alpha", alpha_port, "admin", "order_queue$")
    to_beta = redirections(tmp_path / "beta.json", "beta", beta_port, "orders", "ledger")
    sender = process(
        tmp_path / "alpha", *hosts, "--http", f"{ADDRESS}:{free_port(ADDRESS)}", "--redirections",
        str(to_alpha), "--queue", ADMIN, address=ADDRESS, name="alpha",
    )  # fmt: skip
    receiver = process(
        tmp_path / "beta", *hosts, "--http", f"{ADDRESS}:{free_port(ADDRESS)}", "--redirections",
        str(to_beta), "--queue", ORDERS, "--queue", f"{LEDGER};transactional", address=ADDRESS, name="beta",
    )  # fmt: skip
    with sender as alpha, receiver as beta:
        behind = {alpha_port: f"{ADDRESS}:{alpha.http_port}", beta_port: f"{ADDRESS}:{beta.http_port}"}
        with nginx(tmp_path / "nginx", behind) as access:
            url = f"DIRECT=http://beta:{beta_port}/msmq/private$"
            sent = [bytes([number]) * size for number, size in enumerate((1, 1000, 300_000))]
            admin = f"DIRECT=http://alpha:{alpha_port}/msmq/private$/admin"
            with attach(alpha.data) as local:
                wanted = {"acknowledge": ["full_reach_queue"], "admin_queue": admin}
                answer = local.call("send", to=f"{url}/orders", messages=recoverable(*sent, **wanted))
                assert len(answer["sent"]) == 3
                stream = [message(body, delivery="transactional") for body in sent]
                local.call("send", to=f"{url}/ledger", messages=stream)
            until(lambda: len(peeked(beta.data, LEDGER)) == 3, "the stream")
            assert peeked(beta.data, ORDERS) == peeked(beta.data, LEDGER) == sent
            until(lambda: len(peeked(alpha.data, ADMIN)) == 3, "the delivery receipts")
            queue = f"DIRECT=HTTP://beta:{beta_port}/MSMQ\\PRIVATE$\\ledger"
            until(lambda: not listed(alpha.data)[queue]["messages"], "the stream receipt")
        lines = access.read_text().splitlines()
    posts = [line for line in lines if '"POST /msmq/' in line.lower().replace('"post', '"POST')]
    assert len(posts) == len(lines) >= 10
    assert all(" 200 0 " in line for line in posts)
