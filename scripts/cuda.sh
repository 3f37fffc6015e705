#!/bin/sh
# SPDX-License-Identifier: MIT
# The CUDA device on a machine that has a GPU, a C compiler, CMake, and Python with numpy: cuda.sh test | sanitize | bench | tune [FOLDER]
# Builds in build/cuda; the report is printed, logs and models lie in FOLDER (build/cuda/report).
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/cuda
out=${2:-$build/report}
mkdir -p "$out"
# Tests that may run beside each other, and those that look at the memory of the whole GPU.
together="ops/test_cuda_ops ops/test_cuda_rows ops/test_cuda_ragged models/test_cuda_model
  models/test_cuda_cut models/test_cuda_tune models/test_cuda_captured models/test_cuda_choose models/test_cuda_bits cts/test_submit=cuda
  cts/test_submit_failures=cuda cts/test_submit_around=cuda cts/test_wanted=cuda device/test_cuda_fake device/test_cuda_failing
  device/test_cuda_numbers"
alone="device/test_cuda_ladder device/test_cuda_memory device/test_cuda_leaks"
export RUNG_CUDA_CACHE="${RUNG_CUDA_CACHE:-$build/kernels}"
cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DRUNG_SHARED=OFF -DRUNG_EXAMPLES=OFF -DRUNG_INSTALL=OFF \
  > "$out/build.log" 2>&1 &&
  cmake --build "$build" -j "$(nproc)" --target rung_tool $(echo "$together $alone" | sed 's:[a-z]*/::g; s:=[a-z]*::g') \
    >> "$out/build.log" 2>&1 || { tail -20 "$out/build.log"; exit 1; }
failed=0
run_test() { # folder/name[=argument]; the report lies in FOLDER/name.code and .log
  name=$(basename "${1%=*}")
  case $1 in
    *=*) set -- "${1%=*}" "${1#*=}" ;;
    models/test_cuda_bits) set -- "$1" "$out"/small-*.gguf ;;
  esac
  program=$1
  shift
  timeout 240 "$build/tests/$program" "$@" > "$out/$name.log" 2>&1
  echo $? > "$out/$name.code"
}
say_test() {
  name=$(basename "${1%=*}")
  code=$(cat "$out/$name.code")
  [ "$code" -eq 0 ] || [ "$code" -eq 77 ] || failed=1
  echo "$1: exit $code"
  tail -"$([ "${1%%/*}" = device ] && echo 12 || echo 3)" "$out/$name.log"
}
case "${1:-}" in
  test)
    for type in q4_k q8_0 f16; do # models whose heads are wide enough for the kernels of decoding
      file=$out/small-$type.gguf
      [ -f "$file" ] || python3 "$root/scripts/cuda_model.py" small $type "$file" || failed=1
    done
    for test in $together; do run_test "$test" & done
    wait
    for test in $alone; do run_test "$test"; done
    for test in $together $alone; do say_test "$test"; done
    ;;
  sanitize) # out of bounds on every kernel of the op table, then races and barriers on those with shared memory
    check() {
      tool=$1 limit=$2 test=$3 log=$out/$1-$(basename "$3").log
      RUNG_CUDA_ONCE=1 RUNG_GRAPHS=3 RUNG_SLOW=1 timeout "$limit" compute-sanitizer --tool "$tool" --error-exitcode 9 \
        "$build/tests/$test" > "$log" 2>&1
      code=$?
      [ $code -eq 0 ] || failed=1
      echo "$tool $test${RUNG_CUDA_OP:+, $RUNG_CUDA_OP}: exit $code"
      grep -E "ERROR SUMMARY|RACECHECK SUMMARY|checks$|cases with" "$log" || tail -5 "$log"
    }
    check memcheck 150 ops/test_cuda_ops
    check memcheck 60 device/test_cuda_numbers
    for op in matmul softmax rms_norm; do
      export RUNG_CUDA_OP=$op
      check racecheck 20 ops/test_cuda_ops
      check synccheck 10 ops/test_cuda_ops
    done
    ;;
  bench)
    for model in smollm2:q4_k smollm2:f16 llama7:q4_k llama7:q8_0 llama7:f16; do
      file=$out/${model%:*}-${model#*:}.gguf
      [ -f "$file" ] || python3 "$root/scripts/cuda_model.py" "${model%:*}" "${model#*:}" "$file" || failed=1
      echo "$model"
      timeout 90 "$build/rung" bench -q --device cuda -m "$file" -p 512,2048 -n 128 --ubatch 2048 --repeat 3 | grep tok || failed=1
      case $model in smollm2:q4_k | llama7:q4_k | llama7:f16) ;; *) continue ;; esac
      echo "$model, deterministic" # what it costs
      timeout 90 "$build/rung" bench -q --device cuda -m "$file" -p 512 -n 128 --repeat 3 --deterministic | grep tok || failed=1
    done
    ;;
  tune) # decoding without winners and with them, in turn
    for model in smollm2:q4_k llama7:q4_k; do
      file=$out/${model%:*}-${model#*:}.gguf
      [ -f "$file" ] || python3 "$root/scripts/cuda_model.py" "${model%:*}" "${model#*:}" "$file" || failed=1
      timeout 120 "$build/rung" tune -q --device cuda -m "$file" --dir "$out/winners" --again || failed=1
      for depth in 0 2000; do
        for winners in "" "$out/winners" "" "$out/winners"; do
          echo "$model, depth $depth, ${winners:+with winners}"
          RUNG_TUNE=$winners timeout 60 "$build/rung" bench -q --device cuda -m "$file" -p 16 -n 128 --depth $depth \
            --repeat 3 | grep tok || failed=1
        done
      done
    done
    ;;
  *)
    echo "usage: cuda.sh test | sanitize | bench | tune [FOLDER]"
    exit 2
    ;;
esac
exit $failed
