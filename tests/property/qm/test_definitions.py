"""Any definitions: exported, the folder gone, imported and exported again, they are the same."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from msmqwire.qm.runtime.local import attach
from tests.support.nightly import NIGHTLY

_NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_.", min_size=1, max_size=8)
_LIMITS = st.none() | st.integers(0, 0xFFFFFFFE)
_USERS = st.sampled_from(["callers", "everyone", "anonymous", r"HOME\anne", "S-1-5-21-1-2-3-1001"])
_WORDS = st.sampled_from(["all", "receive", "receive,send", "peek", "send,get_properties", "delete"])
_RIGHTS = st.dictionaries(_USERS, _WORDS, max_size=3).map(
    lambda given: [f"{user}:{words}" for user, words in given.items()]
)
_QUEUES = st.fixed_dictionaries(
    {"queue": _NAMES.map(lambda name: f"private$\\{name}"), "transactional": st.booleans()},
    optional={
        "label": st.text(max_size=20),
        "quota": _LIMITS,
        "journal": st.booleans(),
        "journal_quota": _LIMITS,
        "authenticated": st.booleans(),
        "privacy": st.sampled_from(["none", "optional", "body"]),
        "type": st.uuids().map(str),
        "time_to_live": st.none() | st.integers(1, 0xFFFFFFFE),
        "when_full": st.sampled_from(["refuse", "oldest-to-dead-letters"]),
        "delivery_limit": st.none() | st.integers(1, 0xFFFF),
        "poison": st.sampled_from(["subqueue", "dead-letters"]),
        "allow": _RIGHTS,
        "deny": _RIGHTS,
        "private_number": st.integers(5, 40),
    },
)
_POLICIES = st.fixed_dictionaries(
    {"name": _NAMES.filter(lambda name: name[0].isalnum()), "pattern": _NAMES, "order": st.integers(-9, 9)},
    optional={"quota": _LIMITS, "journal": st.booleans()},
).filter(lambda policy: len(policy) > 3)
_HOSTS = st.fixed_dictionaries({"name": _NAMES, "address": _NAMES}, optional={"port": st.integers(1, 0xFFFF)})
_SETTINGS = st.lists(
    st.sampled_from(
        [
            {"name": "window_size", "value": 7},
            {"name": "ping", "value": True},
            {"name": "acknowledge_at_window", "value": 0.25},
            {"name": "relay", "value": "none"},
            {"name": "retry_statuses", "value": [408]},
        ]
    ),
    unique_by=lambda setting: str(setting["name"]),
)


def _unique(items: Any, name: str) -> Any:
    return st.lists(items, max_size=4, unique_by=lambda item: item[name].lower())


@settings(max_examples=200 if NIGHTLY else 6)
@given(_unique(_QUEUES, "queue"), _unique(_POLICIES, "name"), _unique(_HOSTS, "name"), _SETTINGS)
def test_export_of_an_import_of_an_export(queues: Any, policies: Any, hosts: Any, kept: Any) -> None:
    definitions = {
        "msmqwire_definitions": 1, "queues": queues, "policies": policies, "hosts": hosts,
        "settings": kept,
    }  # fmt: skip
    with TemporaryDirectory() as folder:
        with attach(Path(folder, "one"), create=True) as one:
            one.call("definitions_import", definitions=definitions)
            assert one.call("definitions_import", definitions=definitions)["changes"] == []
            first = one.call("definitions_export")["definitions"]
        with attach(Path(folder, "one")) as one:
            assert one.call("definitions_export")["definitions"] == first
        with attach(Path(folder, "two"), create=True) as two:
            two.call("definitions_import", definitions=first)
            assert two.call("definitions_export")["definitions"] == first
            assert two.call("definitions_import", definitions=first, dry_run=True)["changes"] == []
