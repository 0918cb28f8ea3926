"""Definitions: queues, policies, certificates, hosts, routes and settings of a folder as one JSON object."""
