"""The rules of the bindery and of queues: who may do what, and what it changes."""
