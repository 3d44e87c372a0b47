#!/bin/sh
# slurm.conf: MailProg=/path/to/this/mail.sh    (docs/jobs/slurm.md)
# Slurm calls it as SlurmUser with -s SUBJECT ADDRESS. It returns at once, so that slurmctld waits for nothing, and
# sends the mail in the background.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH LC_ALL=C.UTF-8
settings=${PEERWAY_JOBS_MAIL_SETTINGS:-/etc/peerway/jobs-mail.toml}
peerway=${PEERWAY_JOBS_PROGRAM:-${0%/lib/python*}/bin/peerway}

if [ "$PEERWAY_JOBS_MAIL" != background ]; then
  PEERWAY_JOBS_MAIL=background setsid "$0" "$@" </dev/null >/dev/null 2>&1 &
  exit 0
fi
cd / || exit
"$peerway" jobs slurm-mail --settings "$settings" "$@" 2>&1 | logger -t peerway-jobs-mail
