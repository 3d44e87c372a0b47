#!/bin/sh
# slurm.conf: Prolog=/path/to/this/prolog.sh    (docs/jobs/install.md)
exec /bin/sh "${0%/*}/interval.sh" prolog
