"""curl posts the specification's example, its dates moved and its host named as the server."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.installed import installed
from tests.support.paths import VECTORS
from tests.support.patience import limit
from tests.support.running import attach, bodies, process

CURL = installed("curl")
SIMPLEQ = r"private$\simpleq"


def example(name: str, authority: str) -> tuple[dict[str, str], bytes]:
    """A request of chapter 4 as of now: its header fields by name, and its entity."""
    data = VECTORS.joinpath("srmp", name).read_bytes()
    head, _, entity = data.partition(b"\r\n\r\n")
    now = datetime.now(UTC).replace(microsecond=0)
    moved = {b"sentAt": now, b"TTrq": now + timedelta(days=4), b"expiresAt": now + timedelta(days=9)}
    for element, date in moved.items():
        pattern, text = rb"<%b>20[01]\d{5}T\d{6}</%b>" % (element, element), f"{date:%Y%m%dT%H%M%S}".encode()
        entity = re.sub(pattern, b"<%b>%b</%b>" % (element, text, element), entity)
    size = len(entity)
    entity = entity.replace(b"http://machine2/", f"http://{authority}/".encode())
    # The sizes of the first part and of the whole are those of the longer URL.
    grown = len(entity) - size
    entity = re.sub(
        rb"(Content-Length: )(\d+)",
        lambda found: found[1] + str(int(found[2]) + grown).encode(),
        entity,
        count=1,
    )
    fields = dict(line.split(": ", 1) for line in head.decode("latin-1").split("\r\n")[1:])
    fields["Host"], fields["Content-Length"] = authority, str(len(entity))
    return fields, entity


def post(url: str, fields: dict[str, str], entity: bytes) -> str:
    """Post with curl; return the status and the size of what came back."""
    arguments = [argument for name, value in fields.items() for argument in ("-H", f"{name}: {value}")]
    run = subprocess.run(
        [CURL, "-s", "-o", "-", "-w", "%{http_code} %{size_download}", *arguments, "--data-binary", "@-",
         url],
        input=entity, capture_output=True, timeout=limit(60), check=True,
    )  # fmt: skip
    return run.stdout.decode()


@pytest.mark.requirement("SRMP-2.1.1-01", "SRMP-2.1.1-12")
@pytest.mark.parametrize("name", ["4.1.http", "4.2.http", "4.3-1.http"])
def test_an_example_of_the_specification_reaches_the_queue(tmp_path, name):
    with process(tmp_path / "data", "--http", "127.0.0.31:0", "--queue", SIMPLEQ) as server:
        authority = f"127.0.0.31:{server.http_port}"
        fields, entity = example(name, authority)
        assert post(f"http://{authority}/msmq/private$/simpleq", fields, entity) == "200 0"
        with attach(server.data) as local:
            (message,) = local.call("peek", queue=SIMPLEQ, count=9)["messages"]
    assert bodies([message])[0]
    assert message["destination"].lower() == f"direct=http://{authority}/msmq/private$/simpleq"


def test_an_example_that_has_expired_is_taken_and_dropped(tmp_path):
    with process(tmp_path / "data", "--http", "127.0.0.31:0", "--queue", SIMPLEQ) as server:
        authority = f"127.0.0.31:{server.http_port}"
        fields, entity = example("4.2.http", authority)
        old = re.sub(rb"<TTrq>\d{8}", b"<TTrq>20070723", entity)
        assert post(f"http://{authority}/msmq/private$/simpleq", fields, old) == "200 0"
        with attach(server.data) as local:
            assert local.call("peek", queue=SIMPLEQ, count=9)["messages"] == []
