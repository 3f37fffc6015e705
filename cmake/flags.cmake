# SPDX-License-Identifier: MIT
# Compiler flags for everything that is built here.

# Sign conversions are left out: index arithmetic mixes size_t and int64_t everywhere, and extents are checked once.
set(rung_warnings
    -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion -Wdouble-promotion -Wshadow -Wvla
    -Wstrict-prototypes -Wundef)
# gcc cannot see that a call which fails returns no RUNG_OK, and so suspects every result behind a RUNG_TRY. clang looks at
# each function alone and finds the true ones.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  list(APPEND rung_warnings -Wno-maybe-uninitialized)
endif()

function(rung_compile_options target)
  set_target_properties(${target} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
                                             C_VISIBILITY_PRESET hidden)
  target_compile_options(${target} PRIVATE ${rung_warnings} $<$<BOOL:${RUNG_WERROR}>:-Werror>)
  # No contraction: a product and a sum fuse only where the source says so, or the same source gives other bits on another
  # compiler. errno and traps of libm are never looked at; without them sqrt and selects become plain instructions.
  target_compile_options(${target} PRIVATE -ffp-contract=off -fno-math-errno -fno-trapping-math)
  if(RUNG_SANITIZE)
    target_compile_options(${target} PRIVATE "-fsanitize=${RUNG_SANITIZE}" -fno-sanitize-recover=all
                                             -fno-omit-frame-pointer)
  endif()
  if(RUNG_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

function(rung_link_options target)
  if(RUNG_SANITIZE)
    target_link_options(${target} PRIVATE "-fsanitize=${RUNG_SANITIZE}")
  endif()
endfunction()
