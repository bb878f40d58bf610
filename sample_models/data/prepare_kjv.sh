#!/bin/sh
# Writes the King James Bible as plain English, a verse a line, without verse numbers (4.1 MB):
#
#   prepare_kjv.sh TEXT_FILE
#
# The text comes from Debian's package bible-kjv-text. A file that is there already is left alone.
set -eu

if [ $# -ne 1 ]; then
  echo "usage: prepare_kjv.sh TEXT_FILE" >&2
  exit 2
fi
text=$1
[ -s "$text" ] && exit 0

if ! command -v bible > /dev/null; then
  echo "prepare_kjv.sh: the command 'bible' is missing; install it with" >&2
  echo "    sudo apt-get install bible-kjv-text" >&2
  echo "or name a text file of your own in the run file." >&2
  exit 1
fi

# Written beside and renamed, so that an interrupted run leaves no half text.
trap 'rm -f "$text.part"' EXIT
mkdir -p "$(dirname "$text")"
# -f turns the page layout off: "Ge1:1 In the beginning ...", a verse a line.
bible -f gen1:1-rev22:21 | sed 's/^[^ ]* //' > "$text.part"

verses=$(wc -l < "$text.part")
if [ "$verses" -ne 31102 ]; then
  echo "prepare_kjv.sh: 'bible' gave $verses verses instead of 31102; $text was not written" >&2
  exit 1
fi
mv "$text.part" "$text"
