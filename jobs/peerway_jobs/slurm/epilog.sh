#!/bin/sh
# slurm.conf: Epilog=/path/to/this/epilog.sh    (docs/jobs/install.md)
exec /bin/sh "${0%/*}/interval.sh" epilog
