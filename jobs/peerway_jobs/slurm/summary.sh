#!/bin/sh
# Writes a job's summary to SLURM_JOB_WORK_DIR/slurm-JOBID.summary, beside its output, once its final verdict is
# there. Slurm's Epilog calls it as root, after epilog.sh; it continues in the background. Only the job's first
# node writes.
#
# One process asks the server with the token of this node's agent, as the agent's user. Another process gets only
# that output (no token, no environment) and writes it as the job's user. So a link or a pipe in the user's folder
# cannot mislead root.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH LC_ALL=C
settings=${PEERWAY_JOBS_SETTINGS:-/etc/peerway/jobs-agent.toml}
peerway=${PEERWAY_JOBS_PROGRAM:-${0%/lib/python*}/bin/peerway}
case $SLURM_JOB_ID$SLURM_JOB_UID in ''|*[!0-9]*) exit 0 ;; esac
[ -n "$SLURM_JOB_WORK_DIR" ] && [ "$SLURM_JOB_UID" -gt 0 ] || exit 0

if [ "$1" != write ]; then
  # Slurm waits until nobody holds the epilog's output open, and then kills the rest of its process group. So this
  # waits until the background process has left the group: the pipe read here ends when that process closes it.
  : "$(setsid sh -c 'exec >/dev/null 2>&1; "$0" write 2>&1 | logger -t peerway-jobs-summary' "$0" </dev/null 2>&1 &)"
  exit 0
fi

umask 077
cd / || exit
text=$("$peerway" jobs summary "$SLURM_JOB_ID" --agent "$settings" --wait "${PEERWAY_JOBS_WAIT:-10m}") || exit
[ -n "$text" ] || exit 0
group=${SLURM_JOB_GID:-$(id -g "$SLURM_JOB_UID")}
printf '\n%s\n' "$text" |
  env -i PATH="$PATH" setpriv --reuid="$SLURM_JOB_UID" --regid="$group" --clear-groups --no-new-privs \
    timeout 60 dd of="$SLURM_JOB_WORK_DIR/slurm-$SLURM_JOB_ID.summary" \
    oflag=append,nofollow,nonblock conv=notrunc status=none
