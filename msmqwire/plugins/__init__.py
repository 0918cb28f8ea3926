"""Plugins for other tools: layers of scapy, a dissector of Wireshark."""
