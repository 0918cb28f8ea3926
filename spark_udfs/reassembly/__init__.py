"""Exact reassembly by shuffle: segments are shuffled by flow and reassembled to packets."""
