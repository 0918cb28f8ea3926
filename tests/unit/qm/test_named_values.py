"""Settings and limits by name, and the page that lists them."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from msmqwire.errors import InvalidValue
from msmqwire.qm.model.enumerations import Relay
from msmqwire.qm.model.settings import Settings
from msmqwire.qm.runtime.limits import LIMITS, Limits
from msmqwire.qm.runtime.named_values import named_values, with_named_values
from msmqwire.qm.runtime.server import SETTINGS
from msmqwire.srmp.limits import ENTITY_SIZE_MAX
from tools.pages.settings_docs import TARGET, main


@pytest.mark.parametrize(
    "text, name, value",
    [
        ("window_size=32", "window_size", 32),
        (" acknowledge_at_window = 0.25", "acknowledge_at_window", 0.25),
        ("ping=TRUE", "ping", True),
        ("answer_pings=off", "answer_pings", False),
        ("relay=all", "relay", Relay.ALL),
        ("resend_timer_table=5,10,20", "resend_timer_table", (5, 10, 20)),
        ("retry_statuses=", "retry_statuses", ()),
        ("ack_delay_ms=0", "ack_delay_ms", 0),
        ("http_read_s=0.5", "http_read_s", 0.5),
        ("http_connections=7", "http_connections", 7),
        ("page_bytes_per_s=8388608", "page_bytes_per_s", 1 << 23),
    ],
)
def test_a_value_is_set_by_its_name(text: str, name: str, value: Any) -> None:
    settings, limits = with_named_values(SETTINGS, LIMITS, [text])
    changed = settings if hasattr(settings, name) else limits
    assert getattr(changed, name) == value
    assert type(getattr(changed, name)) is type(value)
    restored = with_named_values(settings, limits, [])
    assert restored == (settings, limits)
    assert (
        sum(
            getattr(after, field.name) != getattr(before, field.name)
            for after, before in ((settings, SETTINGS), (limits, LIMITS))
            for field in fields(before)
        )
        == 1
    )


def test_the_last_of_several_values_counts() -> None:
    settings, limits = with_named_values(SETTINGS, LIMITS, ["window_size=1", "pings=9", "window_size=2"])
    assert (settings.window_size, limits.pings) == (2, 9)


@pytest.mark.parametrize(
    "text, path, why",
    [
        ("window_size", "", "'window_size' is not NAME=VALUE"),
        ("windowsize=1", "", "'windowsize' is not a setting; did you mean window_size"),
        ("stream_reciept_delay=1", "", "did you mean stream_receipt_delay_ms"),
        ("q=1", "", "'q' is not a setting"),
        ("=1", "", "'' is not a setting"),
        ("window_size=0", "window_size", "'0' is not 1 to 65,535"),
        ("window_size=65536", "window_size", "is not 1 to 65,535"),
        ("window_size=1.5", "window_size", "not a whole number"),
        ("window_size=-1", "window_size", "not a whole number"),
        ("window_size=٣", "window_size", "not a whole number"),
        ("window_size=" + "9" * 5000, "window_size", "not a whole number"),
        ("session_retry_connect_ms=0", "session_retry_connect_ms", "1 to 4,294,967,295, milliseconds"),
        ("ack_wait_timeout_ms=1000", "ack_wait_timeout_ms", "20,000 to 120,000"),
        ("acknowledge_at_window=1.5", "acknowledge_at_window", "0 to 1"),
        ("acknowledge_at_window=nan", "acknowledge_at_window", "not a number"),
        ("http_read_s=0", "http_read_s", "0.001 to 4,294,967, seconds"),
        ("page_bytes_per_s=1MiB", "page_bytes_per_s", "not a whole number, bytes"),
        ("ping=1", "ping", "not true or false"),
        ("relay=some", "relay", "'some' is not a possible value: there are none, known and all"),
        ("resend_timer_table=", "resend_timer_table", "not a whole number"),
        ("resend_timer_table=5,,6", "resend_timer_table", "not a whole number"),
        ("resend_timer_table=0", "resend_timer_table", "1 to 4,294,967, seconds"),
        ("retry_statuses=399", "retry_statuses", "400 to 499"),
    ],
)
def test_a_mistake_is_reported(text: str, path: str, why: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        with_named_values(SETTINGS, LIMITS, [text])
    assert caught.value.path == path
    assert why in caught.value.why
    assert len(caught.value.why) < 200


def test_every_field_has_a_name_a_meaning_and_a_valid_default() -> None:
    assert list(named_values()) == [field.name for owner in (Settings, Limits) for field in fields(owner)]
    for value in named_values().values():
        assert value.meaning
        default = getattr(SETTINGS if value.owner is Settings else LIMITS, value.name)
        for number in default if isinstance(default, tuple) else (default,):
            if value.kind in (int, float, tuple):
                assert value.least <= number <= value.most, value.name


def test_the_page_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check"]) == 0, capsys.readouterr().err
    rows = [line.split(" | ")[0] for line in TARGET.read_text().splitlines() if line.startswith("| `")]
    assert rows == [f"| `{name}`" for name in named_values()]


def test_the_check_tells_of_a_page_that_is_missing_or_old(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    assert main(["--check"], page) == 1
    assert main([], page) == 0
    assert main(["--check"], page) == 0
    page.write_text(page.read_text() + "by hand\n")
    assert main(["--check"], page) == 1


def test_a_request_of_http_may_be_as_long_as_a_message_of_srmp() -> None:
    assert LIMITS.http_request_bytes == ENTITY_SIZE_MAX
