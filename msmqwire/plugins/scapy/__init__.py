"""MSMQ for scapy: the binary protocol, ping, SRMP over HTTP and PGM, remote read; and NetWare's queues.

``from msmqwire.plugins.scapy import *`` makes and binds them. Their fields come from the declarations shared
by all of msmqwire; fields left None are computed when a packet is built. scapy's own list has them as the
module ``scapy.layers.msmq``.
"""

from __future__ import annotations

import sys
from typing import Final

from msmqwire.extras import importing

with importing():
    import scapy.layers
    from scapy.config import conf

from msmqwire.plugins.scapy.bindings import bind
from msmqwire.plugins.scapy.structure import Structure

_SCAPY_NAME: Final = "scapy.layers.msmq"
"""The names that `explore("msmq")` and `load_layer("msmq")` of scapy look up."""


def _join_scapy() -> None:
    """Register as one of scapy's modules of layers, with all layers of this package."""
    sys.modules.setdefault(_SCAPY_NAME, sys.modules[__name__])
    scapy.layers.msmq = sys.modules[_SCAPY_NAME]
    ours = sorted(name for name in conf.layers.ldict if name.startswith(f"{__name__}."))
    layers = [cls for name in ours for cls in conf.layers.ldict.pop(name) if cls is not Structure]
    conf.layers.ldict[_SCAPY_NAME] = layers
    conf.layers.remove(Structure)


bind()
_join_scapy()
globals().update({cls.__name__: cls for cls in conf.layers.ldict[_SCAPY_NAME]})
__all__ = [cls.__name__ for cls in conf.layers.ldict[_SCAPY_NAME]]
