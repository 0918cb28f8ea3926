"""Exact reassembly by shuffle: segments brought together by flow, and put together to packets."""
