"""The options of ``msmqwire send`` that sign and encrypt."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NamedTuple

from click import BadParameter

from msmqwire.cli.captures.readings import readings_of
from msmqwire.cli.common import readable, say
from msmqwire.cli.options import Option
from msmqwire.crypto.readings import DEFAULT
from msmqwire.errors import InvalidValue
from msmqwire.qm.client.protecting import check_names
from msmqwire.qm.runtime.message_protection import CIPHERS, HASHES, VERSIONS
from msmqwire.qm.runtime.message_signers import load_signer, own_signer
from msmqwire.service.credential_files import read_file

Sign = Annotated[
    bool,
    Option("--sign", help="Sign it: with --cert and --key, or with a certificate that --data keeps."),
]
Signature = Annotated[
    str | None,
    Option(
        metavar="|".join(VERSIONS),
        help="Version of MSMQ of the signature; 2.0 by default, 3.0 to several queues.",
    ),
]
Hash = Annotated[str | None, Option("--hash", metavar="|".join(HASHES), help="Its hash; sha512 by default.")]
Cert = Annotated[Path | None, Option(metavar="FILE", help="PEM or DER: the certificate of the signer.")]
Key = Annotated[Path | None, Option(metavar="FILE", help="PEM or DER: the RSA key of that certificate.")]
Sid = Annotated[
    str | None,
    Option(
        metavar="SID",
        help="The user that the certificate is registered for; by default the user who runs this command. "
        "Without --cert, the user whose certificate in --data signs.",
    ),
]
Encrypt = Annotated[
    str | None,
    Option(metavar="|".join(CIPHERS), help="Encrypt the body, for a queue with a name PRIVATE= or PUBLIC=."),
]
PeerKey = Annotated[
    Path | None,
    Option(
        metavar="FILE",
        help="The public key of the queue's computer, as key show --public prints it there: a PUBLICKEYBLOB "
        "(also in hex), or PEM or DER. --data keeps it.",
    ),
]
Legacy = Annotated[bool, Option("--legacy", help="Allow md5, rc2 and rc4, which are broken.")]


class Protection(NamedTuple):
    """The options that protect a message."""

    sign: bool
    signature: str | None
    hash: str | None
    cert: Path | None
    key: Path | None
    sid: str | None
    encrypt: str | None
    peer_key: Path | None
    legacy: bool
    readings: list[str] | None

    def check(self, data: Path | None) -> None:
        """Raise BadParameter for options that do not go together."""
        names = ("signature", "hash", "encrypt")
        given = {name: value for name in names if (value := getattr(self, name)) is not None}
        try:
            check_names(given, legacy=self.legacy)
        except InvalidValue as exc:
            why = exc.why.replace("legacy", "--legacy")
            raise BadParameter(why, param_hint=f"--{exc.path}") from None
        for name in ("signature", "hash", "cert", "key", "sid"):
            if getattr(self, name) is not None and not self.sign:
                raise BadParameter("it needs --sign", param_hint=f"--{name}")
        if readings_of(self.readings) != DEFAULT and not self.sign:
            raise BadParameter("it needs --sign", param_hint="--reading")
        if self.peer_key is not None and self.encrypt is None:
            raise BadParameter("it needs --encrypt", param_hint="--peer-key")
        if (self.cert is None) != (self.key is None):
            raise BadParameter("--cert and --key go together")
        if self.sign and self.cert is None and data is None:
            raise BadParameter("it needs --cert and --key, or --data with a certificate of its own")

    def properties(self, data: Path | None) -> dict[str, Any]:
        """Return them as properties of a message.

        Raises NoInput, InvalidValue for the contents of files, and the subclasses of StoreError.
        """
        readable(self.cert, self.key, self.peer_key)
        readings = readings_of(self.readings)
        given: dict[str, Any] = {
            "signature": self.signature,
            "hash": self.hash,
            "encrypt": self.encrypt,
            "legacy": self.legacy or None,
        }
        if self.sign and self.cert is not None and self.key is not None:
            given["sign"] = load_signer(self.cert, self.key, self.sid, readings)
        elif self.sign and data is not None:
            given["sign"] = own_signer(data, self.sid, readings)
        if self.peer_key is not None:
            given["peer_key"] = read_file(self.peer_key)
        if self.hash == "sha1":
            say({"warning": "SHA-1 is broken: use sha256 or sha512 if the receiver knows them"})
        return {name: value for name, value in given.items() if value is not None}
