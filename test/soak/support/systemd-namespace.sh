#!/bin/bash
# First process of namespaces of its own: shows systemd the machine with folders of its own over those that it writes to, and becomes systemd.
# Arguments: the checkout, the program of Node.js, the folder with the unit and the configuration.
set -e
root=$1 node=$2 folder=$3
mount --make-rprivate /
for place in /run /var/lib /opt; do mount -t tmpfs tmpfs "$place"; done
mkdir -p /run/lock /run/over/etc /run/over/work /opt/millrace
mount -t overlay overlay -o lowerdir=/etc,upperdir=/run/over/etc,workdir=/run/over/work /etc
mount -t tmpfs tmpfs /etc/systemd/system
mount -t tmpfs tmpfs /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
mount --bind "$root" /opt/millrace
touch /opt/node
mount --bind "$node" /opt/node
mkdir -p /etc/millrace
cp "$folder/Server.xml" /etc/millrace/
chmod 644 /etc/millrace/Server.xml
cp "$folder/millrace.service" "$folder/trial.target" /etc/systemd/system/
grep -q '^millrace:' /etc/passwd || useradd --system --home-dir /var/lib/millrace --shell /usr/sbin/nologin millrace
ip link set lo up
export container=millrace-test
exec /lib/systemd/systemd --system --unit=trial.target --show-status=no
