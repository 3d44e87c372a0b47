"""Acts on jobs whose GPUs have been idle for long: warns, holds an account's new jobs, or cancels. Nothing is
done unless the server is given policies.

settings.py   reads and checks the file of policies
evidence.py   whether all GPUs of a job are idle, with the figures; "no data" if anything is missing
decide.py     what a policy does about a job now
texts.py      the mails to owners
slurm.py      holds, releases and cancels
consider.py   which jobs a policy looks at, and what it decides about each
holds.py      which waiting jobs to hold and to release
enforce.py    the round: acts within the limits, and records each act
"""
