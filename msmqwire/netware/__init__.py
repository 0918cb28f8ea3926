"""The bytes of NetWare Core Protocol (NCP) and of its queue services."""
