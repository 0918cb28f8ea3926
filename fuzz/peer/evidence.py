"""Evidence of a failure: the seed that replays it, a capture, and a test."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from fuzz.peer.failure import PeerFailure
from fuzz.peer.recording import Recording, pcap_of
from fuzz.peer.steps import Case
from fuzz.peer.target import PROTOCOLS, Ports, Target
from msmqwire import ownership
from msmqwire.durable import replace_file
from msmqwire.errors import InvalidValue, LocatedError

VERSION: Final = 1
_SIZE_MAX: Final = 256 << 20
_MODE: Final = 0o644
"""The mode of the files, less what the umask takes away: one that others may write is refused afterwards."""
_TEST: Final = '''"""{text}

{ids}
MSMQWIRE_PEER names another peer as HOST:PORT.
"""

import os
from pathlib import Path

from fuzz import assert_peer_holds


def test_peer_holds():
    peer = os.environ.get("MSMQWIRE_PEER", "{peer}")
    assert_peer_holds(peer, replay=Path(__file__).with_name("{seed}"){consent})
'''


@dataclass(frozen=True, slots=True)
class Seed:
    """The seed that replays a failure.

    Attributes:
        target: the peer that failed.
        cases: the cases performed on it.
        failure: the failure found.
    """

    target: Target
    cases: tuple[Case, ...]
    failure: PeerFailure

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of a seed file."""
        return {
            "version": VERSION,
            "requirements": list(self.failure.requirements),
            "text": self.failure.text,
            "what": self.failure.what,
            "target": asdict(self.target),
            "cases": [case.to_json() for case in self.cases],
        }

    @classmethod
    def read(cls, path: Path) -> Seed:
        """Read a seed file. Raises LocatedError, also for one that others may have written, and OSError."""
        users = ownership.trusted() if ownership.HAS_MODES else None
        try:
            given = json.loads(ownership.read_own(path, _SIZE_MAX, users))
            if given["version"] != VERSION:
                raise LocatedError(f"{given['version']!r} is not {VERSION}", path="version")
            target = dict(given["target"])
            failure = PeerFailure(
                tuple(map(str, given["requirements"])), str(given["text"]), str(given["what"])
            )
            cases = tuple(Case.from_json(case) for case in given["cases"])
            if not cases or any(case.protocol not in PROTOCOLS for case in cases):
                raise LocatedError("no case, or one of an unknown protocol", path="cases")
            return cls(Target(**{**target, "ports": Ports(**target["ports"])}), cases, failure)
        except InvalidValue as exc:
            raise InvalidValue(f"{path}: {exc.why}") from None
        except LocatedError:
            raise
        except (ValueError, KeyError, TypeError, RecursionError) as exc:
            raise LocatedError(f"not a seed file: {exc}") from None


@dataclass(frozen=True, slots=True)
class ReportedFailure:
    """A failure in the report of a run.

    Attributes:
        requirements: the ids that the peer breaks.
        text: the event.
        packets: the number of packets that show it; None if it was not seen again.
        pcap, seed, test: the files, relative to the folder of the run.
        replayed: whether it was seen again.
        cases: the number of cases of the run that have shown it.
    """

    requirements: tuple[str, ...]
    text: str
    packets: int
    pcap: str
    seed: str
    test: str
    replayed: bool
    cases: int = 1


def prepare_folder(folder: Path) -> None:
    """Make the folder of a run, or check the one that is there. Raises OSError.

    The evidence is replayed, and its test is run: nobody else may have put something there, or a link in
    place of a file to be written.
    """
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    if not ownership.HAS_MODES:
        return
    status = folder.stat()
    users = ownership.folder_users(status)
    if fault := ownership.folder_fault(status, users):
        raise OSError(None, fault, str(folder))
    for path, fault in ownership.entry_faults(folder, users):
        raise OSError(None, fault, str(path))


def keep(
    folder: Path, number: int, seed: Seed, recordings: Sequence[Recording], *, replayed: bool
) -> ReportedFailure:
    """Write the files of a failure into the folder of the run. Raises OSError."""
    prepare_folder(folder)
    name = f"failure_{number:03}"
    names = f"{name}.pcap", f"{name}.json", f"test_{name}.py"
    target, failure = seed.target, seed.failure
    text = _TEST.format(
        text=_plain(failure.text),
        ids=f"Breaks {', '.join(failure.requirements)}.\n" if failure.requirements else "",
        peer=f"{target.host}:{target.port(seed.cases[0].protocol)}",
        seed=names[1],
        consent="" if target.loopback else f', consent="{target.host}"',
    )
    contents = pcap_of(recordings), f"{json.dumps(seed.to_json(), indent=1)}\n".encode(), text.encode()
    for path, content in zip(names, contents, strict=True):
        replace_file(folder / path, content, mode=_MODE)
    packets = max(1, sum(1 for case in seed.cases for step in case.steps if step.data))  # one may be empty
    return ReportedFailure(failure.requirements, failure.text, packets, *names, replayed)


def _plain(text: str) -> str:
    """Return a text that can stand in a docstring."""
    return text.encode("ascii", "backslashreplace").decode().replace("\\", "/").replace('"', "'")
