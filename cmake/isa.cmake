# SPDX-License-Identifier: MIT
# Instruction sets of the CPU backend: isa_<name>.c and isa_<name>_*.c get the flags of their row. One row an instruction
# set: name, architecture ("any", "x86" or "arm"), flags. Units of a foreign architecture are left out of the build.
set(rung_isa_rows
    "base|any|"
    "avx2|x86|-mavx2 -mfma -mf16c -mbmi2"
    "avx512|x86|-mavx2 -mfma -mf16c -mbmi2 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx512bf16 -mprefer-vector-width=512"
    "neon|arm|-march=armv8.2-a+dotprod+fp16")

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(rung_architecture x86)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(rung_architecture arm)
else()
  set(rung_architecture other)
endif()

# Takes the units of foreign architectures out of the list and sets the flags of the others.
function(rung_isa_select list_name)
  set(kept)
  foreach(file IN LISTS ${list_name})
    if(NOT file MATCHES "/backends/cpu/isa_([a-z0-9]+)(_[a-z0-9_]+)?\\.c$")
      list(APPEND kept "${file}")
      continue()
    endif()
    set(name "${CMAKE_MATCH_1}")
    set(known OFF)
    foreach(row IN LISTS rung_isa_rows)
      if(row MATCHES "^${name}\\|([a-z0-9]+)\\|(.*)$")
        set(known ON)
        if(CMAKE_MATCH_1 STREQUAL "any" OR CMAKE_MATCH_1 STREQUAL rung_architecture)
          separate_arguments(flags UNIX_COMMAND "${CMAKE_MATCH_2}")
          if(RUNG_FUZZ)
            # clang takes minutes for a unit with all checks in it; the asan preset has them, fuzzing keeps the addresses.
            list(APPEND flags -fno-sanitize=undefined -fno-sanitize=fuzzer-no-link)
          endif()
          set_source_files_properties("${file}" PROPERTIES COMPILE_OPTIONS "${flags}")
          list(APPEND kept "${file}")
        endif()
      endif()
    endforeach()
    if(NOT known)
      message(FATAL_ERROR "${file}: no row for instruction set '${name}' in cmake/isa.cmake")
    endif()
  endforeach()
  set(${list_name} "${kept}" PARENT_SCOPE)
endfunction()
