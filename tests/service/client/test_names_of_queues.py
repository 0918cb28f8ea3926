"""Names of queues as users type them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msmqwire.errors import InvalidName
from msmqwire.qm.runtime.folder import check_name, default_name
from msmqwire.qm.runtime.local_names import path_of, queue_name

GUID = "12345678-1234-1234-1234-123456789abc"


@pytest.mark.parametrize(
    "text, format_name",
    [
        (r"private$\orders", r"DIRECT=OS:alpha\PRIVATE$\orders"),
        (r"PRIVATE$\Orders", r"DIRECT=OS:alpha\PRIVATE$\Orders"),
        (r".\private$\orders", r"DIRECT=OS:alpha\PRIVATE$\orders"),
        (r"alpha\private$\orders", r"DIRECT=OS:alpha\PRIVATE$\orders"),
        (r"beta\private$\orders", r"DIRECT=OS:beta\PRIVATE$\orders"),
        ("orders", r"DIRECT=OS:alpha\orders"),
        (r".\orders", r"DIRECT=OS:alpha\orders"),
        (r"beta\orders", r"DIRECT=OS:beta\orders"),
        (r"private$\orders;late", r"DIRECT=OS:alpha\PRIVATE$\orders;late"),
        (r"private$\orders;journal", r"DIRECT=OS:alpha\PRIVATE$\orders;JOURNAL"),
        (r"private$\orders;JOURNAL", r"DIRECT=OS:alpha\PRIVATE$\orders;JOURNAL"),
        ("system$;journal", r"DIRECT=OS:alpha\SYSTEM$;JOURNAL"),
        ("System$;DeadLetter", r"DIRECT=OS:alpha\SYSTEM$;DEADLETTER"),
        (r"beta\system$;deadxact", r"DIRECT=OS:beta\SYSTEM$;DEADXACT"),
        (r"DIRECT=TCP:10.0.0.5\private$\orders", r"DIRECT=TCP:10.0.0.5\PRIVATE$\orders"),
        (r"direct=os:beta\orders", r"DIRECT=OS:beta\orders"),
        (
            f"PRIVATE={GUID}\\5",
            f"PRIVATE={GUID}\\00000005",
        ),
    ],
)
def test_a_name_means_a_queue(text: str, format_name: str) -> None:
    assert str(queue_name(text, "alpha")).lower() == format_name.lower()


@pytest.mark.parametrize(
    "text, offset",
    [
        (r"private$\a\b", 10),
        (r".\private$\a\b", 12),
        (r"beta\private$\a\b", 15),
        (r"private$\a;b;c", 12),
        (r"be:ta\x", 2),
        (r"be:ta\system$;journal", 2),
        (r".\private$\a b", 12),
    ],
)
def test_a_wrong_name_is_refused_at_its_place(text: str, offset: int) -> None:
    with pytest.raises(InvalidName) as caught:
        queue_name(text, "alpha")
    assert caught.value.offset == offset


@pytest.mark.parametrize(
    "text, path",
    [
        (r"private$\orders", r"alpha\private$\orders"),
        (r"Alpha\private$\Orders", r"alpha\private$\Orders"),
        (r".\orders", r"alpha\orders"),
        (r"private$\orders;late", r"alpha\private$\orders;late"),
        (r"DIRECT=OS:alpha\private$\orders", r"alpha\private$\orders"),
    ],
)
def test_the_path_name_of_a_queue_that_is_to_be_made(text: str, path: str) -> None:
    assert path_of(text, "alpha") == path


@pytest.mark.parametrize(
    "text",
    [
        r"beta\private$\x",
        "system$;journal",
        r"private$\x;journal",
        "PRIVATE=12345678-1234-1234-1234-123456789abc\\5",
    ],
)
def test_not_every_queue_can_be_made(text: str) -> None:
    with pytest.raises(InvalidName):
        path_of(text, "alpha")


@given(st.text(max_size=40) | st.text("pPrivate$\\;.journalsystem=DIRECTOS:", max_size=40))
def test_any_text_is_a_name_or_refused_as_one(text: str) -> None:
    try:
        name = queue_name(text, "alpha")
        offset = None
    except InvalidName as exc:
        name, offset = None, exc.offset
    assert offset is None or 0 <= offset <= len(text)
    assert name is None or queue_name(str(name), "alpha") == name


@pytest.mark.parametrize("name", ["alpha", "ALPHA-1", "a.b.c", "1", "under_score", "x" * 15])
def test_a_computer_may_have_such_a_name(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", ".", "a b", "a\\b", "a/b", "a;b", "caf\xe9", "a:b", "a\n", "a\x00"])
def test_a_computer_may_not_have_such_a_name(name: str) -> None:
    with pytest.raises(InvalidName):
        check_name(name)


def test_this_computer_has_a_name() -> None:
    assert check_name(default_name())
