#!/usr/bin/env bash
# A hundred million random elements of each policy, kernel beside reference, and as many of each
# IEEE operator beside the processor's: about an hour and a half on one core. ./test runs the
# same with fewer.
#
#   scripts/soak_hls.sh [BUILD]        BUILD: build/release unless given
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
program=${1:-build/release}/bin/hls_kernels_test
if [ ! -x "$program" ]; then
  echo "soak: $program is not there: ninja -C build/release hls_kernels_test" >&2
  exit 2
fi
exec "$program" "[.soak]" --durations yes
