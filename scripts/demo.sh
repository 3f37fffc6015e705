#!/bin/sh
# SPDX-License-Identifier: MIT
# demo.sh: sets up what is missing, builds, fetches the model, answers one question. Progress goes to standard error, the
# answer to standard output. A step that fails says what to do about it.
set -eu
cd "$(dirname "$0")/.."

question="What is the capital of France? Answer in one sentence."
say() { echo "$*" >&2; }

sh scripts/setup.sh

say "building (the first time takes a few minutes)"
if ! "${MAKE:-make}" --no-print-directory build TARGET=rung_tool >&2; then
  say
  say "demo: the build failed; its first error stands above. A C11 compiler and CMake 3.18 are needed:"
  say "    $(cc --version 2>/dev/null | head -n 1 || echo 'there is no cc'), $(cmake --version 2>/dev/null | head -n 1 || echo 'there is no cmake')"
  say "After a change of compiler or an interrupted build, type: make clean demo"
  exit 1
fi

# Says by itself what is wrong and what to try.
model=$("${PYTHON:-python3}" scripts/models.py fetch smollm2) || exit 1

say
say "> $question"
say
status=0
build/release/rung generate -m "$model" -n 64 --temp 0 -p "<|im_start|>user
$question<|im_end|>
<|im_start|>assistant
" || status=$?
if [ "$status" != 0 ]; then
  say "demo: rung ended with status $status. Its message above names the cause; 'build/release/rung env' shows this machine as rung sees it."
  exit "$status"
fi
say
say "Your turn: build/release/rung generate -m \"$model\" -n 64 -p \"Once upon a time\"     (more: build/release/rung --help)"
