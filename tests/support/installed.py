"""Programs that some tests hold this project against."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
from typing import Any

import pytest


def installed(name: str) -> str:
    """Return the path of a program; without it the module that asks is skipped, except in CI."""
    path = shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    if path is None and os.environ.get("CI") != "true":
        pytest.skip(f"{name} is not installed", allow_module_level=True)
    assert path is not None, f"{name} is not installed"
    return path


def library(name: str) -> Any:
    """Return a library of an extra; without it the test that asks is skipped, except in CI."""
    if importlib.util.find_spec(name.partition(".")[0]) is None and os.environ.get("CI") != "true":
        pytest.skip(f"{name} is not installed")
    return importlib.import_module(name)
