"""The service on the network and on disk: sockets, clock, signals, and what performs calls durably."""
