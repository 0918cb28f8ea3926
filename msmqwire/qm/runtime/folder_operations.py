"""Requests about the folder of a queue manager: its keys, its definitions, and the options that it keeps."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from msmqwire.constants import HResult
from msmqwire.durable import UNFOLLOWED
from msmqwire.errors import InvalidValue, QueueError, StoreError
from msmqwire.qm.runtime.definitions import importing, key_definitions
from msmqwire.qm.runtime.definitions.changes import Plan
from msmqwire.qm.runtime.definitions.importing import FolderKeys
from msmqwire.qm.runtime.definitions.text import (
    SIZE_MAX,
    VERSION,
    VERSION_NAME,
    check_size,
    parse_definitions,
)
from msmqwire.qm.runtime.engine_driver import EngineDriver
from msmqwire.qm.runtime.folder_security import FolderSecurity
from msmqwire.qm.runtime.kept_options import KeptOptions
from msmqwire.qm.runtime.message_json import flag
from msmqwire.qm.runtime.peer_keys import peer_keys_from

Request = Mapping[str, Any]
Answer = dict[str, Any]
IMPORT_FILE: Final = "definitions.import"
"""The file in the folder with definitions too large for a request."""


class FolderOperations:
    """The operations on the folder of one queue manager."""

    def __init__(self, driver: EngineDriver) -> None:
        self._driver, self._core = driver, driver.core

    def by_name(self) -> dict[str, Callable[[Request], Awaitable[Answer]]]:
        """Return the operations by name."""
        return {
            "refresh_keys": self._refresh_keys,
            "keep_peer_keys": self._keep_peer_keys,
            "definitions_export": self._export,
            "definitions_import": self._import,
            "options_kept": self._options,
            "options_forget": self._forget,
        }

    async def _refresh_keys(self, request: Request) -> Answer:
        """Use the keys and users that a command has changed in the folder."""
        return self._use_keys(lambda security: security.read_again())

    async def _keep_peer_keys(self, request: Request) -> Answer:
        """Encrypt for another queue manager with the given public keys, and keep them."""
        identifier, keys = peer_keys_from(request)
        return self._use_keys(lambda security: security.keep_peer_keys(identifier, keys))

    def _use_keys(self, read: Callable[[FolderSecurity], None]) -> Answer:
        security = self._driver.security
        if security is None:
            raise QueueError("there is no folder for its keys", HResult.MQ_ERROR_INVALID_PARAMETER)
        try:
            read(security)
        except StoreError as exc:
            raise QueueError(str(exc), HResult.MQ_ERROR_INSUFFICIENT_RESOURCES) from None
        self._driver.call(security.use, self._core)
        return {}

    # -- definitions --------------------------------------------------------------------------------------

    @property
    def _folder(self) -> Path | None:
        security = self._driver.security
        return None if security is None else security.folder

    async def _export(self, request: Request) -> Answer:
        """Return the definitions; with private keys only if ``secrets``."""
        secrets = flag(request.get("secrets", False), "secrets")
        driver, keys = self._driver, await self._keys()
        found = driver.read(lambda: importing.exported(self._core, keys, driver.kept, secrets=secrets))
        return {"definitions": found}

    async def _keys(self) -> FolderKeys:
        """Read the keys and certificates of the folder. Raises QueueError."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(None, FolderKeys.read, self._folder)
        except StoreError as exc:
            raise QueueError(str(exc), HResult.MQ_ERROR_INSUFFICIENT_RESOURCES) from None

    async def _import(self, request: Request) -> Answer:
        """Import definitions all or nothing; return the changes, which ``dry_run`` only finds."""
        dry_run = flag(request.get("dry_run", False), "dry_run")
        definitions = await self._definitions(request)
        driver, core, folder = self._driver, self._core, self._folder
        async with driver.importing:
            if driver.noted_import and folder is not None and not dry_run:
                await self._apply_secrets(driver.noted_import, folder)  # its note would be replaced
            keys = await self._keys()
            if dry_run:
                plan = driver.read(lambda: importing.planned(core, keys, driver.kept, definitions))
                return {"changes": [change.to_json() for change in plan.changes]}

            def run() -> Plan:
                found = importing.planned(core, keys, driver.kept, definitions)
                if found.secrets and folder is None:
                    raise InvalidValue("there is no folder for it", path=next(iter(found.secrets)))
                importing.apply(found)
                return found

            plan = driver.call(run)
            driver.kept = plan.options
            await driver.durable()
            if plan.secrets and folder is not None:
                driver.noted_import = plan.secrets
                await self._apply_secrets(plan.secrets, folder)
        return {"changes": [change.to_json() for change in plan.changes]}

    async def _apply_secrets(self, noted: Mapping[str, Any], folder: Path) -> None:
        """Change keys and directory as the commit has noted. Raises QueueError; the note stays then."""
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(None, key_definitions.apply_secrets, noted, folder)
        except StoreError as exc:
            why = f"keys and certificates are imported at the next start, all else is done: {exc}"
            raise QueueError(why, HResult.MQ_ERROR_INSUFFICIENT_RESOURCES) from None
        self._use_keys(lambda security: security.read_again())
        self._driver.noted_import = {}
        self._driver.call(importing.finished, self._core)
        await self._driver.durable()

    async def _definitions(self, request: Request) -> Mapping[str, Any]:
        """Return the definitions of a request, or of the file in the folder."""
        if request.get("file") is None:
            found = request.get("definitions")
            if not isinstance(found, dict):
                raise InvalidValue("not an object", path="definitions")
            return found
        folder = self._folder
        if not flag(request["file"], "file") or folder is None:
            raise InvalidValue("there is no folder with a file of definitions", path="file")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, _of_file, folder / IMPORT_FILE)

    # -- options ------------------------------------------------------------------------------------------

    async def _options(self, request: Request) -> Answer:
        """Return the hosts and settings that the folder keeps; those of [MS-MQQB] 3.1.1.3 as ``kept``."""
        kept = self._driver.kept
        return {
            "hosts": {name: list(host) for name, host in kept.hosts.items()},
            "settings": dict(kept.settings),
            "kept": self._core.kept_settings.given,
        }

    async def _forget(self, request: Request) -> Answer:
        """Forget a host, route or setting that the folder keeps."""
        name, driver = request.get("name"), self._driver
        async with driver.importing:
            hosts, settings = dict(driver.kept.hosts), dict(driver.kept.settings)
            if not isinstance(name, str) or (name.lower() not in hosts and name not in settings):
                why = f"{name!r:.100}: the folder keeps no host, route or setting of this name"
                raise QueueError(why, HResult.MQ_ERROR_PROPERTY)
            hosts.pop(name.lower(), None)
            settings.pop(name, None)
            kept = KeptOptions(hosts, settings)
            driver.call(importing.keep, self._core, kept)
            driver.kept = kept
            await driver.durable()
        return {"name": name}


def _of_file(path: Path) -> dict[str, Any]:
    """Return the definitions in a file of the folder, and remove it. Raises InvalidValue."""
    try:
        descriptor = os.open(path, os.O_RDONLY | UNFOLLOWED)
    except OSError as exc:
        raise InvalidValue(f"{path.name}: {exc.strerror or exc}", path="file") from None
    with open(descriptor, "rb") as file:
        path.unlink(missing_ok=True)
        check_size(os.fstat(file.fileno()).st_size)
        return parse_definitions(file.read(SIZE_MAX + 1))


def settings_definitions(settings: Mapping[str, Any], hosts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return definitions of settings, by name, and of hosts and routes."""
    from msmqwire.qm.runtime.kept_options import is_route

    return {
        VERSION_NAME: VERSION,
        "settings": [{"name": name, "value": value} for name, value in settings.items()],
        "hosts": [host for host in hosts if not is_route(host["name"])],
        "routes": [host for host in hosts if is_route(host["name"])],
    }
