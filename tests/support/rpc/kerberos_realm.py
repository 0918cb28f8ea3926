"""A separate Kerberos realm on the loopback, by MIT Kerberos: for tests that ask for real tickets."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.running import PATIENCE_S, until

REALM = "LAB.EXAMPLE"
SERVICE = "localhost"
"""The host of the service."""
AES_SHA1, AES_SHA2, RC4 = "aes256-cts-hmac-sha1-96", "aes256-cts-hmac-sha384-192", "arcfour-hmac"

_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
_CLIENT = """
[libdefaults]
 default_realm = {realm}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
 qualify_shortname = ""
 udp_preference_limit = 1
 permitted_enctypes = {cipher} {others}
 allow_rc4 = true
[realms]
 {realm} = {{
  kdc = 127.0.0.1:{port}
 }}
[domain_realm]
 localhost = {realm}
"""
_KDC = """
[kdcdefaults]
 kdc_listen = ""
 kdc_tcp_listen = 127.0.0.1:{port}
[realms]
 {realm} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  acl_file = {folder}/acl
  supported_enctypes = {cipher}:normal
 }}
[logging]
 kdc = FILE:{folder}/kdc.log
"""


def needs_kerberos() -> None:
    """Skip the module where a program is not installed."""
    for program in ("krb5kdc", "kdb5_util", "kadmin.local", "kinit", "kvno"):
        if shutil.which(program, path=_PATH) is None:
            why = f"{program} is not installed: krb5-kdc, krb5-admin-server and krb5-user of Debian"
            pytest.skip(why, allow_module_level=True)


@dataclass(frozen=True)
class Realm:
    """A realm that runs; the environment of this process is its."""

    folder: Path

    def log_in(self, user: str, password: str) -> Path:
        """Return a cache with the tickets of a user, that for the service among them."""
        cache = self.folder / f"tickets-{user}"
        _run("kinit", "-c", str(cache), user, given=password)
        _run("kvno", "-q", "-c", str(cache), f"host/{SERVICE}")
        return cache


@contextmanager
def kerberos_realm(folder: Path, passwords: dict[str, str], *, cipher: str = AES_SHA1) -> Iterator[Realm]:
    """Run a KDC that knows users, and let this process use it: also the keytab of the service."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    values = {"realm": REALM, "folder": folder, "port": port, "cipher": cipher}
    values["others"] = AES_SHA1  # that of the database
    (folder / "krb5.conf").write_text(_CLIENT.format(**values))
    (folder / "kdc.conf").write_text(_KDC.format(**values))
    keytab = folder / "keytab"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(folder / "krb5.conf"))
        patch.setenv("KRB5_KDC_PROFILE", str(folder / "kdc.conf"))
        patch.setenv("KRB5_KTNAME", str(keytab))
        patch.setenv("KRB5CCNAME", str(folder / "no-tickets"))
        patch.setenv("KRB5RCACHENAME", f"file2:{folder}/replays")
        _run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")
        commands = [f"addprinc -pw {password} {user}" for user, password in passwords.items()]
        commands += [f"addprinc -randkey host/{SERVICE}", f"ktadd -k {keytab} -norandkey host/{SERVICE}"]
        _run("kadmin.local", "-r", REALM, given="\n".join(commands))
        kdc = subprocess.Popen(
            [_program("krb5kdc"), "-n", "-r", REALM], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            until(lambda: _answers(port), "the KDC")
            yield Realm(folder)
        finally:
            kdc.terminate()
            kdc.wait(timeout=PATIENCE_S)


def _answers(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def _program(name: str) -> str:
    found = shutil.which(name, path=_PATH)
    assert found is not None
    return found


def _run(name: str, *arguments: str, given: str = "") -> None:
    subprocess.run(
        [_program(name), *arguments],
        input=f"{given}\n",
        text=True,
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )
