"""Tests of peers in remote read, [MS-MQRR] over DCE/RPC."""
