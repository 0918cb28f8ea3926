"""SRMP in the simulator: its network, its observer, its invariants and its mistakes."""
