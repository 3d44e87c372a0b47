#!/bin/sh
# Tells the agent of this node that a job begins or ends here. Slurm's Prolog and Epilog call it, through
# prolog.sh and epilog.sh, as root:
#     interval.sh prolog|epilog
# It writes one small file and nothing else: no call of Slurm, no network. It never fails, because a prolog that
# fails drains the node; if it cannot write the file, the agent finds out by itself.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH LC_ALL=C
umask 022
event=$1
folder=${PEERWAY_JOBS_EVENTS:-/var/lib/peerway-jobs-agent/events}
case $event in prolog|epilog) ;; *) exit 0 ;; esac
case $SLURM_JOB_ID in ''|*[!0-9]*) exit 0 ;; esac
[ -d "$folder" ] || exit 0

wall=$(date +%s%3N)
read -r up _ </proc/uptime                    # seconds with two decimals, of CLOCK_BOOTTIME
mono=$(printf '%s' "$up" | tr -d .)0
read -r boot </proc/sys/kernel/random/boot_id

# The agent's user owns the folder and could put a link there, which root must not follow: O_EXCL creates the
# draft (set -C), and mv -T replaces a name without entering a folder.
set -C
draft=$folder/.$event.$SLURM_JOB_ID.$$
{
  printf 'job=%s\n' "$SLURM_JOB_ID"
  printf 'wall_ms=%s\n' "$wall"
  printf 'mono_ms=%s\n' "$mono"
  printf 'boot=%s\n' "$boot"
  printf 'uid=%s\n' "$SLURM_JOB_UID"
  printf 'user=%s\n' "$SLURM_JOB_USER"
  printf 'partition=%s\n' "$SLURM_JOB_PARTITION"
  printf 'restart=%s\n' "$SLURM_RESTART_COUNT"
  printf 'gpus=%s\n' "$SLURM_JOB_GPUS"
  printf 'cuda=%s\n' "$CUDA_VISIBLE_DEVICES"
  printf 'rocr=%s\n' "$ROCR_VISIBLE_DEVICES"
  printf 'exit=%s\n' "$SLURM_JOB_EXIT_CODE2"
} 2>/dev/null >"$draft" && mv -T "$draft" "$folder/$SLURM_JOB_ID.$wall.$event" 2>/dev/null
exit 0
