"""NCP, as queue services use it: requests, replies, and the structures of jobs in them."""
