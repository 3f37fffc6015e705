# SPDX-License-Identifier: MIT
# Thin wrappers: the build is CMake's (see CMakePresets.json), the tests are run by scripts/run_tests.py.
PYTHON ?= python3
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
CONFIGURE = cmake -S . -B build/release -DCMAKE_BUILD_TYPE=RelWithDebInfo

define QUESTION
<|im_start|>user
What is the capital of France? Answer in one sentence.<|im_end|>
<|im_start|>assistant

endef
export QUESTION

.PHONY: all build demo test test-long bench format clean
all: build

# Ninja if it is there; an existing build folder keeps the generator it was made with.
build:
	@if [ -f build/release/CMakeCache.txt ] || ! command -v ninja >/dev/null; then $(CONFIGURE); else $(CONFIGURE) -G Ninja; fi
	@cmake --build build/release -j $(JOBS)

demo:
	@sh scripts/setup.sh
	@$(MAKE) --no-print-directory build >&2
	@model=$$($(PYTHON) scripts/models.py fetch smollm2) && \
	  build/release/rung generate -m "$$model" -p "$$QUESTION" -n 64 --temp 0

test:
	@sh scripts/setup.sh test
	@$(PYTHON) scripts/run_tests.py

test-long:
	@sh scripts/setup.sh test
	@$(PYTHON) scripts/run_tests.py --long

bench: build
	@$(PYTHON) scripts/bench.py

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	rm -rf build
