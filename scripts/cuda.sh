#!/bin/sh
# SPDX-License-Identifier: MIT
# The CUDA device on a machine that has a GPU, a C compiler, CMake, and Python with numpy: cuda.sh test | bench | tune [FOLDER]
# Builds in build/cuda; the report is printed, logs and models lie in FOLDER (build/cuda/report).
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/cuda
out=${2:-$build/report}
mkdir -p "$out"
export RUNG_CUDA_CACHE="${RUNG_CUDA_CACHE:-$build/kernels}"
cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DRUNG_SHARED=OFF -DRUNG_EXAMPLES=OFF -DRUNG_INSTALL=OFF \
  > "$out/build.log" 2>&1 &&
  cmake --build "$build" -j "$(nproc)" --target rung_tool test_cuda_compile test_cuda_ops test_cuda_model \
    test_cuda_tune test_cuda_choose test_submit test_submit_failures test_submit_around test_wanted >> "$out/build.log" 2>&1 || { tail -20 "$out/build.log"; exit 1; }
failed=0
case "${1:-}" in
  test)
    for test in ops/test_cuda_compile models/test_cuda_model models/test_cuda_tune models/test_cuda_choose "cts/test_submit cuda" "cts/test_wanted cuda" \
      "cts/test_submit_failures cuda" "cts/test_submit_around cuda" ops/test_cuda_ops; do
      log=$out/$(basename "${test% cuda}").log
      timeout 180 "$build"/tests/$test > "$log" 2>&1
      code=$?
      [ $code -eq 0 ] || [ $code -eq 77 ] || failed=1
      echo "$test: exit $code"
      tail -3 "$log"
    done
    ;;
  bench)
    for model in smollm2:q4_k smollm2:f16 llama7:q4_k llama7:q8_0 llama7:f16; do
      file=$out/${model%:*}-${model#*:}.gguf
      [ -f "$file" ] || python3 "$root/scripts/cuda_model.py" "${model%:*}" "${model#*:}" "$file" || failed=1
      echo "$model"
      timeout 90 "$build/rung" bench -q --device cuda -m "$file" -p 512,2048 -n 128 --repeat 3 | grep tok || failed=1
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
    echo "usage: cuda.sh test | bench | tune [FOLDER]"
    exit 2
    ;;
esac
exit $failed
