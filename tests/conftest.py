"""What all tests share: the marker ``requirement`` and the Hypothesis profiles.

MSMQWIRE_HYPOTHESIS chooses the profile: ``ci`` (the default; the same examples every time) or ``nightly``,
which goes looking for new ones.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.paths import EXAMPLES
from tests.support.patience import limit

pytest_plugins = ["tests.support.heap", "tests.support.requirements_plugin", "tests.support.short_ids"]


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Scale the limit of each test, before pytest-timeout reads it; workers of pytest-xdist are given it.

    Files of tests are their owner's alone, as keys and passwords have to be; Git keeps no such mode.
    """
    os.umask(0o077)
    for key in (EXAMPLES / "keys").glob("*.pem"):
        key.chmod(0o600)
    if hasattr(config, "workerinput"):
        return
    seconds = config.option.timeout
    if seconds is None:  # 0 is none at all, as for a debugger
        seconds = os.environ.get("PYTEST_TIMEOUT") or config.getini("timeout")
    config.option.timeout = limit(float(seconds))


settings.register_profile(
    "ci",
    max_examples=15,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],  # a loaded machine proves nothing
)
settings.register_profile(
    "nightly",
    max_examples=1_000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("MSMQWIRE_HYPOTHESIS", "ci"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage, which takes a third of the time: what is made here stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
