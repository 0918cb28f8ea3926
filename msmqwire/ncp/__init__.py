"""NCP for queue services: requests, replies, and the structures of jobs in them."""
