"""The bytes of NetWare's queue services: NCP requests and replies, and the structures of jobs in them."""
