#!/bin/sh
# SPDX-License-Identifier: MIT
# setup.sh [test]: installs what is missing on Debian or Ubuntu to build and run the demo, or also to run all tests.
# As root or with sudo that needs no password it installs by itself and says what; otherwise it prints the one command to
# type and fails. On other systems, or when nothing is missing, it installs nothing.
set -eu

need() { # need PACKAGE TEST...: remembers the package unless the test passes
  package=$1
  shift
  "$@" >/dev/null 2>&1 || missing="$missing $package"
}
# PCRE2's header asks for a width before it is included.
header_pcre2() { printf '#define PCRE2_CODE_UNIT_WIDTH 8\n#include <pcre2.h>\n' | cc -E -x c - >/dev/null 2>&1; }
clang_runtime() {
  printf 'int LLVMFuzzerTestOneInput(void);int LLVMFuzzerTestOneInput(void){return 0;}' |
    clang -fsanitize=fuzzer,address -x c - -o /dev/null
}
header() { echo "#include <$1>" | cc -E -x c - >/dev/null 2>&1; }

missing=
need gcc command -v cc
need libc6-dev header stdio.h
need make command -v make
need cmake command -v cmake
need ninja-build command -v ninja
need pkg-config command -v pkg-config
need python3 command -v python3
need python3-pip python3 -m pip --version
need python3-venv python3 -c 'import ensurepip, venv'
need libpcre2-dev header_pcre2
need libjansson-dev header jansson.h
need libutf8proc-dev header utf8proc.h
if [ "${1:-}" = test ]; then
  need libpng-dev header png.h
  need g++ command -v c++
  need clang command -v clang
  need libclang-rt-dev clang_runtime
  need llvm command -v llvm-profdata
  need clang-format command -v clang-format
  need gcc-aarch64-linux-gnu command -v aarch64-linux-gnu-gcc
  need libc6-dev-arm64-cross test -d /usr/aarch64-linux-gnu/include
  need qemu-user command -v qemu-aarch64
  need binutils command -v nm
fi
missing=${missing# }
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null 2>&1; then
  echo "setup: something is missing, and this system has no apt-get. Please install what these Debian packages hold: $missing" >&2
  exit 1
fi
if [ "$(id -u)" = 0 ]; then
  as_root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
  as_root=sudo
else
  echo "setup: packages are missing. Please type this, then run the same command again:" >&2
  echo "    sudo apt-get update && sudo apt-get install -y --no-install-recommends $missing" >&2
  exit 1
fi
echo "setup: installing $missing" >&2
{
  $as_root apt-get update -qq
  # Some releases have clang's run-time libraries in a package of their own, others in one that clang pulls in.
  case " $missing " in
    *" libclang-rt-dev "*) apt-cache show libclang-rt-dev >/dev/null 2>&1 || missing=$(echo "$missing" | sed 's/ *libclang-rt-dev//') ;;
  esac
  [ -z "$missing" ] || $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing
} </dev/null >&2
