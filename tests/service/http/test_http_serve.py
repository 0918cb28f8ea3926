"""``serve`` with HTTP: its options, what it prints, and messages from end to end."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.qm.runtime.http.redirections_file import SIZE_MAX, load_redirections
from tests.support.certificates import Certificates
from tests.support.paths import ROOT
from tests.support.patience import limit
from tests.support.running import (
    ADDRESS,
    ORDERS,
    Process,
    asyncio_only,
    called,
    command,
    peeked,
    process,
    until,
)

QUEUE = "/msmq/private$/orders"
OTHER = "127.0.0.32"


def queue_of(server: Process, scheme: str = "http") -> str:
    port = server.http_port if scheme == "http" else server.https_port
    return f"DIRECT={scheme.upper()}://alpha:{port}{QUEUE}"


def arrived(server: Process, count: int) -> list[bytes]:
    until(lambda: len(peeked(server.data, ORDERS)) >= count, "messages")
    return sorted(peeked(server.data, ORDERS))


@pytest.mark.requirement("SRMP-2.1.1-01", "SRMP-2.1.1-02", "SRMP-3.1.7.9-03", "SRMP-2.2.4.2-03")
@asyncio_only
def test_messages_go_by_http_and_https_between_servers(tmp_path: Path) -> None:
    certificates = Certificates(tmp_path)
    certificate, key = map(str, certificates.issue("alpha"))
    trusted = ("--tls-ca", str(certificates.authority), "--host", f"alpha={ADDRESS}")
    alpha = (
        "--queue", ORDERS, "--http", f"{ADDRESS}:0", "--https", f"{ADDRESS}:0",
        "--tls-cert", certificate, "--tls-key", key,
    )  # fmt: skip
    with (
        process(tmp_path / "alpha", *alpha) as server,
        process(tmp_path / "beta", *trusted, address=OTHER, name="beta") as sender,
    ):
        assert server.http_port
        assert server.https_port
        for number, scheme in enumerate(("http", "https")):
            name = queue_of(server, scheme)
            assert called("send", name, "--body", f"folder {number}", "--data", sender.data).one["identifier"]
            assert called("send", name, "--body", f"straight {number}", "--recoverable", *trusted).one[
                "identifier"
            ]
        refusal = called("send", queue_of(server, "https"), "--recoverable", "--timeout", "1", *trusted[2:])
        assert "not sent: its certificate is not accepted" in refusal.error(69)["error"]
        expected = [b"folder 0", b"folder 1", b"straight 0", b"straight 1"]
        assert arrived(server, 4) == expected
        server.stop()
        sender.stop()


def test_redirected_messages_reach_the_other_queue(tmp_path: Path) -> None:
    file = tmp_path / "redirections.json"
    far = f"http://{ADDRESS}/msmq/private$/far"
    file.write_text(
        json.dumps({"InboundRedirectionCollection": [{"From": far, "To": f"http://{ADDRESS}{QUEUE}"}]})
    )
    with process(
        tmp_path / "alpha", "--queue", ORDERS, "--http", f"{ADDRESS}:0", "--redirections", str(file)
    ) as server:
        # The message names port 80, and the connection goes to where the server is.
        outbound = {
            "OutboundRedirectionCollection": [
                {"From": "http://*", "To": f"http://{ADDRESS}:{server.http_port}"}
            ]
        }
        file.write_text(json.dumps(outbound))
        with process(tmp_path / "beta", "--redirections", str(file), address=OTHER, name="beta") as sender:
            assert called("send", f"DIRECT={far}", "--body", "redirected", "--data", sender.data).one[
                "identifier"
            ]
            assert arrived(server, 1) == [b"redirected"]


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_is_answered(tmp_path: Path) -> None:
    limits = ("--set", "http_request_bytes=1000", "--set", "http_read_s=5")
    with process(tmp_path / "alpha", "--queue", ORDERS, "--http", f"{ADDRESS}:0", *limits) as server:
        url = f"http://{ADDRESS}:{server.http_port}"
        for path, size, status in (
            ("/msmq/private$/orders", 10, "400"),
            ("/", 10, "404"),
            (QUEUE, 1001, "413"),
        ):
            command = ["curl", "-s", "-o", "-", "-w", "%{http_code}", "--data-binary", "@-", f"{url}{path}"]
            run = subprocess.run(
                command, input=b"x" * size, capture_output=True, check=True, timeout=limit(60)
            )
            assert run.stdout.decode() == status


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with certificates, and files that are none."""
    folder = tmp_path_factory.mktemp("files")
    certificates = Certificates(folder)
    certificates.issue("alpha")
    certificates.issue("beta")
    (folder / "wrong.json").write_text('{"InboundRedirectionCollection": 1}')
    return folder


@pytest.mark.parametrize(
    "options, words",
    [
        (("--https", f"{ADDRESS}:0"), "--https needs --tls-cert and --tls-key"),
        (("--https", f"{ADDRESS}:0", "--tls-cert", "alpha.pem"), "--https needs"),
        (("--tls-cert", "alpha.pem", "--tls-key", "alpha-key.pem"), "are for --https"),
        (("--http", f"{ADDRESS}:70000"), "has no port of 0 to 65535, as 127.0.0.1:80 has"),
        (("--set", "windowsize=1"), "did you mean window_size"),
        (("--set", "window_size=0"), "window_size: '0' is not 1 to 65,535"),
    ],
)
def test_wrong_usage_is_reported(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    run = called("serve", "--data", tmp_path / "qm", *options)
    assert run.status == 2
    assert words in " ".join(run.err.replace("│", "").split())


@pytest.mark.parametrize(
    "options, status, words",
    [
        (("--tls-ca", "missing.pem"), 66, "missing.pem: No such file"),
        (("--redirections", "wrong.json"), 65, "not a list"),
        (("--tls-cert", "alpha.pem", "--tls-key", "beta-key.pem"), 65, "is not the key of the certificate"),
        (("--http", "TAKEN"), 69, "in use"),
    ],
)
def test_impossible_files_and_addresses_are_reported(
    folder: Path, tmp_path: Path, options: tuple[str, ...], status: int, words: str
) -> None:
    if "--tls-cert" in options:
        options = ("--https", f"{ADDRESS}:0", *options)
    with socket.create_server((ADDRESS, 0)) as taken:
        at = f"{ADDRESS}:{taken.getsockname()[1]}"
        given = [
            at if text == "TAKEN" else folder / text if text.endswith((".pem", ".json")) else text
            for text in options
        ]
        listening = ("--listen", f"{ADDRESS}:0", "--ping", "off", "--log", "error")
        run = command("serve", "--data", tmp_path / "qm", *listening, *given)
    assert words in run.error(status)["error"]


def test_a_file_of_redirections_has_limits(tmp_path: Path) -> None:
    file = tmp_path / "redirections.json"
    file.write_bytes(b" " * (SIZE_MAX + 1))
    with pytest.raises(InvalidValue, match="more than 67,108,864 bytes"):
        load_redirections(file)
    file.write_bytes(b"[" * 200_000)
    with pytest.raises(InvalidValue, match="not JSON that can be read: it is nested too deep"):
        load_redirections(file)
    file.write_bytes(b'{"OutboundRedirectionExceptionCollection": [""]}')
    with pytest.raises(InvalidValue, match="begins with neither") as caught:
        load_redirections(file)
    assert caught.value.path == "OutboundRedirectionExceptionCollection[0]"


def test_the_page_shows_redirections_that_can_be(tmp_path: Path) -> None:
    page = ROOT / "docs" / "srmp-transport.md"
    example = page.read_text(encoding="utf-8").partition("```json\n")[2].partition("```")[0]
    file = tmp_path / "redirections.json"
    file.write_text(example)
    redirections = load_redirections(file)
    assert redirections.inbound("http://ALPHA:8080/msmq/orders") == "http://alpha/msmq/private$/orders"
    assert redirections.outbound("http://a/msmq/q") == "http://gateway.example:8080/msmq/q"
    assert redirections.outbound("http://beta/msmq/q") == "http://beta/msmq/q"
