"""Coverage-guided fuzzing of the readers of msmqwire with atheris: ``python -m fuzz.readers``.

A target is a function over bytes that checks their invariants, and raises AssertionError if one does not
hold; any other exception is a finding too. Targets need no atheris: a kept input is replayed by calling the
function.
"""
