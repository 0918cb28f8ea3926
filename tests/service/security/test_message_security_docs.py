"""The commands of ``docs/message-security.md``, in their order."""

from __future__ import annotations

import json
import re
import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from msmqwire.qm.runtime.addresses import AddressOverrides
from tests.support.paths import ROOT
from tests.support.running import called, options, served

PAGE = (ROOT / "docs/message-security.md").read_text(encoding="utf-8")
EXAMPLE = PAGE.partition("## Two queue managers that sign and encrypt")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"```sh\n(.*?)```", EXAMPLE, re.DOTALL)
COMMANDS = [line for block in BLOCKS for line in block.splitlines() if line]
SHOWN = json.loads(re.findall(r"```json\n(.*?)```", EXAMPLE, re.DOTALL)[0])


def arguments(line: str, folder: Path, known: dict[str, str]) -> list[str]:
    """The arguments of a command without ``msmqwire``, with files in a folder of the test."""
    words = shlex.split(line, comments=True)
    assert words.pop(0) == "msmqwire"
    for name, value in known.items():
        words = [word.replace(name, value) for word in words]
    return [
        str(folder / word) if word.startswith("./") or word.endswith((".pub", ".pem")) else word
        for word in words
    ]


def test_the_example_works_as_it_is_shown(tmp_path: Path) -> None:
    known: dict[str, str] = {}
    received: dict[str, Any] = {}
    with ExitStack() as stack:
        for line in COMMANDS:
            words = arguments(line, tmp_path, known)
            if words[0] == "serve":
                chosen = dict(zip(words[1::2], words[2::2], strict=True))
                hosts: dict[str, tuple[str, int | None]] = {}
                if "--host" in chosen:
                    guid, _, address = chosen["--host"].partition("=")
                    hosts[guid] = (address, int(known["port"]))
                base = options(
                    Path(chosen["--data"]), name=chosen["--name"], overrides=AddressOverrides(hosts=hosts),
                    address=chosen["--listen"].partition(":")[0],
                )  # fmt: skip
                known.setdefault("port", str(stack.enter_context(served(base)).port))
                continue
            into = Path(words.pop()) if words[-2] == ">" else None
            run = called(*(word for word in words if word != ">"))
            assert (run.status, run.err) == (0, ""), (line, run)
            if into is not None:
                into.write_text(run.out)
            elif words[:2] == ["queue", "show"]:
                name = json.loads(run.out)["format_name"]
                known["<guid>"] = name.removeprefix("PRIVATE=").partition("\\")[0]
                assert name.endswith("\\5"), "the page shows this number"
            elif words[0] == "receive":
                received = json.loads(run.out)
    assert received.pop("sender_certificate").startswith(SHOWN.pop("sender_certificate")[:4])
    assert {name: received[name] for name in SHOWN} == SHOWN
