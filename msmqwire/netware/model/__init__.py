"""What a queue service knows: bindery objects, queues with their jobs, files; plain values."""
