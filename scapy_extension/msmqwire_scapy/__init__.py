"""The layers of msmqwire as an extension of scapy: `conf.exts.load("msmqwire-scapy")`."""

# SPDX-License-Identifier: GPL-2.0-only

from pathlib import Path
from typing import Any

__version__ = "0.1.0"


def scapy_ext(extension: Any) -> None:
    """Tell scapy of the module `scapy.layers.msmq`, which it imports when it is first used."""
    extension.config("MSMQ", __version__)
    extension.register(
        name="msmq",
        mode=extension.MODE.LAYERS,
        path=Path(__file__).parent / "msmq.py",
        default=False,
    )
