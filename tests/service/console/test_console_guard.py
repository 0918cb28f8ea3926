"""Who may use the console: logins, names, origins, forged requests, limits."""

from __future__ import annotations

import json
import re
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from msmqwire.qm.runtime.api.logins import ConsoleLogins
from msmqwire.qm.runtime.api.tokens import Tokens
from msmqwire.qm.runtime.console.options import ConsoleLimits
from msmqwire.qm.runtime.data_folder import TOKEN_FILE
from msmqwire.service.page_guard import HEADERS
from tests.support.qm.console_client import Browser, WithConsole, place, token_of, with_console
from tests.support.running import ADDRESS, ORDERS, PATIENCE_S, until

QUEUE = place(ORDERS)
READS = (
    "status", "queues", QUEUE, f"{QUEUE}/messages", f"{QUEUE}/messages/1", f"{QUEUE}/messages/1/preview",
    f"{QUEUE}/messages/1/body", f"{QUEUE}/samples", f"{QUEUE}/export", "outgoing", "sessions", "transactions",
    "samples", "log", "samples/events", "policies",
)  # fmt: skip
WRITES = (
    ("POST", f"{QUEUE}/purge"), ("DELETE", f"{QUEUE}/messages/1"), ("POST", f"{QUEUE}/messages/1/move"),
    ("POST", f"{QUEUE}/messages/1/requeue"), ("PATCH", QUEUE), ("DELETE", QUEUE), ("POST", "queues"),
    ("POST", "messages"),
)  # fmt: skip
FAST = replace(ConsoleLimits(), sample_s=0.1)


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WithConsole]:
    with with_console(tmp_path_factory.mktemp("guard") / "data", names=("Queues.Example",)) as running:
        yield running


# -- logins ---------------------------------------------------------------------------------------------


def test_the_token_file_is_private_and_deleted_with_the_server(tmp_path: Path) -> None:
    data = tmp_path / "data"
    tokens = []
    for _ in range(2):
        with with_console(data):
            file = data / TOKEN_FILE
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            tokens.append(token_of(data))
        assert not file.exists()
    assert len(set(tokens)) == 2
    assert all(len(token) == 43 for token in tokens)


def test_a_cookie_for_this_site_alone(console: WithConsole) -> None:
    answer = console.without_login().log_in(token_of(console.data))
    name, *attributes = answer.headers["Set-Cookie"].split("; ")
    assert name.startswith("msmqwire-")
    assert sorted(attributes) == ["HttpOnly", "Max-Age=43200", "Path=/", "SameSite=Strict"]
    assert set(answer.told) == {"csrf", "write", "name", "right", "computer", "identifier", "sample_s"}


def test_a_login_behind_https_has_a_cookie_for_https_alone(console: WithConsole) -> None:
    browser = console.without_login()
    browser.headers = {"Origin": browser.origin.replace("http:", "https:")}
    assert "; Secure" in browser.log_in(token_of(console.data)).headers["Set-Cookie"]


@pytest.mark.parametrize(
    ("token", "status"),
    [
        ("", 401),
        ("wrong", 401),
        ("x" * 43, 401),
        ("x" * 1000, 400),
        (None, 400),
        (7, 400),
        (["x"], 400),
        ({}, 400),
    ],
    ids=lambda token: str(token)[:50],
)
def test_a_wrong_token_is_refused(token: object, status: int, console: WithConsole) -> None:
    answer = console.without_login().ask("POST", "/api/v1/login", {"token": token})
    assert answer.status == status
    assert status != 401 or "neither the token in the file" in answer.told["detail"]
    assert "Set-Cookie" not in answer.headers


def test_no_number_of_wrong_tokens_keeps_out_the_right_one(tmp_path: Path) -> None:
    """All of them come from one address, as behind a proxy."""
    with with_console(tmp_path / "data") as own:
        browser = own.without_login()
        assert {browser.log_in(f"wrong {number}").status for number in range(100)} == {401}
        assert browser.log_in(token_of(own.data)).status == 200
        assert own.browser.get("status").status == 200


def test_a_session_ends_by_time_and_when_it_is_not_used() -> None:
    now = [0.0]
    limits = replace(ConsoleLimits(), session_s=100, idle_s=30)
    logins = ConsoleLogins(Tokens("right"), limits, lambda: now[0])
    begun = logins.log_in("192.0.2.1", "right")
    assert begun is not None
    identifier, session = begun
    for _ in range(4):
        now[0] += 25
        assert logins.find(identifier, "192.0.2.1") is session
    now[0] += 1
    assert logins.find(identifier, "192.0.2.1") is None
    begun = logins.log_in("192.0.2.1", "right")
    assert begun is not None
    now[0] += 31
    assert not logins.is_valid(begun[1])
    assert logins.find(begun[0], "192.0.2.1") is None


def test_an_origin_is_known_while_a_session_from_there_lasts() -> None:
    now = [0.0]
    logins = ConsoleLogins(Tokens("right"), replace(ConsoleLimits(), idle_s=30), lambda: now[0])
    assert logins.log_in("2001:db8::1", "wrong") is None
    assert not logins.is_known("2001:db8::/64")
    begun = logins.log_in("2001:db8::1", "right")
    assert begun is not None
    assert logins.is_known("2001:db8::/64")
    now[0] += 30
    assert logins.find(begun[0], "192.0.2.1") is begun[1]
    assert (logins.is_known("192.0.2.1"), logins.is_known("2001:db8::/64")) == (True, False)
    now[0] += 31
    assert not logins.is_known("192.0.2.1")


def test_the_session_used_least_recently_makes_room() -> None:
    logins = ConsoleLogins(Tokens("right"), replace(ConsoleLimits(), sessions=2))
    first, second = (logins.log_in("192.0.2.1", "right") for _ in range(2))
    assert first is not None
    assert second is not None
    assert logins.find(first[0], "192.0.2.1") is first[1]
    logins.log_in("192.0.2.1", "right")
    assert logins.find(first[0], "192.0.2.1") is first[1]
    assert logins.find(second[0], "192.0.2.1") is None


def test_after_logging_out_the_cookie_is_worth_nothing(console: WithConsole) -> None:
    browser = console.without_login()
    browser.log_in(token_of(console.data))
    answer = browser.post("logout")
    assert answer.status == 200
    assert "Max-Age=0" in answer.headers["Set-Cookie"]
    assert browser.get("status").status == 401


@pytest.mark.parametrize("path", READS)
def test_nothing_is_shown_without_a_login(console: WithConsole, path: str) -> None:
    for cookie in ("", "msmqwire-000000000000=x", console.browser.cookie + "x"):
        browser = console.without_login()
        browser.cookie = cookie
        answer = browser.get(path)
        assert (answer.status, "a token is missing" in answer.told["detail"]) == (401, True)
        assert answer.headers["Connection"] == "close"


def test_a_page_learns_that_it_has_no_login(console: WithConsole) -> None:
    assert console.without_login().told("login") == {}
    assert console.browser.told("login")["csrf"] == console.browser.csrf


# -- names, origins, forged requests --------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        f"{ADDRESS}:80",
        "localhost",
        "LocalHost.:9",
        "127.0.0.1",
        "[::1]:8180",
        "queues.example",
        "QUEUES.EXAMPLE:1",
    ],
)
def test_own_names(console: WithConsole, host: str) -> None:
    assert console.browser.ask("GET", "/api/v1/status", headers={"Host": host}).status == 200


@pytest.mark.parametrize(
    "host",
    ["", "evil.example", "evil.example:8180", "localhost.evil.example", "127.0.0.1.evil.example",
     "queues.example.evil", "127.0.0.1@evil.example", "evil.example@127.0.0.1", "[::1",
     "127.1.example", "[x]"],
)  # fmt: skip
def test_a_name_of_somebody_else_that_leads_here(console: WithConsole, host: str) -> None:
    for path in ("/", "/assets/main.js", "/api/v1/status"):
        answer = console.browser.ask("GET", path, headers={"Host": host})
        assert answer.status == 421, answer
        assert answer.told["name"] == "MisdirectedRequest"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": None},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": f"http://{ADDRESS}"},
        {"Origin": f"ftp://{ADDRESS}:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_a_page_of_somebody_else_changes_nothing(tmp_path: Path, headers: dict[str, str | None]) -> None:
    with with_console(tmp_path / "data", write=True) as own:
        for path, told in (("login", {"token": token_of(own.data)}), (f"{QUEUE}/purge", {})):
            answer = own.browser.ask("POST", f"/api/v1/{path}", told, headers=headers)
            assert answer.status == 403
            assert answer.told["detail"] == "the request is not of a page of this server"


@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}],
    ids=str,
)
@pytest.mark.parametrize("name", ["status", "samples/events", "login"])
def test_a_page_of_another_origin_gets_nothing(
    console: WithConsole, name: str, headers: dict[str, str]
) -> None:
    answer = console.browser.ask("GET", f"/api/v1/{name}", headers=headers)
    assert (answer.status, answer.told["name"]) == (403, "Forbidden")
    for site in ("same-origin", "none"):
        assert console.browser.ask("GET", "/api/v1/status", headers={"Sec-Fetch-Site": site}).status == 200


@pytest.mark.parametrize("csrf", [None, "", "x", "é"])
def test_a_change_needs_the_token_against_forged_requests(tmp_path: Path, csrf: str | None) -> None:
    with with_console(tmp_path / "data", write=True) as own:
        for method, path in (*WRITES, ("POST", "logout")):
            answer = own.browser.ask(method, f"/api/v1/{path}", headers={"X-CSRF-Token": csrf})
            assert (answer.status, "X-CSRF-Token is wrong" in answer.told["detail"]) == (403, True)
        other = own.without_login()
        other.log_in(token_of(own.data))
        answer = own.browser.ask("POST", f"/api/v1/{QUEUE}/purge", headers={"X-CSRF-Token": other.csrf})
        assert answer.status == 403, "the token of another login"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "HEAD"])
def test_no_other_method_does_anything(console: WithConsole, method: str) -> None:
    answer = console.browser.ask(method, f"/api/v1/{QUEUE}/purge", headers={"Origin": console.browser.origin})
    assert answer.status == 405


@pytest.mark.parametrize(
    "path", ["/", "/assets/main.js", "/assets/uPlot.iife.min.js", "/api/v1/status", "/none"]
)
def test_headers_against_other_pages(console: WithConsole, path: str) -> None:
    headers = console.without_login().ask("GET", path).headers
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy == {
        "default-src": "'none'", "script-src": "'self'", "style-src": "'self'", "img-src": "'self'",
        "connect-src": "'self'", "base-uri": "'none'", "form-action": "'none'", "frame-ancestors": "'none'",
    }  # fmt: skip
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Server"] == "msmqwire"


def test_pages_have_no_script_or_style_of_their_own(console: WithConsole) -> None:
    page = console.without_login().ask("GET", "/").body.decode()
    assert page.count("<script") == page.count("<script src=") + page.count('<script type="module" src=')
    assert "<style" not in page
    assert " style=" not in page
    assert re.findall(r"<[^>]*\son\w+=", page) == []


@pytest.mark.parametrize(
    "path", ["/assets/../server.py", "/assets/%2e%2e/server.py", "/assets/", "/server.py"]
)
def test_only_the_files_of_the_pages_are_sent(console: WithConsole, path: str) -> None:
    assert console.without_login().ask("GET", path).status == 404


# -- read-only ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "path"), WRITES)
def test_without_the_option_nothing_is_changed(console: WithConsole, method: str, path: str) -> None:
    answer = console.browser.ask(method, f"/api/v1/{path}")
    assert answer.status == 403
    assert answer.told["detail"].startswith("the server is read-only: serve --console-write")


# -- limits ---------------------------------------------------------------------------------------------


def test_too_large_a_request(console: WithConsole) -> None:
    answer = console.browser.ask("POST", "/api/v1/login", data=b'{"token": "' + b"x" * 5000 + b'"}')
    assert answer.status == 413


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"1", b"[" * 10_000, b"\xff"])
def test_not_an_object_of_json(console: WithConsole, data: bytes) -> None:
    answer = console.without_login().ask("POST", "/api/v1/login", data=data[:4000])
    assert (answer.status, answer.told["name"]) == (400, "InvalidValue")
    assert answer.headers["Connection"] == "close", "one answer without a login"


@pytest.mark.parametrize(
    ("headers", "data", "status"),
    [
        ({"Content-Type": "application/json; charset=nonsense"}, b"{}", 415),
        ({"Content-Type": "application/json; charset=zlib"}, b"{}", 415),
        ({"Content-Encoding": "gzip"}, b"not compressed", 400),
        ({"Content-Length": "100"}, b'{"tok', None),
    ],
    ids=str,
)
def test_no_browser_without_a_login_makes_the_log_report_a_fault(
    tmp_path: Path, headers: dict[str, str | None], data: bytes, status: int | None
) -> None:
    with with_console(tmp_path / "data") as own:
        browser = own.without_login()
        fields = {"Host": f"{browser.address}:{browser.port}", "Origin": browser.origin}
        fields |= {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        connection = socket.create_connection((browser.address, browser.port), PATIENCE_S)
        connection.sendall(f"POST /api/v1/login HTTP/1.1\r\n{head}\r\n".encode() + data)
        if status is not None:
            assert _rest(connection).startswith(f"HTTP/1.1 {status} ".encode())
        connection.close()
        until(lambda: _connections(own) == 0, "the end of the connection")
        assert own.browser.told("log", level="error")["lines"] == []


def _connections(own: WithConsole) -> int:
    return own.server.do(lambda server: len(server._console.pages.connections))


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nno field<script>\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400),
        (b"GET /" + b"x" * 5000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nExpect: x\r\nConnection: close\r\n\r\n", 417),
    ],
    ids=["TLS", "field", "two hosts", "long", "two lengths", "Expect"],
)
def test_not_a_request(console: WithConsole, request_: bytes, status: int) -> None:
    connection = socket.create_connection((console.browser.address, console.browser.port), PATIENCE_S)
    connection.sendall(request_)
    head, _, body = _rest(connection).decode().partition("\r\n\r\n")
    first, *lines = head.split("\r\n")
    assert first.split()[1] == str(status)
    fields = dict(line.split(": ", 1) for line in lines)
    assert {name: fields[name] for name in HEADERS} == HEADERS
    if status == 400:
        assert json.loads(body)["detail"] == "not an HTTP request", "nothing that was sent"
    assert console.browser.told("log", level="error")["lines"] == []


def test_another_type_than_json_can_t_be_sent_by_a_form(console: WithConsole) -> None:
    answer = console.browser.ask("POST", "/api/v1/login", headers={"Content-Type": "text/plain"})
    assert answer.status == 415


def test_one_login_can_t_make_requests_without_end(tmp_path: Path) -> None:
    with with_console(tmp_path / "data", limits=replace(FAST, requests_per_s=2)) as own:
        statuses = [own.browser.get("log").status for _ in range(12)]
        assert statuses[:5] == [200] * 5, "six, of which the login before was none"
        assert statuses[-1] == 429
        until(lambda: own.browser.get("log").status == 200, "requests again after a while")


def test_streams_of_one_login_are_limited_and_come_free(tmp_path: Path) -> None:
    with with_console(tmp_path / "data", limits=replace(FAST, streams=2)) as own:
        streams = [_stream(own.browser) for _ in range(2)]
        assert all(stream.recv(12) == b"HTTP/1.1 200" for stream in streams)
        assert own.browser.get("samples/events").status == 429
        streams[0].close()
        third = until(lambda: _if_begun(_stream(own.browser)), "a place for a stream")
        third.close()
        streams[1].close()


def _stream(browser: Browser) -> socket.socket:
    connection = socket.create_connection((browser.address, browser.port), timeout=PATIENCE_S)
    host = f"{browser.address}:{browser.port}"
    request = f"GET /api/v1/samples/events HTTP/1.1\r\nHost: {host}\r\nCookie: {browser.cookie}\r\n\r\n"
    connection.sendall(request.encode())
    return connection


def _if_begun(connection: socket.socket) -> socket.socket | None:
    if connection.recv(12) == b"HTTP/1.1 200":
        return connection
    connection.close()
    return None


def test_a_stream_ends_with_its_login_and_with_the_server(tmp_path: Path) -> None:
    with with_console(tmp_path / "data") as own:
        other = own.without_login()
        other.log_in(token_of(own.data))
        ending, lasting = _stream(other), _stream(own.browser)
        assert ending.recv(4) == lasting.recv(4) == b"HTTP"
        other.post("logout")
        assert _rest(ending).endswith(b"0\r\n\r\n"), "a whole answer"
    _rest(lasting)


def _rest(connection: socket.socket) -> bytes:
    """What comes until the other side ends the connection."""
    received = b""
    with connection, suppress(ConnectionResetError):
        while chunk := connection.recv(65536):
            received += chunk
    return received


def test_slow_connections_without_a_login_are_closed(tmp_path: Path) -> None:
    with with_console(tmp_path / "data", peers={"page_read_s": 0.2}) as own:
        for begun in (
            b"",
            b"GET / HTTP/1.1\r\nHost: x",
            b"POST /api/v1/login HTTP/1.1\r\nHost: localhost\r\n",
        ):
            connection = socket.create_connection((own.browser.address, own.browser.port), PATIENCE_S)
            connection.sendall(begun)
            start = time.monotonic()
            assert _rest(connection) == b""
            assert time.monotonic() - start < PATIENCE_S / 4


def test_bytes_without_a_login_are_bounded(tmp_path: Path) -> None:
    with with_console(tmp_path / "data") as own:
        connection = socket.create_connection((own.browser.address, own.browser.port), PATIENCE_S)
        head = f"POST /api/v1/login HTTP/1.1\r\nHost: {own.browser.address}\r\nContent-Length: 9000\r\n\r\n"
        with suppress(ConnectionError):
            connection.sendall(head.encode() + b"x" * 9000)
        assert _rest(connection).startswith(b"HTTP/1.1 413 "), "answered unread"
        connection = socket.create_connection((own.browser.address, own.browser.port), PATIENCE_S)
        with suppress(ConnectionError):
            connection.sendall(b"POST /api/v1/login HTTP/1.1\r\n" + b"X: y\r\n" * 2000)
        assert _rest(connection) == b"", "a head without an end"


def test_unauthenticated_connections_leave_room_for_a_login(tmp_path: Path) -> None:
    """The oldest of them makes room; the stream of a login goes on."""
    peers = {"page_connections": 4, "page_read_s": 600}
    with with_console(tmp_path / "data", peers=peers) as own:
        stream = _stream(own.browser)
        assert stream.recv(12) == b"HTTP/1.1 200"
        waiting = [
            socket.create_connection((own.browser.address, own.browser.port), PATIENCE_S) for _ in range(8)
        ]
        assert own.browser.get("status").status == 200
        told = b""
        while told.count(b"event: sample") < 10:
            chunk = stream.recv(65536)
            assert chunk, "the stream of a login goes on"
            told += chunk
        assert _rest(waiting[0]) == b"", "the oldest has made room"
        for one in (*waiting[1:], stream):
            one.close()


def test_a_slow_reader_of_a_stream_loses_it(tmp_path: Path) -> None:
    limits = replace(FAST, sample_s=0.001, unread_bytes=4096, streams=1)
    with with_console(tmp_path / "data", limits=limits) as own:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        connection.settimeout(PATIENCE_S)
        connection.connect((own.browser.address, own.browser.port))
        host = f"{own.browser.address}:{own.browser.port}"
        fields = f"Host: {host}\r\nCookie: {own.browser.cookie}\r\n\r\n"
        connection.sendall(f"GET /api/v1/samples/events HTTP/1.1\r\n{fields}".encode())
        again = until(lambda: _if_begun(_stream(own.browser)), "its place, without a byte having been read")
        again.close()
        connection.close()
