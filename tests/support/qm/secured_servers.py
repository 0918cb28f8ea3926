"""Two servers of this process that sign and encrypt, set up by the public commands."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msmqwire.qm.runtime.addresses import AddressOverrides
from msmqwire.qm.runtime.key_ring import KeyFile
from msmqwire.qm.runtime.rpc.network import RpcOptions
from msmqwire.qm.runtime.server import SETTINGS
from msmqwire.rpc.constants import AuthLevel
from tests.support.running import ORDERS, PATIENCE_S, InThread, Run, called, options, served

BITS = ("--bits", "1024")
"""The shortest keys that are made, because they are made soon."""
SID = "S-1-5-21-1-2-3-1001"
OPEN = {"send_insecure_nacks": True}


@dataclass
class Pair:
    """The server `here`, with a user who has a certificate, sends to `there`, with keys.

    Attributes:
        here, there: the servers.
        to: the format name of the queue ``orders`` there.
        host: the option with the address of `there`.
        peer_key: a file with the public keys of `there`.
        cert, key: files with a certificate that is registered there for `SID`, and its key.
    """

    here: InThread
    there: InThread
    to: str
    host: str
    peer_key: Path
    cert: Path
    key: Path

    def send(self, *arguments: str | Path, to: str = "") -> Run:
        """Send through the server here."""
        return called("send", to or self.to, "--data", self.here.data, *arguments)

    def send_directly(self, *arguments: str | Path, to: str = "") -> Run:
        """Send without a server."""
        return called("send", to or self.to, "--host", self.host, "--timeout", str(PATIENCE_S), *arguments)

    def sent(self, *arguments: str | Path, to: str = "") -> None:
        """Send through the server here, which must succeed."""
        assert self.send(*arguments, to=to).one["identifier"]

    def sent_directly(self, *arguments: str | Path, to: str = "") -> None:
        """Send without a server, which must succeed."""
        assert self.send_directly(*arguments, to=to).one["identifier"]

    @property
    def hosts(self) -> dict[str, tuple[str, int | None]]:
        """The address of `there`, for `msmqwire.connect`."""
        return {self.to.removeprefix("PRIVATE=").partition("\\")[0]: (self.there.address, self.there.port)}

    @property
    def signing(self) -> tuple[str | Path, ...]:
        """Options to sign without a server."""
        return "--sign", "--cert", self.cert, "--key", self.key, "--sid", SID

    def received(self, queue: str = ORDERS) -> dict[str, Any]:
        """The next message of a queue there."""
        message: dict[str, Any] = called(
            "receive", queue, "--data", self.there.data, "--timeout", str(PATIENCE_S)
        ).one
        return message


def done(*arguments: str | Path) -> dict[str, Any]:
    """The only line of a command, which must succeed."""
    line: dict[str, Any] = called(*arguments).one
    return line


def protection(message: dict[str, Any]) -> tuple[bytes, bool, str | None, str | None]:
    """The body, and the protection of a message in JSON."""
    body = b64decode(message["body"])
    return body, message["authenticated"], message["signature"], message["encrypted"]


def identifier_of(data: Path, queue: str = ORDERS) -> tuple[str, str]:
    """The format name of a queue, and the identifier of its queue manager."""
    name = called("queue", "show", queue, "--data", data).one["format_name"]
    return name, name.removeprefix("PRIVATE=").partition("\\")[0]


def certificate_of(data: Path, folder: Path) -> tuple[Path, Path]:
    """A certificate for `SID` that a folder has made, and its key, in files."""
    done("cert", "create", "--data", data, "--sid", SID, *BITS)
    own = KeyFile(data).read().certificates[0]
    cert, key = folder / "user.der", folder / "user.pem"
    cert.write_bytes(own.certificate)
    key.write_bytes(own.private_key)
    return cert, key


@contextmanager
def secured_pair(folder: Path, **settings: Any) -> Iterator[Pair]:
    """Run two servers; `settings` are the receiver's."""
    here, there, peer_key = folder / "here", folder / "there", folder / "there.pub"
    called("key", "create", "--data", there, *BITS)
    peer_key.write_text(called("key", "show", "--public", "--data", there).out)
    cert, key = certificate_of(here, folder)
    called("cert", "register", "--cert", cert, "--sid", SID, "--data", there)
    receiving = options(
        there, ORDERS, name="there", address="127.0.0.33", settings=replace(SETTINGS, **OPEN | settings),
        rpc=RpcOptions(("127.0.0.33", 0), level=AuthLevel.NONE),
    )  # fmt: skip
    with served(receiving) as second:
        to, identifier = identifier_of(there)
        hosts = {identifier: (second.address, second.port)}
        sending = options(here, ORDERS, name="here", overrides=AddressOverrides(hosts=hosts))
        with served(sending) as first:
            host = f"{identifier}={second.address}:{second.port}"
            yield Pair(first, second, to, host, peer_key, cert, key)
