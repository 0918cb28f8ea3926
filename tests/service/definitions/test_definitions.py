"""``msmqwire definitions`` and ``settings``, in a folder with and without a server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msmqwire.qm.runtime.local import attach
from tests.support.running import ORDERS, called, options, served

GUID = "6f9619ff-8b86-d011-b42d-00c04fc964ff"
EMPTY: dict[str, Any] = {"msmqwire_definitions": 1}
FULL: dict[str, Any] = {
    **EMPTY,
    "queues": [
        {
            "queue": r"private$\bills",
            "transactional": True,
            "private_number": 9,
            "delivery_limit": 3,
            "label": "Bills",
            "poison": "dead-letters",
            "quota": 70,
            "allow": [r"HOME\anne:receive,send", "callers:all"],
            "deny": ["anonymous:send"],
        },
        {"queue": r"private$\plain", "transactional": False, "private_number": 12},
    ],
    "policies": [{"name": "p", "pattern": "private$\\p*", "order": 2, "time_to_live": 60}],
    "triggers": [],
    "certificates": [],
    "routes": [{"name": GUID, "address": "10.0.0.7", "port": 1802}],
    "hosts": [{"name": "beta", "address": "10.0.0.5"}],
    "settings": [{"name": "ping", "value": True}, {"name": "retry_statuses", "value": [408, 429]}],
}


@pytest.fixture(params=["served", "in the store"])
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "data"
    if request.param == "served":
        with served(options(folder, ORDERS)):
            yield folder
    else:
        assert called("queue", "create", ORDERS, "--data", folder).status == 0
        yield folder


def exported(data: Path, *words: str) -> dict[str, Any]:
    definitions: dict[str, Any] = json.loads(called("definitions", "export", data, *words).out)
    return definitions


def imported(data: Path, definitions: object, *words: str) -> Any:
    file = data.parent / "definitions.json"
    file.write_text(json.dumps(definitions))
    return called("definitions", "import", data, file, *words)


def names(result: Any) -> list[tuple[str, str, str]]:
    assert result.status == 0, result
    return [(line["change"], line["kind"], line["name"]) for line in result.lines]


CHANGES = [
    ("create", "setting", "ping"),
    ("create", "setting", "retry_statuses"),
    ("create", "host", "beta"),
    ("create", "route", GUID),
    ("create", "policy", "p"),
    ("create", "queue", r"private$\bills"),
    ("create", "queue", r"private$\plain"),
]


def test_a_dry_run_changes_nothing_and_an_import_all(data: Path) -> None:
    before = exported(data)
    assert [queue["queue"] for queue in before["queues"]] == [ORDERS]
    assert names(imported(data, FULL, "--dry-run")) == CHANGES
    assert exported(data) == before
    assert names(imported(data, FULL)) == CHANGES
    after = exported(data)
    assert after == {**FULL, "queues": [FULL["queues"][0], before["queues"][0], FULL["queues"][1]]}
    assert names(imported(data, FULL)) == names(imported(data, after, "--dry-run")) == []
    plain = called("queue", "show", r"private$\plain", "--data", data).one
    assert (plain["time_to_live"], plain["policies"]) == (60, {"time_to_live": "p"})
    assert plain["format_name"].endswith("\\c")


def test_a_queue_that_is_there_is_changed_where_the_file_says(data: Path) -> None:
    assert called("queue", "set", ORDERS, "--label", "old", "--quota", "5", "--data", data).status == 0
    item = {"queue": ORDERS.upper().replace("PRIVATE", "private"), "label": "new", "journal": True}
    assert names(imported(data, {**EMPTY, "queues": [item]})) == [("change", "queue", item["queue"])]
    shown = called("queue", "show", ORDERS, "--data", data).one
    assert (shown["label"], shown["quota"], shown["journal"]) == ("new", 5, True)
    forget = {**EMPTY, "queues": [{"queue": ORDERS, "quota": "default"}]}
    assert names(imported(data, forget)) == [("change", "queue", ORDERS)]
    assert called("queue", "show", ORDERS, "--data", data).one["quota"] is None
    assert names(imported(data, forget)) == []


def test_rights_are_those_of_the_file_alone(data: Path) -> None:
    assert called("queue", "set", ORDERS, "--allow", r"HOME\bert:peek", "--data", data).status == 0
    wanted = {"queue": ORDERS, "allow": [r"HOME\anne:receive"], "deny": ["anonymous:send"]}
    assert names(imported(data, {**EMPTY, "queues": [wanted]})) == [("change", "queue", ORDERS)]
    shown = called("queue", "show", ORDERS, "--data", data).one
    assert shown["allow"] == {r"HOME\anne": ["receive"]}
    assert shown["deny"] == {"anonymous": ["send"]}


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"queues": {}}, "queues"),
        ({"exchanges": []}, "exchanges"),
        ({"queues": [{"queue": "private$\\a"}, 7]}, "queues[1]"),
        ({"queues": [{"queue": "private$\\a"}, {"queue": "private$\\b", "quota": -1}]}, "queues[1].quota"),
        ({"queues": [{"queue": "private$\\a", "label": 3}]}, "queues[0].label"),
        ({"queues": [{"queue": "private$\\a", "color": "red"}]}, "queues[0].color"),
        ({"queues": [{"queue": "private$\\a"}, {"queue": "PRIVATE$\\A"}]}, "queues[1].queue"),
        ({"queues": [{"queue": "private$\\a\\b"}]}, "queues[0].queue"),
        ({"queues": [{"queue": "public"}]}, "queues[0].queue"),
        ({"queues": [{"queue": "other\\private$\\a"}]}, "queues[0].queue"),
        ({"queues": [{"queue": "private$\\a;sub"}]}, "queues[0].queue"),
        ({"queues": [{"queue": ORDERS, "transactional": True}]}, "queues[0].transactional"),
        ({"queues": [{"queue": "private$\\a", "allow": ["anne"]}]}, "queues[0].allow"),
        (
            {"queues": [{"queue": "private$\\a", "security_descriptor": "00"}]},
            "queues[0].security_descriptor",
        ),
        ({"queues": [{"queue": "private$\\a", "private_number": 1}]}, "queues[0].private_number"),
        ({"policies": [{"name": "p", "pattern": "*", "order": 1, "label": "x"}]}, "policies[0].label"),
        ({"policies": [{"name": "p", "pattern": "*", "order": 1, "quota": "x"}]}, "policies[0].quota"),
        ({"settings": [{"name": "no_such", "value": 1}]}, "settings[0].name"),
        ({"settings": [{"name": "window_size", "value": 0}]}, "settings[0].value"),
        ({"settings": [{"name": "window_size", "value": {"a": 1}}]}, "settings[0].value"),
        ({"hosts": [{"name": "a b", "address": "x"}]}, "hosts[0].name"),
        ({"hosts": [{"name": GUID, "address": "x"}]}, "hosts[0].name"),
        ({"routes": [{"name": "beta", "address": "x"}]}, "routes[0].name"),
        ({"hosts": [{"name": "b", "address": "x", "port": 0}]}, "hosts[0].port"),
        ({"triggers": [{"name": "t"}]}, "triggers[0]"),
        ({"certificates": [{"certificate": "x", "sid": "S-1-5-7"}]}, "certificates[0].certificate"),
        ({"certificates": [{"digest": "00", "revoked": True}]}, "certificates[0].digest"),
        (
            {"keys": [{"provider": "x", "use": "exchange", "created": 1, "private_key": "x"}]},
            "keys[0].provider",
        ),
        ({"peer_keys": [{"queue_manager": "x", "keys": {}}]}, "peer_keys[0].queue_manager"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_item_is_named_and_nothing_is_changed(tmp_path: Path, wrong: Any, path: str) -> None:
    data = tmp_path / "data"
    assert called("queue", "create", ORDERS, "--data", data).status == 0
    before = exported(data)
    policy = {"policies": [{"name": "first", "pattern": "*", "order": 1, "quota": 1}]}
    result = imported(data, {**EMPTY, **policy, **wrong})
    assert (result.status, json.loads(result.err)["path"]) == (65, path)
    assert exported(data) == before


def test_files_that_are_no_definitions(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert called("queue", "create", ORDERS, "--data", data).status == 0
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(1 << 30)
    for file, status in ((large, 65), (Path("/dev/zero"), 65), (tmp_path / "missing", 66), (tmp_path, 66)):
        assert called("definitions", "import", data, file).status == status, file
    assert called("definitions", "import", tmp_path / "none", large).status == 65
    assert imported(tmp_path / "none", EMPTY).status == 66


def test_large_definitions_are_handed_over_in_the_folder(data: Path) -> None:
    padding = {**EMPTY, "settings": [{"name": "ping", "value": True}]}
    file = data.parent / "definitions.json"
    file.write_text(json.dumps(padding) + " " * (20 << 20))
    assert names(called("definitions", "import", data, file)) == [("create", "setting", "ping")]
    assert not (data / "definitions.import").exists()


def test_keys_and_certificates_with_secrets_alone(data: Path, tmp_path: Path) -> None:
    sid = "S-1-5-21-1-2-3-1001"
    assert called("key", "create", "--data", data, "--bits", "1024").status == 0
    digest = called("cert", "create", "--data", data, "--sid", sid, "--bits", "1024").one["digest"]
    assert called("cert", "revoke", "--data", data, "--digest", "00" * 16).status == 0
    plain, whole = exported(data), exported(data, "--with-secrets")
    assert "keys" not in plain
    assert "PRIVATE" not in json.dumps(plain)
    assert len(whole["keys"]) == 6
    other = tmp_path / "other"
    assert called("queue", "create", ORDERS, "--data", other).status == 0
    assert ("create", "certificate", digest) in names(imported(other, whole))
    assert exported(other, "--with-secrets") == whole
    assert names(imported(other, whole, "--dry-run")) == []
    listed = {row["digest"]: row for row in called("cert", "list", "--data", other).lines}
    assert (listed[digest]["key"], listed["00" * 16]["revoked"]) == (True, True)


def test_settings_are_kept_and_options_come_first(data: Path) -> None:
    words = ("window_size=32", "ping=yes", "--host", "beta=10.0.0.5:1802")
    assert called("settings", "set", *words, "--data", data).status == 0
    shown = {row["name"]: row for row in called("serve", "--data", data, "--print-settings").lines}
    assert shown["window_size"] == {"name": "window_size", "value": 32, "from": "folder", "kind": "setting"}
    assert shown["beta"] == {"name": "beta", "value": "10.0.0.5:1802", "from": "folder", "kind": "host"}
    assert shown["relay"]["from"] == shown["memory"]["from"] == "default"
    more = ("--set", "window_size=64", "--relay", "known", "--host", "beta=10.0.0.6", "--no-insecure-nacks")
    shown = {row["name"]: row for row in called("serve", "--data", data, "--print-settings", *more).lines}
    wanted = ("window_size", "beta", "relay", "ping")
    assert [(shown[name]["value"], shown[name]["from"]) for name in wanted] == [
        (64, "option"), ("10.0.0.6", "option"), ("known", "option"), (True, "folder"),
    ]  # fmt: skip
    assert shown["send_insecure_nacks"]["from"] == "option"
    assert [row["name"] for row in called("settings", "list", "--data", data).lines] == [
        "window_size", "ping", "beta",
    ]  # fmt: skip
    assert called("settings", "unset", "BETA", "--data", data).status == 0
    assert called("settings", "unset", "beta", "--data", data).status == 69
    assert called("settings", "set", "window_size=0", "--data", data).status == 2
    assert called("settings", "set", "--data", data).status == 2


def test_a_server_uses_what_the_folder_keeps(tmp_path: Path) -> None:
    data = tmp_path / "data"
    assert called("queue", "create", ORDERS, "--data", data).status == 0
    kept = ("window_size=32", "--host", "beta=127.9.9.9", "--host", f"{GUID}=127.9.9.8")
    assert called("settings", "set", *kept, "--data", data).status == 0
    with served(options(data, ORDERS, name=None)) as server:
        assert server.server.driver.core.context.settings.window_size == 32
        assert server.server.options.overrides.hosts["beta"] == ("127.9.9.9", None)
        assert str(next(iter(server.server.options.overrides.routes))) == GUID


def test_nothing_is_changed_if_a_step_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from msmqwire.qm.rules.queues import Queues

    data = tmp_path / "data"
    assert called("queue", "create", ORDERS, "--data", data).status == 0
    before = exported(data)
    create = Queues.create

    def refuse(self: Queues, template: Any, **more: Any) -> Any:
        if template.pathname.endswith("plain"):
            return 0xC00E0069 - (1 << 32), None
        return create(self, template, **more)

    monkeypatch.setattr(Queues, "create", refuse)
    change = {"queue": ORDERS, "label": "x", "quota": 9, "allow": ["callers:all"]}
    result = imported(data, {**FULL, "queues": [change, *FULL["queues"]]})
    assert result.status == 69
    assert exported(data) == before


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    data, pipe = tmp_path / "data", tmp_path / "pipe"
    assert called("queue", "create", ORDERS, "--data", data).status == 0
    os.mkfifo(pipe)
    if os.fork() == 0:
        with pipe.open("wb") as writer:
            writer.write(json.dumps({**EMPTY, "settings": [{"name": "ping", "value": True}]}).encode())
        os._exit(0)
    assert names(called("definitions", "import", data, pipe)) == [("create", "setting", "ping")]


def test_operations_of_the_control_channel(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with attach(data, create=True) as local:
        answer = local.call("definitions_import", definitions=FULL)
        assert len(answer["changes"]) == len(CHANGES)
        assert local.call("definitions_export")["definitions"] == FULL


def test_keys_that_can_not_be_read_end_the_request_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with served(options(data, ORDERS)):
        (data / "keys.json").mkdir()
        for words in (("export", data), ("import", data, tmp_path / "definitions.json")):
            (tmp_path / "definitions.json").write_text(json.dumps(FULL))
            assert called("definitions", *words).status in (65, 69, 74)
        (data / "keys.json").rmdir()
        assert [queue["queue"] for queue in exported(data)["queues"]] == [ORDERS]


def test_unwritten_keys_are_written_before_the_next_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from msmqwire.errors import StoreRefused
    from msmqwire.qm.runtime.definitions import key_definitions

    data, write = tmp_path / "data", key_definitions.apply_secrets
    revoked = [{**EMPTY, "certificates": [{"digest": f"{n:02x}" * 16, "revoked": True}]} for n in (1, 2)]

    def refuse(*_: Any) -> None:
        raise StoreRefused("no space", file="keys.json")

    with served(options(data, ORDERS)):
        monkeypatch.setattr(key_definitions, "apply_secrets", refuse)
        assert imported(data, revoked[0]).status == 69
        monkeypatch.setattr(key_definitions, "apply_secrets", write)
        assert imported(data, revoked[1]).status == 0
        assert [item["digest"] for item in exported(data)["certificates"]] == ["01" * 16, "02" * 16]
