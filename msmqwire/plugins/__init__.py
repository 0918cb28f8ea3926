"""Plugins that make other tools understand the protocols: layers of scapy, a dissector of Wireshark."""
