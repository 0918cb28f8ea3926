"""The console of ``msmqwire serve``: its options, what it says at the start, and its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.qm.console_client import Browser, token_of
from tests.support.running import ADDRESS, command, process


def test_the_path_of_the_token_is_shown_and_never_the_token(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with process(data, "--console", f"{ADDRESS}:0", "--log", "debug") as server:
        token = token_of(data)
        browser = Browser(ADDRESS, server.console_port)
        assert browser.log_in(token).status == 200
        assert browser.told("login")["write"] is False
        log = server.log_text()
        told = [line for line in server.logs() if line["event"].startswith("the console is ready")]
        assert [(line["address"], line["port"], line["token_file"]) for line in told] == [
            (ADDRESS, server.console_port, str(data.resolve() / "console-token"))
        ]
        for secret in (token, browser.cookie.partition("=")[2], browser.csrf):
            assert secret not in log
        assert "can be reached from other computers" not in log
    assert not (data / "console-token").exists()


def test_a_warning_where_other_computers_can_reach_it(tmp_path: Path) -> None:
    with process(tmp_path / "data", "--console", "0.0.0.0:0", "--console-write") as server:
        assert [line["level"] for line in server.logs() if "from other computers" in line["event"]] == [
            "warning"
        ]
        browser = Browser(ADDRESS, server.console_port)
        assert browser.log_in(token_of(server.data)).told["write"] is True


@pytest.mark.parametrize("option", [("--console-write",), ("--console-name", "x"), ("--metrics-name", "x")])
def test_options_that_need_the_pages(tmp_path: Path, option: tuple[str, ...]) -> None:
    run = command("serve", "--data", tmp_path / "data", *option)
    assert run.status == 2
    assert f"for {option[0].rpartition('-')[0]}" in run.err
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("page", ["console", "metrics"])
@pytest.mark.parametrize("name", ["", "https://queues.example", "queues.example:8180", "me@queues.example"])
def test_a_name_that_no_browser_tells(tmp_path: Path, name: str, page: str) -> None:
    at = (f"--{page}", f"{ADDRESS}:0", "--listen", f"{ADDRESS}:0", "--ping", "off")
    run = command("serve", "--data", tmp_path / "data", *at, f"--{page}-name", name)
    assert run.status == 2
    assert "without scheme and port" in run.err
    assert not (tmp_path / "data").exists()


def test_an_address_in_use(tmp_path: Path) -> None:
    with process(tmp_path / "data", "--console", f"{ADDRESS}:0") as server:
        run = command(
            "serve", "--data", tmp_path / "other", "--listen", f"{ADDRESS}:0", "--ping", "off",
            "--console", f"{ADDRESS}:{server.console_port}",
        )  # fmt: skip
        assert run.status == 69
        assert "can't listen" in run.err
        assert not (tmp_path / "other" / "console-token").exists()
