#!/usr/bin/env bash
# The loop devices that benchmarks use: made as asked, refused when asked wrongly, gone afterwards.
# Their speed is not looked at here: no test depends on a clock.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
script=bench/throttle/throttled_devices.sh
all="throttled devices are made, limited and removed"

failed=0
check() { # NAME COMMAND...
  local name=$1
  shift
  if "$@" >"$scratch/said" 2>&1; then
    echo "PASS $name"
  else
    failed=1
    echo "FAIL $name: '$*' failed: $(tr '\n' ' ' <"$scratch/said")"
  fi
}
says() { # TEXT COMMAND...: the command fails and its message holds TEXT
  local text=$1 said
  shift
  if said=$("$@" 2>&1); then return 1; fi
  echo "$said"
  [[ "$said" == *"$text"* ]]
}
is_limited() { # NUMBER READ WRITE: the limit of the device under dev NUMBER in the root group
  local device number
  device=$(basename "$(findmnt -n -o SOURCE "$scratch/drives/dev$1")")
  number=$(cat "/sys/block/$device/dev")
  grep -qx "$number $2" "$blkio/blkio.throttle.read_bps_device" &&
    grep -qx "$number $3" "$blkio/blkio.throttle.write_bps_device"
}
nothing_left() {
  [ -z "$(losetup -l -n -O BACK-FILE | grep -F "$scratch")" ] &&
    ! grep -qF "$scratch" /proc/mounts && [ -z "$(ls -A "$scratch/drives")" ]
}

if [ "$(id -u)" != 0 ]; then
  echo "SKIPPED: $all: not root"
  exit 0
fi
blkio=$(awk '$3 == "cgroup" && $4 ~ /(^|,)blkio(,|$)/ { print $2; exit }' /proc/mounts)
if [ -z "$blkio" ] || [ ! -e /dev/loop-control ]; then
  echo "SKIPPED: $all: no cgroup v1 blkio hierarchy or no loop devices"
  exit 0
fi
scratch=$(mktemp -d -t sluice-throttle-XXXXXX)
trap '"$script" down "$scratch/drives" 2>/dev/null; rm -rf "$scratch"' EXIT
if ! losetup -f >/dev/null 2>&1 || ! dd if=/dev/zero of="$scratch/probe" bs=4096 count=1 \
  oflag=direct status=none 2>/dev/null; then
  echo "SKIPPED: $all: no free loop device, or $scratch takes no O_DIRECT"
  exit 0
fi

check "up makes the devices" "$script" up "$scratch/drives" 2 100:50 8
check "each device is a mounted file system" findmnt -t ext4 "$scratch/drives/dev1"
check "reads and writes have their own limit" is_limited 1 100000000 50000000
check "a second up is refused" says "has devices already" "$script" up "$scratch/drives" 1 100 8
check "limit changes the limit" "$script" limit "$scratch/drives" 30
check "the limit that was set is in force" is_limited 0 30000000 30000000
check "run runs the command in the throttled group" "$script" run "$scratch/drives" \
  grep -q blkio:/sluice_throttle /proc/self/cgroup
check "down succeeds" "$script" down "$scratch/drives"
check "down leaves nothing behind" nothing_left
check "an up that cannot work says so" says "RATE is MB/s" "$script" up "$scratch/drives" 1 fast 8
check "an up that failed leaves nothing behind" nothing_left
check "an unknown verb is refused" says "throttled_devices.sh up DIR" "$script" wobble
exit $failed
