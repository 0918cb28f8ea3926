"""Hypothesis strategies for the packets of PGM."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import hypothesis.strategies as st

from msmqwire.pgm import (
    Data,
    Nak,
    Nla,
    Opaque,
    OptFin,
    OptFragment,
    OptJoin,
    OptNakList,
    OptRst,
    OptSyn,
    PgmPacket,
    PgmType,
    Poll,
    Polr,
    Spm,
    UnknownOption,
)
from msmqwire.pgm.values import BODIES

octet, half, word = st.integers(0, 0xFF), st.integers(0, 0xFFFF), st.integers(0, 2**32 - 1)
nlas = st.builds(
    Nla, st.one_of(st.builds(IPv4Address, word), st.builds(IPv6Address, st.integers(0, 2**128 - 1))), half
)
bodies = {
    Spm: st.builds(Spm, word, word, word, nlas),
    Data: st.builds(Data, word, word),
    Nak: st.builds(Nak, word, nlas, nlas),
    Poll: st.builds(Poll, word, half, half, nlas, word, word, word),
    Polr: st.builds(Polr, word, half, half),
}
extended = {"Reserved": octet, "U": octet}
options = st.lists(
    st.one_of(
        st.builds(OptFragment, word, word, word, **extended),
        st.builds(OptNakList, st.lists(word, max_size=62).map(tuple), **extended),
        st.builds(OptJoin, word, **extended),
        *(st.builds(kind, **extended) for kind in (OptSyn, OptFin, OptRst)),
        st.builds(UnknownOption, st.sampled_from([4, 7, 0x7F]), st.binary(min_size=2, max_size=253)),
    ),
    max_size=5,
).map(tuple)


@st.composite
def packets(draw: st.DrawFn) -> PgmPacket:
    kind = draw(st.one_of(st.sampled_from(list(PgmType)), octet))
    common = (kind, draw(half), draw(half), draw(st.binary(min_size=6, max_size=6)))
    if kind not in BODIES:
        return PgmPacket(*common, Opaque(draw(st.binary(max_size=50))), TSDULength=draw(half))
    return PgmPacket(*common, draw(bodies[BODIES[kind]]), draw(options), draw(st.binary(max_size=50)))
