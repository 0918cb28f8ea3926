"""``msmqwire key create | import | list | show``: the RSA keys of a queue manager."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated
from uuid import UUID

from click import BadParameter

from msmqwire.cli.common import readable
from msmqwire.cli.errors import run_reporting_errors
from msmqwire.cli.folder_keys import AsJson, Data, key_file, show_rows, tell_server
from msmqwire.cli.options import Argument, Group, Option
from msmqwire.constants import CryptographicProvider, KeyAlgorithm
from msmqwire.names.nearest import unknown_name
from msmqwire.qm.runtime.folder_security import private_key_of
from msmqwire.qm.runtime.key_ring import PROVIDERS, SHORT_NAMES, KeyUse
from msmqwire.qm.runtime.key_rows import key_row, key_rows
from msmqwire.qm.runtime.new_keys import BITS, BITS_MAX, BITS_MIN, new_key, own_keys
from msmqwire.qm.runtime.peer_keys import read_peer_keys
from msmqwire.service.credential_files import read_file, read_private

app = Group("key", "Administer the keys of a queue manager.")

Providers = Annotated[
    list[str] | None,
    Option(
        "--provider",
        metavar="|".join(PROVIDERS),
        help="Cryptographic provider, more than once for several; all three by default.",
    ),
]
_KINDS = {KeyUse.EXCHANGE: KeyAlgorithm.CALG_RSA_KEYX, KeyUse.SIGNATURE: KeyAlgorithm.CALG_RSA_SIGN}


def _providers(names: list[str] | None) -> list[CryptographicProvider]:
    """Raises BadParameter."""
    for name in names or ():
        if name not in PROVIDERS:
            wrong = unknown_name(name, PROVIDERS, "provider")
            raise BadParameter(wrong.why, param_hint="--provider")
    return [PROVIDERS[name] for name in dict.fromkeys(names or PROVIDERS)]


@app.command("create")
def create(
    data: Data,
    bits: Annotated[int, Option(min=BITS_MIN, max=BITS_MAX, help="Length of the keys.")] = BITS,
    provider: Providers = None,
    as_json: AsJson = False,
) -> None:
    """Make a key to encrypt messages for this queue manager, and one for its signatures.

    Senders get the new keys from now on; bodies encrypted with earlier keys are still decrypted. A running
    server uses them at once.
    """
    chosen = _providers(provider)

    def run() -> None:
        file, now = key_file(data, create=True), int(time.time())
        keys = [own for use in KeyUse for own in own_keys(new_key(bits), use, chosen, now)]
        file.change(lambda ring: ring.with_keys(keys))
        tell_server(data)
        show_rows([key_row(own, current=True) for own in keys], as_json)

    run_reporting_errors(run)


@app.command("import")
def import_(
    file: Annotated[Path, Argument(metavar="FILE", help="The key: PEM or DER, not encrypted.")],
    data: Data,
    use: Annotated[KeyUse, Option(help="Purpose of the key.")] = KeyUse.EXCHANGE,
    provider: Providers = None,
    peer: Annotated[
        UUID | None,
        Option(
            metavar="GUID",
            help="FILE has the public key of this queue manager, to encrypt for it, as key show --public "
            "prints it there: a PUBLICKEYBLOB (also in hex), or PEM or DER.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Take over a private key for this queue manager, or the public one of another queue manager."""
    chosen = _providers(provider)
    if peer is not None and (provider or use is not KeyUse.EXCHANGE):
        raise BadParameter("--peer does not go together with --provider and --use")

    def run() -> None:
        readable(file)
        if peer is not None:
            keys = read_peer_keys(read_file(file))
            ring = key_file(data, create=True).change(lambda ring: ring.with_peer(peer, keys))
            rows = [row for row in key_rows(ring) if row["peer"] == str(peer)]
        else:
            own = own_keys(private_key_of(read_private(file)), use, chosen, int(time.time()))
            key_file(data, create=True).change(lambda ring: ring.with_keys(own))
            rows = [key_row(key, current=True) for key in own]
        tell_server(data)
        show_rows(rows, as_json)

    run_reporting_errors(run)


@app.command("list")
def list_(data: Data, as_json: AsJson = False) -> None:
    """List the keys of this queue manager, newest first, and those that it knows of other queue managers."""
    run_reporting_errors(lambda: show_rows(key_rows(key_file(data).read()), as_json))


@app.command("show")
def show(
    data: Data,
    public: Annotated[
        bool, Option("--public", help="The public parts; private keys are never shown.")
    ] = False,
) -> None:
    """Print the public keys for other queue managers, one a line: provider, use, PUBLICKEYBLOB in hex.

    Another queue manager encrypts for this one with them: send --peer-key FILE, key import --peer GUID FILE.
    """
    if not public:
        raise BadParameter("private keys are not shown", param_hint="--public")

    def run() -> None:
        from msmqwire.crypto.keys import public_key_blob

        seen = set()
        for own in key_file(data).read().keys:
            if (own.provider, own.use) not in seen:
                seen.add((own.provider, own.use))
                blob = public_key_blob(private_key_of(own.private_key), _KINDS[own.use])
                print(SHORT_NAMES[own.provider], own.use.value, blob.hex())

    run_reporting_errors(run)
