#!/usr/bin/env bash
# Every rung of ours as an emitted program, on this machine's GPU: tests/gpu/emit_all.sh FOLDER [RUNG...]
#
# For each rung: `gputop emit` and nvcc, half as many at once as there are cores; then, one after the other, the
# program, `gputop run`, and the program once more. A table then says whether both print the same logits and how their
# device times compare; it also stands in FOLDER/summary.txt, and what each step said in a file beside it. A graph is
# held to 2 % of gputop's device time, other rungs' times are only shown. ONLY=build ends before anything is timed; a
# program that lies in FOLDER already is not built again.
#
# Needs nvcc and, for rungs that call them, the headers and libraries of cuBLAS: those of a CUDA toolkit, or of the
# packages that gputop's extras install. PYTHON chooses the interpreter, ARCH the architecture (default: this GPU's).
# Exit code 1 if a rung does not build, gives other logits or misses its time; 3 without a usable GPU or nvcc.
set -u
out=${1:?usage: emit_all.sh FOLDER [RUNG...]}
shift
python=${PYTHON:-python3}
case $python in */*) python=$(cd "$(dirname "$python")" && pwd)/$(basename "$python") ;; esac
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "$0")/../.." || exit 2

missing=$("$python" -c 'from gputop.backends.cuda.availability import available; print(available() or "")') || exit
[ -z "$missing" ] || { echo "emit_all.sh: $missing" >&2; exit 3; }
toolkit=$("$python" -m tests.gpu.emitted tools "$out") || exit
nvcc=$(echo "$toolkit" | head -n 1)
flags=$(echo "$toolkit" | tail -n +2)
arch=${ARCH:-$("$python" -m tests.gpu.emitted arch)}
rungs=${*:-$("$python" -m tests.gpu.emitted rungs "$arch")}

gputop() { "$python" -m gputop "$@"; }

# The build command stands in the file's header; nvcc and where cuBLAS lies are this machine's own.
build() {
    local command
    command=$(sed -n 's|^//   nvcc ||p' "$1.cu" | head -n 1)
    # shellcheck disable=SC2086  # flags are words
    (cd "$out" && "$nvcc" $command $flags)
}

make_program() {
    [ ! -x "$out/$1" ] || return 0
    gputop emit "$1" --arch "$arch" -o "$out/$1.cu" > "$out/$1.emit.txt" 2>&1 &&
        build "$out/$1" > "$out/$1.build.txt" 2>&1
}

for rung in $rungs; do
    while [ "$(jobs -pr | wc -l)" -ge $((($(nproc) + 1) / 2)) ]; do wait -n; done
    make_program "$rung" &
done
wait
[ "${ONLY:-}" != build ] || exit 0
for rung in $rungs; do
    [ -x "$out/$rung" ] || continue
    echo "$rung" >&2
    "$out/$rung" > "$out/$rung.before.txt" 2>&1
    gputop run --backend cuda --rung "$rung" --seconds 2 --csv "$out/$rung.csv" > "$out/$rung.run.txt" 2>&1
    "$out/$rung" > "$out/$rung.after.txt" 2>&1
done
# shellcheck disable=SC2086  # rungs are words
"$python" -m tests.gpu.emitted compare "$out" $rungs | tee "$out/summary.txt"
exit "${PIPESTATUS[0]}"
