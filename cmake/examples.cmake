# SPDX-License-Identifier: MIT
# Each file of examples/ is a program that sees only the public headers; each of bench/ may look inside.
rung_glob(example_sources "examples/*.c")
foreach(file IN LISTS example_sources)
  get_filename_component(name "${file}" NAME_WE)
  add_executable(example_${name} "${file}")
  rung_compile_options(example_${name})
  rung_link_options(example_${name})
  target_link_libraries(example_${name} PRIVATE rung::rung m)
  set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name}
                                                   RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/examples")
endforeach()
rung_glob(bench_sources "bench/*.c")
foreach(file IN LISTS bench_sources)
  get_filename_component(name "${file}" NAME_WE)
  rung_executable(bench_${name} "${file}")
  set_target_properties(bench_${name} PROPERTIES OUTPUT_NAME ${name}
                                                 RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
endforeach()
