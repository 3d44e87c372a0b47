# Process 1 of a virtual host. In the environment: NAME, FOLDER (the cluster's), CGROUPS (controllers to give it its
# own part of, may be empty), CGROUP (the part's name), TREE (Peerway's, which the agents run from), ROOT (where the
# copy's own root is mounted; empty: hosts have this machine's).
set -eu
mount --make-rprivate /
if [ -n "$ROOT" ]; then  # a root of the copy's own, over this machine's
  for each in dev proc sys; do mount --rbind "/$each" "$ROOT/$each"; done
  mkdir -p "$ROOT$TREE"
  mount --rbind "$TREE" "$ROOT$TREE"
  cd "$ROOT"
  mkdir -p .before
  pivot_root . .before
  umount -l /.before
  cd /
fi
hostname "$NAME"
mount -t proc proc /proc
mount -t tmpfs tmpfs /dev/shm
# Its own /sys, so that /sys/class/net is this host's. slurmd needs /sys/fs/cgroup, so that is moved across.
own=$FOLDER/nodes/$NAME
mkdir -p "$own/cgroup" "$own/tmp" "$FOLDER/spool/$NAME"
chmod 1777 "$own/tmp"
mount --rbind /sys/fs/cgroup "$own/cgroup"
mount -t sysfs sysfs /sys
mount --move "$own/cgroup" /sys/fs/cgroup
for controller in $CGROUPS; do
  mkdir -p "/sys/fs/cgroup/$controller/$CGROUP/$NAME"
  mount --bind "/sys/fs/cgroup/$controller/$CGROUP/$NAME" "/sys/fs/cgroup/$controller"
done
for file in passwd group; do mount --bind "$FOLDER/$file" "/etc/$file"; done
# Its own /tmp, as PMIx needs; the cluster's folder stays where it is, and so does the tree.
mount --bind "$FOLDER" /mnt
mount --bind "$TREE" /media
mount --bind "$own/tmp" /tmp
mkdir -p "$FOLDER" "$TREE"
mount --move /mnt "$FOLDER"
mount --move /media "$TREE"
touch "$own/ready"
# As init does, reap what is left by others, for ever.
trap : CHLD
while :; do sleep 1000 & wait || :; done
