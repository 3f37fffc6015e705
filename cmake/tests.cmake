# SPDX-License-Identifier: MIT
# Every file is an executable and a ctest test named after it, labelled by its folder. A test that returns 77 is skipped.
# Files called long_*.c get the label "long" and run in `make test-long` only. tests/support/*.c is linked into each.
rung_glob(support_sources "tests/support/*.c")
if(support_sources)
  add_library(rung_test_support STATIC EXCLUDE_FROM_ALL ${support_sources})
  rung_compile_options(rung_test_support)
  target_include_directories(rung_test_support PUBLIC "${PROJECT_SOURCE_DIR}/tests" "${PROJECT_SOURCE_DIR}/src")
  target_link_libraries(rung_test_support PUBLIC rung_static)
endif()

function(rung_test_executable target label)
  rung_executable(${target} ${ARGN})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")
  target_compile_definitions(${target} PRIVATE RUNG_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                               RUNG_BINARY_DIR="${PROJECT_BINARY_DIR}")
  target_compile_options(${target} PRIVATE -UNDEBUG)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests/${label}")
  if(TARGET rung_test_support)
    target_link_libraries(${target} PRIVATE rung_test_support)
  endif()
endfunction()

foreach(label unit ops golden cts formats models cli)
  rung_glob(test_sources "tests/${label}/*.c")
  foreach(file IN LISTS test_sources)
    get_filename_component(name "${file}" NAME_WE)
    if(label MATCHES "^(unit|models)$" AND NOT name MATCHES "^(test|long)_")
      continue() # helpers that a test includes or a program for work by hand
    endif()
    rung_test_executable(${name} ${label} "${file}")
    add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
    set(labels ${label})
    if(name MATCHES "^long_")
      set(labels long)
    endif()
    set_tests_properties(${name} PROPERTIES LABELS "${labels}" SKIP_RETURN_CODE 77 TIMEOUT 900)
    # A refused allocation must come back as NULL, as without the sanitizer.
    set(environment "ASAN_OPTIONS=allocator_may_return_null=1" "TSAN_OPTIONS=allocator_may_return_null=1")
    if(TARGET rung_tool)
      add_dependencies(${name} rung_tool)
      list(APPEND environment "RUNG_TOOL=$<TARGET_FILE:rung_tool>")
    endif()
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${environment}")
  endforeach()
endforeach()

# Fuzz targets: with libFuzzer, or as programs that replay the corpus of tests/fuzz/corpus/<name>/.
rung_glob(fuzz_sources "tests/fuzz/fuzz_*.c")
foreach(file IN LISTS fuzz_sources)
  get_filename_component(name "${file}" NAME_WE)
  set(corpus "${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name}")
  if(RUNG_FUZZ)
    rung_test_executable(${name} fuzz "${file}")
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set(arguments -runs=0)
    if(EXISTS "${corpus}")
      list(APPEND arguments "${corpus}")
    endif()
  else()
    if(NOT EXISTS "${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.c")
      continue()
    endif()
    rung_test_executable(${name} fuzz "${file}" "${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.c")
    set(arguments "${corpus}")
  endif()
  target_compile_options(${name} PRIVATE -Wno-missing-prototypes) # LLVMFuzzerTestOneInput is declared nowhere
  add_test(NAME ${name} COMMAND ${name} ${arguments} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT 600)
endforeach()

# What a user's project sees: install into a folder, find it both ways, build C and C++ against it, run.
if(RUNG_SHARED AND RUNG_INSTALL AND NOT CMAKE_CROSSCOMPILING AND NOT RUNG_SANITIZE)
  find_package(Python3 QUIET COMPONENTS Interpreter)
  add_test(NAME install_consumer
           COMMAND ${CMAKE_COMMAND} "-DBUILD=${PROJECT_BINARY_DIR}" "-DSOURCE=${PROJECT_SOURCE_DIR}"
                   "-DLIBDIR=${CMAKE_INSTALL_LIBDIR}" -P "${PROJECT_SOURCE_DIR}/tests/install/run.cmake")
  set_tests_properties(install_consumer PROPERTIES LABELS install TIMEOUT 300)
  if(Python3_FOUND AND EXISTS "${PROJECT_SOURCE_DIR}/scripts/check_symbols.py")
    add_test(NAME check_symbols
             COMMAND ${Python3_EXECUTABLE} "${PROJECT_SOURCE_DIR}/scripts/check_symbols.py" "${PROJECT_BINARY_DIR}")
    set_tests_properties(check_symbols PROPERTIES LABELS check)
  endif()
endif()
