# SPDX-License-Identifier: MIT
# Thin wrappers: the build is CMake's (see CMakePresets.json), the tests are run by scripts/run_tests.py.
PYTHON ?= python3
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
CONFIGURE = cmake -S . -B build/release -DCMAKE_BUILD_TYPE=RelWithDebInfo

.PHONY: all build demo test test-long bench generate format clean
all: build

# Ninja if it is there; an existing build folder keeps the generator it was made with.
build:
	@if [ -f build/release/CMakeCache.txt ] || ! command -v ninja >/dev/null; then $(CONFIGURE); else $(CONFIGURE) -G Ninja; fi
	@cmake --build build/release -j $(JOBS) --target $(or $(TARGET),all)

demo:
	@PYTHON="$(PYTHON)" MAKE="$(MAKE)" sh scripts/demo.sh

test:
	@sh scripts/setup.sh test
	@$(PYTHON) scripts/run_tests.py

test-long:
	@sh scripts/setup.sh test
	@$(PYTHON) scripts/run_tests.py --long

bench: build
	@$(PYTHON) scripts/bench.py

# What is derived from the tables of ops and of the command, and committed; tests compare it.
generate: build
	@for made in header:include/rung/ops.h source:src/ops/build_generated.c docs:docs/ops.md; do \
	  build/release/tools/gen_ops $${made%%:*} include/rung/*.h >build/made && cp build/made $${made#*:} || exit 1; done
	@build/release/tools/gen_onnx >build/made && cp build/made docs/onnx.md
	@build/release/tools/gen_man write docs

format:
	clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	rm -rf build
