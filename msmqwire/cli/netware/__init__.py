"""The commands of NetWare's queue services."""
