#!/usr/bin/env bash
# Drives of a known speed, made of loop devices and the kernel's block I/O throttle (cgroup v1), so
# that a benchmark on any machine has a bound to be compared with.
#
# How it is made to be true: the backing file is written in full first, since a first write to
# blocks that are only reserved costs the file system below a journal commit; the loop device does
# direct I/O, so that the page cache below does not answer; ext4 lies on it without a journal of its
# own, whose writes would be charged too. The throttle charges a group's own bucket, so the measured
# program runs in the group (`run`); the same limit stands on the root group for these devices, so
# that writeback by kernel threads does not go around it.
set -euo pipefail

usage() {
  cat <<'HELP'
throttled_devices.sh up DIR COUNT RATE [SIZE]   make DIR/dev0 .. DIR/dev(COUNT-1)
throttled_devices.sh limit DIR RATE             change the limit of all of them
throttled_devices.sh run DIR COMMAND...         run a command whose I/O is held to the limit
throttled_devices.sh down DIR                   unmount and delete all that `up` made

Each DIR/devN is a mounted ext4 file system on a loop device of its own, held to RATE megabytes
(10^6 bytes) a second for reads and, separately, for writes; 0 is no limit. READ:WRITE gives them
apart. SIZE is that of a device in MiB (default 1024). Needs root, loop devices and a cgroup v1
blkio hierarchy. If `up` fails, or is interrupted, it takes back what it had made.

Example:
  throttled_devices.sh up /tmp/drives 4 100 512
  throttled_devices.sh run /tmp/drives fio --filename=/tmp/drives/dev0/f --direct=1 ...
  throttled_devices.sh down /tmp/drives
HELP
}

die() {
  echo "throttled_devices.sh: $*" >&2
  exit 1
}

# v1 blkio hierarchy of this machine; empty if there is none.
blkio_root() {
  awk '$3 == "cgroup" && $4 ~ /(^|,)blkio(,|$)/ { print $2; exit }' /proc/mounts
}

check_machine() {
  [ "$(id -u)" = 0 ] || die "needs root (loop devices, mount, cgroups)"
  local tool
  for tool in losetup mkfs.ext4 mount umount dd; do
    command -v "$tool" >/dev/null || die "there is no $tool (Debian: util-linux, e2fsprogs)"
  done
  [ -e /dev/loop-control ] || die "this kernel has no loop devices (/dev/loop-control is missing)"
  blkio=$(blkio_root)
  [ -n "$blkio" ] || die "no cgroup v1 blkio hierarchy is mounted; this script knows no cgroup v2"
  [ -e "$blkio/blkio.throttle.read_bps_device" ] || die "this kernel has no block I/O throttle"
}

group_of() { echo "$blkio/sluice_throttle$(tr -c 'A-Za-z0-9\n' '_' <<<"$1")"; }
loop_of() { losetup -j "$1" -O NAME -n | head -n 1 | tr -d ' '; }
images_of() { find "$1/images" -name 'dev*.img' 2>/dev/null | sort -V; }

# Held to READ:WRITE megabytes a second, in the group and in the root group.
set_limit() { # DIR RATE
  local read_rate=${2%%:*} write_rate=${2##*:} image loop number group
  [[ "$2" =~ ^[0-9]+(:[0-9]+)?$ ]] || die "RATE is MB/s or READ:WRITE, not '$2'"
  for image in $(images_of "$1"); do
    loop=$(loop_of "$image")
    number=$(cat "/sys/block/$(basename "$loop")/dev")
    for group in "$(group_of "$1")" "$blkio"; do
      echo "$number ${read_rate}000000" >"$group/blkio.throttle.read_bps_device"
      echo "$number ${write_rate}000000" >"$group/blkio.throttle.write_bps_device"
    done
  done
}

make_device() { # DIR NUMBER SIZE_MIB
  local image="$1/images/dev$2.img" mount_point="$1/dev$2" loop
  dd if=/dev/zero of="$image" bs=1M count="$3" oflag=direct conv=fsync status=none ||
    die "cannot write $image: is there room for $3 MiB, and does the file system take O_DIRECT?"
  loop=$(losetup --direct-io=on --find --show "$image") || die "no loop device for $image"
  [ "$(cat "/sys/block/$(basename "$loop")/loop/dio")" = 1 ] ||
    die "$loop does no direct I/O on the file system of $1: the page cache would answer for it"
  mkfs.ext4 -q -F -m 0 -O ^has_journal -E lazy_itable_init=0,nodiscard "$loop"
  mkdir -p "$mount_point"
  mount -t ext4 -o noatime "$loop" "$mount_point"
}

# Takes back what is there, in whatever state `up` left it.
remove_all() { # DIR
  local image loop group process
  for image in $(images_of "$1"); do
    local mount_point="$1/$(basename "$image" .img)"
    if mountpoint -q "$mount_point"; then
      umount "$mount_point" || die "$mount_point is in use; end what uses it, then run down again"
    fi
    loop=$(loop_of "$image")
    [ -z "$loop" ] || clear_root_limit "$loop"
    [ -z "$loop" ] || losetup -d "$loop"
    rm -f "$image"
    rmdir "$mount_point" 2>/dev/null || true
  done
  group=$(group_of "$1")
  if [ -d "$group" ]; then
    while read -r process; do echo "$process" >"$blkio/cgroup.procs" || true; done \
      <"$group/cgroup.procs"
    rmdir "$group"
  fi
  rmdir "$1/images" 2>/dev/null || true
}

clear_root_limit() { # LOOP
  local number
  number=$(cat "/sys/block/$(basename "$1")/dev")
  echo "$number 0" >"$blkio/blkio.throttle.read_bps_device"
  echo "$number 0" >"$blkio/blkio.throttle.write_bps_device"
}

up() { # DIR COUNT RATE [SIZE_MIB]
  local count=$2 rate=$3 size=${4:-1024} number
  [[ "$count" =~ ^[1-9][0-9]*$ ]] || die "COUNT is a number of devices, not '$count'"
  [[ "$size" =~ ^[1-9][0-9]*$ ]] || die "SIZE is in MiB, not '$size'"
  mkdir -p "$1" || die "cannot make $1"
  dir=$(readlink -f "$1")
  [ ! -e "$dir/images" ] || die "$dir has devices already; run: $0 down $dir"
  trap 'remove_all "$dir"' EXIT
  mkdir -p "$dir/images" "$(group_of "$dir")"
  for ((number = 0; number < count; number++)); do make_device "$dir" "$number" "$size"; done
  set_limit "$dir" "$rate"
  trap - EXIT
}

run() { # DIR COMMAND...
  local group
  group=$(group_of "$1")
  [ -d "$group" ] || die "$1 has no devices; run: $0 up $1 COUNT RATE"
  shift
  echo $$ >"$group/cgroup.procs"
  exec "$@"
}

main() {
  local verb=${1:-}
  case "$verb:$#" in
    up:4 | up:5 | limit:3 | down:2) ;;
    run:*) [ $# -ge 3 ] || { usage >&2; exit 2; } ;;
    help:* | --help:* | -h:*) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
  esac
  shift
  check_machine
  local given=$1
  shift
  if [ "$verb" = up ]; then
    up "$given" "$@"
    return
  fi
  [ -d "$given" ] || die "there is no folder $given"
  dir=$(readlink -f "$given")
  case "$verb" in
    limit) set_limit "$dir" "$1" ;;
    run) run "$dir" "$@" ;;
    down) remove_all "$dir" ;;
  esac
}

main "$@"
