"""The file of targets: which queue managers are asked, by whom, and about which further queues.

TOML, a table ``[[target]]`` each. Passwords stand in files of their own.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from msmqwire.errors import InvalidName, InvalidValue
from msmqwire.names.addresses import is_ip, without_brackets
from msmqwire.names.nearest import unknown_name
from msmqwire.names.printable import counted, cut
from msmqwire.ownership import HAS_MODES, mode_fault, trusted
from msmqwire.qm.client.managed_names import managed_queue
from msmqwire.qm.client.remote_options import credentials_of
from msmqwire.service.credential_files import FILE_SIZE_MAX, read_password

TIMEOUT_S: Final = 5.0
"""Seconds for all calls to a target, by default: less than the ten that Prometheus waits."""
TIMEOUT_MAX_S: Final = 600
TARGETS_MAX: Final = 10_000
QUEUES_MAX: Final = 10_000
"""Names that a target may list."""
_NAME_MAX: Final = 255
_PORT_MAX: Final = 0xFFFF
_HEADER: Final = re.compile(r"\s*\[\[\s*(?:target|\"target\"|'target')\s*\]\]")
_FIRST: Final = '[[target]]\nhost = "alpha"'
_SHOWN_MAX: Final = 80


@dataclass(frozen=True, slots=True)
class Target:
    r"""A queue manager that is asked.

    Attributes:
        host: its address, or a name that can be resolved.
        name: the label ``target`` of its metrics.
        rpc_port: the port of its interface; None to ask the endpoint mapper.
        auth: the protection of calls, a key of AUTH_LEVELS; None for that of the client.
        user: the caller, ``DOMAIN\name``; None for nobody.
        password: the password of the caller.
        queues: names of queues to ask about besides those that it lists.
        timeout: seconds for all calls of a scrape.
    """

    host: str
    name: str
    rpc_port: int | None = None
    auth: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    queues: tuple[str, ...] = ()
    timeout: float = TIMEOUT_S


def read_targets(path: Path) -> tuple[Target, ...]:
    """Return the targets of a file.

    Raises OSError for a file that can't be read, a file of a password too, and InvalidValue for contents and
    modes: its path is the file, with the line and the target as far as they are known.
    """
    with path.open("rb") as file:
        if HAS_MODES:  # whoever writes it sends passwords where they like
            status = os.fstat(file.fileno())
            if fault := mode_fault(path, status, trusted(status.st_uid)):
                raise InvalidValue(fault, path=str(path))
        content = file.read(FILE_SIZE_MAX + 1)
    if len(content) > FILE_SIZE_MAX:
        raise InvalidValue(f"more than {counted(FILE_SIZE_MAX, 'byte')}", path=str(path))
    return _Reader(path, content).targets()


class _Wrong(Exception):
    """A value that is not possible, of a key or, for an empty one, of the whole table."""

    def __init__(self, why: str, key: str = "") -> None:
        super().__init__(why)
        self.key = key


class _Reader:
    """Reads the content of a file, and knows the lines for errors."""

    def __init__(self, path: Path, content: bytes) -> None:
        self._path = path
        try:
            self._text = content.decode()
            self._tables = tomllib.loads(self._text)
        except UnicodeDecodeError as exc:
            raise InvalidValue("not a text in UTF-8", path=str(path), offset=exc.start) from None
        except tomllib.TOMLDecodeError as exc:
            raise InvalidValue(f"no TOML: {cut(str(exc), 200)}", path=str(path)) from None
        except RecursionError:
            raise InvalidValue("values are nested too deeply", path=str(path)) from None
        self._lines = self._text.splitlines()

    def targets(self) -> tuple[Target, ...]:
        """Return the targets. Raises as `read_targets`."""
        for key in self._tables:
            if key != "target":
                why = unknown_name(key, ["target"], "table").why
                raise self._error(why, line=self._line_of(key, 0))
        tables = self._tables.get("target", [])
        if not isinstance(tables, list) or not all(isinstance(one, dict) for one in tables):
            raise self._error(
                f"each target is a table of its own:\n{_FIRST}", line=self._line_of("target", 0)
            )
        if not tables:
            raise self._error(f"no target in it; the least is\n{_FIRST}")
        if len(tables) > TARGETS_MAX:
            raise self._error(f"more than {counted(TARGETS_MAX, 'target')}")
        headers = [number for number, line in enumerate(self._lines, 1) if _HEADER.match(line)]
        if len(headers) != len(tables):
            headers = [0] * len(tables)  # targets in another notation, which has no lines of its own
        found: dict[str, Target] = {}
        for number, (table, line) in enumerate(zip(tables, headers, strict=True), 1):
            title = f"target {number}"
            if isinstance(label := table.get("name", table.get("host")), str):
                title += f" ({cut(label, _SHOWN_MAX)})"
            try:
                target = self._target(table)
                if target.name in found:
                    why = f"another target has the name {target.name!r} too; `name` gives it one of its own"
                    raise _Wrong(why, "name" if "name" in table else "host")
            except _Wrong as exc:
                where = self._line_of(exc.key, line) if exc.key else line
                raise self._error(f"{title}: {exc}", line=where) from None
            except OSError as exc:
                why = f"{title}: {exc.filename}: {exc.strerror or exc}"
                place = self._where(self._line_of("password_file", line))
                raise OSError(exc.errno, f"{place}: {why}") from None
            found[target.name] = target
        return tuple(found.values())

    def _target(self, table: Mapping[str, Any]) -> Target:
        """Return the target of a table. Raises _Wrong, and OSError for its file."""
        for key in table:
            if key in ("password", "passwd", "secret"):
                raise _Wrong("a password stands in a file of its own, which `password_file` names", key)
            if key not in _KEYS:
                raise _Wrong(unknown_name(key, _KEYS, "key").why, key)
        if "host" not in table:
            raise _Wrong("`host` is missing")
        values = {key: _KEYS[key](key, value) for key, value in table.items()}
        host = values.pop("host")
        file = values.pop("password_file", None)
        password = None
        if file is not None:
            try:
                password = read_password(self._path.parent / file)
            except InvalidValue as exc:
                raise _Wrong(exc.why, "password_file") from None
        try:
            credentials_of(values.get("user"), password, values.get("auth"))
        except InvalidValue as exc:
            key = "password_file" if exc.path == "password" else exc.path
            why = {"password": "`user` needs `password_file`, the path of a file with the password",
                   "user": f"`{'auth' if password is None else 'password_file'}` needs `user`"}  # fmt: skip
            raise _Wrong(why.get(exc.path, f"`{key}`: {exc.why}"), key) from None
        return Target(host, values.pop("name", host), password=password, **values)

    # -- places -------------------------------------------------------------------------------------------

    def _line_of(self, key: str, header: int) -> int:
        """Return the line of a key in the table that begins after line `header`; else that line."""
        pattern = re.compile(rf"\s*\[*\s*[\"']?{re.escape(key)}[\"']?\s*[=.\]]")
        for number, line in enumerate(self._lines[header:], header + 1):
            if pattern.match(line):
                return number
            if _HEADER.match(line):
                break
        return header

    def _where(self, line: int) -> str:
        return f"{self._path}, line {line}" if line else str(self._path)

    def _error(self, why: str, line: int = 0) -> InvalidValue:
        return InvalidValue(why, path=self._where(line))


# -- values -----------------------------------------------------------------------------------------------


def _shown(value: object) -> str:
    return cut(repr(value), _SHOWN_MAX)


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _Wrong(f"`{key}` is {_shown(value)}, not a text in quotes", key)
    if not value or not value.isprintable() or len(value) > _NAME_MAX:
        raise _Wrong(f"`{key}` is {_shown(value)}, not 1 to {_NAME_MAX} printable characters", key)
    return value


def _host(key: str, value: Any) -> str:
    host = without_brackets(_text(key, value))
    if ":" in host and not is_ip(host):
        raise _Wrong(f"`host` is {_shown(value)}: without a port, which `rpc_port` has", key)
    if not is_ip(host) and set(host) & set(" \\/@[]"):
        raise _Wrong(f"`host` is {_shown(value)}, neither the name of a computer nor an address", key)
    return host


def _port(key: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _PORT_MAX:
        raise _Wrong(f"`{key}` is {_shown(value)}, not a number of 1 to {_PORT_MAX}", key)
    return value


def _seconds(key: str, value: Any) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not number or not 0 < value <= TIMEOUT_MAX_S:
        raise _Wrong(
            f"`{key}` is {_shown(value)}, not a number of seconds, more than 0 to {TIMEOUT_MAX_S}", key
        )
    return float(value)


def _queues(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _Wrong(f"`{key}` is {_shown(value)}, not a list of names in brackets", key)
    if len(value) > QUEUES_MAX:
        raise _Wrong(f"`{key}` has more than {counted(QUEUES_MAX, 'name')}", key)
    for name in value:
        if not isinstance(name, str):
            raise _Wrong(f"`{key}` has {_shown(name)}, which is no text in quotes", key)
        _check_queue(key, name)
    return tuple(value)


def _check_queue(key: str, name: str) -> None:
    try:
        managed_queue(name)
    except InvalidName as exc:
        why = f"{_shown(name)} is no name of a queue, as 'private$\\orders': {exc.why}"
        raise _Wrong(f"`{key}`: {why}", key) from None


_KEYS: Final[Mapping[str, Callable[[str, Any], Any]]] = {
    "host": _host,
    "name": _text,
    "rpc_port": _port,
    "auth": _text,
    "user": _text,
    "password_file": _text,
    "queues": _queues,
    "timeout": _seconds,
}
"""The keys of a target, each with the reader of its value."""
