"""MSMQ for scapy: layers of the binary protocol and of ping.

Their fields are those of the schemas, and what is left None is computed when a packet is built.
"""

from __future__ import annotations

import sys
from typing import Final

import scapy.layers
from scapy.config import conf

from msmqwire.layers.bindings import bind
from msmqwire.layers.structure import LAYERS

_SCAPY_NAME: Final = "scapy.layers.msmq"
"""Where scapy's users look for layers: `explore("msmq")`, `load_layer("msmq")`."""


def _join_scapy() -> None:
    """Be a module of scapy's layers as well, with all our layers in it."""
    sys.modules.setdefault(_SCAPY_NAME, sys.modules[__name__])
    scapy.layers.msmq = sys.modules[_SCAPY_NAME]
    ours = [name for name in conf.layers.ldict if name.startswith(f"{__name__}.")]
    conf.layers.ldict[_SCAPY_NAME] = [
        cls for name in ours for cls in conf.layers.ldict.pop(name) if cls.fields_desc
    ]


bind()
_join_scapy()
globals().update({cls.__name__: cls for cls in LAYERS.values()})
__all__ = [cls.__name__ for cls in LAYERS.values()]
