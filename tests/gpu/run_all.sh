#!/usr/bin/env bash
# Everything that needs a GPU, in one call: tests/gpu/run_all.sh FOLDER [PART...]
#
# Parts, in this order, all of them where none is named:
#   results    the first result cold and warm, peaks, two comparisons, the ladder
#   record     a recording
#   sanitize   memcheck and synccheck of every rung on mini, racecheck of our own kernels
#   tests      the GPU tests but the planted faults
#   planted    the planted faults
#
# A step that fails or outlasts its time does not stop the next; any such makes the exit code 1. A short summary ends
# the output and stands in FOLDER/summary.txt, all that was said in FOLDER/log.txt.
# PYTHON chooses the interpreter; BUDGET_S is the longest that all of it may take.
set -u
usage="usage: run_all.sh FOLDER [results] [record] [sanitize] [tests] [planted]"
out=${1:?$usage}
shift
parts=${*:-results record sanitize tests planted}
for part in $parts; do
    case $part in
        results | record | sanitize | tests | planted) ;;
        *) echo "run_all.sh: no part $part; $usage" >&2; exit 2 ;;
    esac
done
python=${PYTHON:-python3}
case $python in */*) python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python") ;; esac
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/../.." || exit 2
: > "$out/summary.txt"
: > "$out/log.txt"
failed=0
ends=$(($(date +%s) + ${BUDGET_S:-2700}))

# Caches of their own, empty at first: the first result is timed cold and then warm.
XDG_CACHE_HOME=$(mktemp -d)
# The worker's log is kept beside the rest, with how long each of its steps took.
XDG_STATE_HOME=$out/state
export XDG_CACHE_HOME XDG_STATE_HOME PYTHONUNBUFFERED=1 GPUTOP_TIMES=1
trap 'rm -rf "$XDG_CACHE_HOME"' EXIT

gputop() { "$python" -m gputop "$@"; }
# A binding asks the driver for entry points that it may not have; only what kernels do is to count.
sanitize() { compute-sanitizer --tool "$1" --report-api-errors no --error-exitcode 9 "$python" -m tests.gpu.sanitize "${@:2}"; }
# Spelled out, so that it also runs where pytest lacks the project's plugins.
tests() {
    "$python" -X faulthandler -m pytest -q -rfE --import-mode=importlib -o addopts= --junitxml="$out/$1.xml" "${@:2}"
}
export -f gputop sanitize tests
export python out

# step NAME SECONDS COMMAND...: its output into log.txt, its outcome into summary.txt.
step() {
    local name=$1 limit=$2 begun ended status left
    shift 2
    left=$((ends - $(date +%s)))
    [ "$left" -gt 5 ] || left=5
    [ "$limit" -le "$left" ] || limit=$left
    echo "=== $name: $*" >> "$out/log.txt"
    begun=$(date +%s.%N)
    timeout --kill-after=5 "$limit" bash -c '"$@"' step "$@" >> "$out/log.txt" 2>&1
    status=$?
    ended=$(date +%s.%N)
    [ "$status" -eq 0 ] || failed=1
    [ "$status" -ne 124 ] || status="out of time"
    awk -v n="$name" -v s="$status" -v b="$begun" -v e="$ended" \
        'BEGIN { printf "%-28s exit %-12s %7.1f s\n", n, s, e - b }' | tee -a "$out/summary.txt"
}

results() {
    step "doctor"               30 gputop doctor --backend cuda
    step "first result, cold"   60 gputop run --backend cuda --rung coalesced --seconds 1 --csv "$out/run.csv"
    step "first result, warm"   30 gputop run --backend cuda --rung coalesced --seconds 1
    step "calibrate"            60 gputop calibrate --backend cuda --json "$out/ceilings.json"
    step "naive to coalesced"   40 gputop compare naive coalesced --backend cuda --seconds 3 --csv "$out/compare.csv"
    step "A/A"                  40 gputop compare coalesced --aa --backend cuda --seconds 3
    step "ladder"              180 gputop ladder --backend cuda --seconds 15 --json "$out/ladder.json"
}

for part in $parts; do
    case $part in
        results) results ;;
        record) step "recording"   420 gputop record "$out/recording.jsonl" --backend cuda --seconds 0.5 ;;
        sanitize)
            step "memcheck"    180 sanitize memcheck
            step "synccheck"   180 sanitize synccheck
            step "racecheck"   240 sanitize racecheck --own
            ;;
        tests) step "tests/gpu"   900 tests tests tests/gpu --ignore tests/gpu/test_planted.py ;;
        planted) step "planted faults" 400 tests planted tests/gpu/test_planted.py ;;
    esac
done

echo
cat "$out/summary.txt"
exit "$failed"
