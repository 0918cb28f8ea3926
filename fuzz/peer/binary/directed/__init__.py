"""The cases of the binary protocol that each test one thing, by subject."""
