"""Prometheus itself scrapes the exporter; alerts and the dashboard of packaging/monitoring are run on it."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from msmqwire.constants import ManagementQueueProperty as Q
from msmqwire.constants import VarEnum
from msmqwire.exporter.targets import read_targets
from msmqwire.management.constants import Opnum
from msmqwire.management.variants import variant
from tests.support.installed import installed, library
from tests.support.paths import ROOT
from tests.support.patience import PATIENCE_S, limit
from tests.support.rpc.management_server import HOST, ManagedMachine, local, managed_machine
from tests.support.running import begun, until

PROMETHEUS, PROMTOOL = installed("prometheus"), installed("promtool")
MONITORING: Final = ROOT / "packaging" / "monitoring"
DASHBOARD: Final = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))
ADDRESS: Final = "127.0.0.1"
VARIABLE: Final = re.compile(r"\$(\w+)|\$\{(\w+)\}")


def expressions() -> dict[str, str]:
    """Every query of the dashboard, by the title of its panel."""
    return {
        f"{panel['id']} {panel['title']} {target['refId']}": target["expr"]
        for panel in DASHBOARD["panels"]
        for target in panel["targets"]
    }


def substituted(query: str, **values: str) -> str:
    """A query with its variables replaced, as Grafana does."""
    return VARIABLE.sub(lambda found: values[found[1] or found[2]], query)


def promtool(*arguments: str, cwd: Path = MONITORING, data: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROMTOOL, *arguments],
        input=data,
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=limit(60),
        check=False,
    )


# -- files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", ["check rules alerts.yml", "check config prometheus.yml", "test rules alerts_test.yml"]
)
def test_promtool_accepts_the_files(arguments: str) -> None:
    done = promtool(*arguments.split())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS" in done.stdout


def test_every_alert_has_a_case() -> None:
    alerts = re.findall(r"- alert: (\w+)", (MONITORING / "alerts.yml").read_text(encoding="utf-8"))
    cases = (MONITORING / "alerts_test.yml").read_text(encoding="utf-8")
    assert len(alerts) == 8
    assert [alert for alert in alerts if f"alertname: {alert}" not in cases] == []


def test_a_rule_that_is_weaker_fails_its_case(tmp_path: Path) -> None:
    """The cases prove something: an alert that never fires is noticed."""
    for name in ("alerts.yml", "alerts_test.yml"):
        shutil.copy(MONITORING / name, tmp_path)
    rules = tmp_path / "alerts.yml"
    rules.write_text(rules.read_text().replace("expr: msmq_up == 0", "expr: msmq_up == 2"))
    assert promtool("test", "rules", "alerts_test.yml", cwd=tmp_path).returncode != 0


def test_the_targets_are_ones_that_the_exporter_reads(tmp_path: Path) -> None:
    shutil.copy(MONITORING / "targets.toml", tmp_path)
    secret = tmp_path / "msmq-reader.secret"
    secret.write_text("x\n")
    secret.chmod(0o600)
    assert [target.name for target in read_targets(tmp_path / "targets.toml")] == [
        "orders-db.example",
        "billing",
    ]


def test_the_dashboard_is_whole() -> None:
    """Panels don't overlap, have a title, a meaning and a query, and use the variables that there are."""
    variables = {one["name"] for one in DASHBOARD["templating"]["list"]}
    assert {"datasource", "target"} <= variables
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        assert panel["title"]
        assert panel["description"].endswith(".")
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells
        for target in panel["targets"]:
            assert {one or two for one, two in VARIABLE.findall(target["expr"])} <= variables
            assert 'target=~"$target"' in target["expr"]
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"]) > 15


# -- a running Prometheus ---------------------------------------------------------------------------------


class Running:
    """A Prometheus on the loopback that scrapes an exporter, and the ports of both."""

    def __init__(self, port: int, exporter: int) -> None:
        self.port, self.exporter = port, exporter

    def api(self, path: str, **arguments: str) -> Any:
        url = f"http://{ADDRESS}:{self.port}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
        with urllib.request.urlopen(url, timeout=limit(30)) as answer:
            told = json.load(answer)
        assert told["status"] == "success", told
        return told["data"]

    def query(self, expression: str) -> list[Any]:
        found: list[Any] = self.api("query", query=expression)["result"]
        return found

    def ready(self) -> bool:
        try:
            return bool(self.query("msmq_up"))
        except OSError:
            return False


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind((ADDRESS, 0))
        port: int = sock.getsockname()[1]
        return port


def computer(machine: ManagedMachine) -> None:
    """Queues of all kinds: one grows with each question, one is stuck, one is well, and dead letters."""
    number, integer = VarEnum.VT_UI4, VarEnum.VT_I4
    grown = 0

    def growing(answer: Any, arguments: Any) -> Any:
        nonlocal grown
        if "grows" in str(arguments.pObjectFormat.arm):
            grown += 50
            machine.add(
                rf"DIRECT=OS:{HOST}\private$\grows",
                local(r"private$\grows", grown, **{})
                | {Q.PROPID_MGMT_QUEUE_JOURNAL_MESSAGE_COUNT: variant(number, 3)},
            )
        return answer()

    machine.twists[Opnum.R_QMMgmtGetInfo] = growing
    machine.has_private("grows")
    machine.has_private("still", 2)
    machine.has_outgoing(r"beta\private$\stuck", 3)
    acknowledged = {
        Q.PROPID_MGMT_QUEUE_EOD_LAST_ACK_TIME: variant(integer, int(time.time()) - 60),
        Q.PROPID_MGMT_QUEUE_EOD_NO_READ_COUNT: variant(number, 4),
    }
    machine.has_outgoing(r"gamma\private$\well", 1, "CONNECTED")
    machine.queues[r"direct=os:gamma\private$\well"] |= acknowledged
    for name, count in (("DEADLETTER", 5), ("DEADXACT", 6)):
        machine.add(rf"DIRECT=OS:{HOST}\SYSTEM$;{name}", local(f"system$;{name.lower()}", count))


@contextmanager
def prometheus(folder: Path, exporter: int) -> Iterator[Running]:
    """Run Prometheus with the alerts, and with the scrape configuration at a faster pace."""
    shutil.copy(MONITORING / "alerts.yml", folder)
    text = (MONITORING / "prometheus.yml").read_text(encoding="utf-8")
    for slow, fast in (
        ("scrape_interval: 30s", "scrape_interval: 1s"),
        ("scrape_timeout: 10s", "scrape_timeout: 1s"),
        ("evaluation_interval: 30s", "evaluation_interval: 1s"),
        ('targets: ["127.0.0.1:9801"]', f'targets: ["{ADDRESS}:{exporter}"]'),
    ):
        assert slow in text
        text = text.replace(slow, fast, 1)
    configuration = folder / "prometheus.yml"
    configuration.write_text(text)
    port = free_port()
    log = folder / "prometheus.log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [
                PROMETHEUS,
                f"--config.file={configuration}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={ADDRESS}:{port}",
                "--log.level=warn",
            ],
            stdin=subprocess.DEVNULL, stdout=errors, stderr=errors, cwd=folder,
        )  # fmt: skip
    running = Running(port, exporter)
    try:
        until(lambda: process.poll() is not None or running.ready(), "the first scrape")
        assert process.poll() is None, log.read_text()
        yield running
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    library("aiohttp")
    folder = tmp_path_factory.mktemp("prometheus")
    with ExitStack() as stack:
        machine = stack.enter_context(managed_machine())
        computer(machine)
        targets = folder / "targets.toml"
        targets.write_text(
            f'[[target]]\nhost = "{ADDRESS}"\nname = "alpha"\nrpc_port = {machine.port}\n'
            f'[[target]]\nhost = "{ADDRESS}"\nname = "silent"\nrpc_port = {free_port()}\n'
        )
        targets.chmod(0o644)
        exporter = begun(
            "exporter", "--targets", targets, "--listen", f"{ADDRESS}:0", stderr=subprocess.DEVNULL
        )
        stack.callback(exporter.communicate)
        stack.callback(exporter.kill)
        assert exporter.stdout is not None
        port = int(exporter.stdout.readline().split("http=127.0.0.1:")[1].split()[0])
        found = stack.enter_context(prometheus(folder, port))
        until(lambda: len(found.query("msmq_up[1m]")[0]["values"]) > 3, "some scrapes")
        yield found


def test_prometheus_takes_the_whole_page(running: Running) -> None:
    (target,) = running.api("targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")
    assert {one["metric"]["target"]: one["value"][1] for one in running.query("msmq_up")} == {
        "alpha": "1",
        "silent": "0",
    }
    (still,) = running.query(r'windows_msmq_messages_in_queue{name="server7\\private$\\still"}')
    assert still["value"][1] == "2"
    assert running.query('msmq_outgoing_state{state="WAITING"} == 1')
    (dead,) = running.query('sum(windows_msmq_messages_in_queue{name=~"(?i).*;dead(letter|xact)"})')
    assert dead["value"][1] == "11"


def test_promtool_finds_no_fault_in_the_metrics(running: Running) -> None:
    url = f"http://{ADDRESS}:{running.exporter}/metrics"
    with urllib.request.urlopen(url, timeout=limit(30)) as answer:
        done = promtool("check", "metrics", data=answer.read().decode())
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("title", expressions(), ids=lambda title: title[:60])
def test_every_query_of_the_dashboard_has_data(running: Running, title: str) -> None:
    query = expressions()[title]
    assert running.query(substituted(query, target=".*", name=".*")) != []


def test_a_choice_of_grafana_is_kept(running: Running) -> None:
    """A name with backslashes: escaped as a pattern, and once more as a text of PromQL."""
    queries = [query for query in expressions().values() if "$name" in query]
    chosen = {"target": "(alpha)", "name": r"(server7\\\\private\\$\\\\still)"}
    found = [running.query(substituted(query, **chosen)) for query in queries]
    assert [one["metric"]["name"] for one in found[0]] == [r"server7\private$\still"]
    assert all(len(one) <= 1 for one in found)


def test_the_values_of_variables_are_there(running: Running) -> None:
    for variable in DASHBOARD["templating"]["list"]:
        found = re.fullmatch(r"label_values\((.*), (\w+)\)", variable.get("definition", ""))
        if found is None:
            assert variable["name"] == "datasource"
            continue
        series = running.query(substituted(found[1], target=".*"))
        assert {one["metric"][found[2]] for one in series} > set(), variable["name"]


def test_alerts_are_evaluated_and_see_what_is_wrong(running: Running) -> None:
    """Each expression runs without an error; those about what is wrong here have found it."""
    (group,) = running.api("rules")["groups"]
    assert {(rule["health"], rule.get("lastError", "")) for rule in group["rules"]} == {("ok", "")}
    grows = next(rule["query"] for rule in group["rules"] if rule["name"] == "MsmqQueueGrows")
    until(lambda: running.query(grows), "a queue that grows")
    found = {rule["name"]: len(running.query(rule["query"])) for rule in group["rules"]}
    assert found == {
        "MsmqExporterDown": 0,
        "MsmqMachineSilent": 1,
        "MsmqMachineOffline": 0,
        "MsmqQueueGrows": 1,
        "MsmqOutgoingStuck": 1,
        "MsmqOutgoingUnacknowledged": 1,
        "MsmqDeadLetters": 2,
        "MsmqQueuesLeftOut": 0,
    }
