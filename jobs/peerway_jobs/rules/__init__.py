"""Rules: what an administrator writes, how it is read, and what it says of a job."""
