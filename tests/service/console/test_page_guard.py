"""The names by which pages are reached: addresses, localhost and given names alone."""

from __future__ import annotations

import pytest
from aiohttp import HttpVersion10, web
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from msmqwire.service.page_guard import PageGuard

GUARD = PageGuard("the page is", ("Queues.Example.", "pc_1"), "--page-name")
OWN = (
    "127.0.0.1", "127.0.0.1:80", "192.0.2.7:65535", "[::1]", "[::1]:8180", "[FE80::1]:1", "[::ffff:10.0.0.1]",
    "localhost", "LocalHost:9", "localhost.:9", "queues.example", "QUEUES.EXAMPLE.:1", "PC_1", "localhost:",
)  # fmt: skip
FOREIGN = (
    "", " ", ":80", "evil.example", "evil.example:9101", "localhost.evil.example", "127.0.0.1.evil.example",
    "evil.example@127.0.0.1", "127.0.0.1@evil.example", "user:pw@localhost", "localhost@", "@localhost",
    "localhost:80:80", "localhost:x", "localhost:-1", "localhost:123456",
    "localhost/", "localhost?x", "localhost#", "localhost..",
    "queues.example..", "xqueues.example", "queues.example.evil", "queues", "[::1", "::1",
    "[]", "[x]", "[127.0.0.1]", "[::1%eth0]", "[::1%25eth0]", "[::1]x", "[::1]evil.example",
    "127.1", "0x7f.1",
    "2130706433", "0177.0.0.1", "127.0.0.1.", "localhost, evil.example", "evil.example, localhost",
    "localhost evil.example", "\u217cocalhost", "localh\u043est", "loc\u0430lhost",
    "localhost\u3002evil.example",
)  # fmt: skip


def passes(target: str = "/", *hosts: str, old: bool = False, **more: str) -> bool:
    headers = CIMultiDict([("Host", host) for host in hosts])
    headers.update({name.replace("_", "-"): value for name, value in more.items()})
    version = {"version": HttpVersion10} if old else {}
    request = make_mocked_request("GET", target, headers, **version)
    try:
        GUARD.check_name(request)
        GUARD.check_origin(request)
    except (web.HTTPMisdirectedRequest, web.HTTPForbidden):
        return False
    return True


def test_a_refusal_names_the_option() -> None:
    request = make_mocked_request("GET", "/", {"Host": "evil.example"})
    with pytest.raises(web.HTTPMisdirectedRequest) as caught:
        GUARD.check_name(request)
    assert caught.value.text == "the page is not reached by this name: --page-name NAME allows it"


@pytest.mark.parametrize("host", OWN)
def test_own_names(host: str) -> None:
    assert passes("/", host)
    assert passes("/", host, Origin=f"http://{host}", Sec_Fetch_Site="same-origin")


@pytest.mark.parametrize("host", FOREIGN)
def test_names_of_somebody_else(host: str) -> None:
    assert not passes("/", host)
    assert not passes("/", host, old=True)


def test_a_request_without_a_name_is_of_no_browser_in_http_1_0() -> None:
    assert passes("/", old=True)
    assert not passes("/")


def test_two_names_have_to_be_own() -> None:
    assert not passes("/", "localhost", "evil.example")
    assert not passes("/", "evil.example", "localhost")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_target_in_absolute_form_names_a_host_as_well(host: str) -> None:
    assert passes(f"http://{host}:9101/", host)
    assert not passes("http://evil.example/", host)
    assert not passes(f"http://{host}/", "evil.example")
    assert not passes(f"http://evil.example@{host}/", host)
    assert not passes("http://evil.example/", old=True)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://localhost:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
    ids=str,
)
def test_a_page_of_another_site(headers: dict[str, str]) -> None:
    assert not passes("/", "localhost", **headers)
