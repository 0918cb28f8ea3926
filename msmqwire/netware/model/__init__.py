"""The data of a queue service: bindery objects, queues with their jobs, files; plain values."""
