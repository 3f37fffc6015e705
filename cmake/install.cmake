# SPDX-License-Identifier: MIT
# Headers, libraries, command with man pages and completion, pkg-config file and CMake package.
include(CMakePackageConfigHelpers)
set(rung_package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/rung")

install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/rung" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h" PATTERN "*.def")
install(TARGETS ${rung_libraries} EXPORT rung_targets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
if(TARGET rung_tool)
  install(TARGETS rung_tool RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1" FILES_MATCHING PATTERN "*.1")
  install(FILES "${PROJECT_SOURCE_DIR}/docs/completion/rung.bash" RENAME rung
          DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
endif()
install(EXPORT rung_targets NAMESPACE rung:: DESTINATION "${rung_package_folder}" FILE rung-targets.cmake)

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/rung-config.cmake.in"
                              "${PROJECT_BINARY_DIR}/rung-config.cmake"
                              INSTALL_DESTINATION "${rung_package_folder}")
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/rung-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/rung-config.cmake" "${PROJECT_BINARY_DIR}/rung-config-version.cmake"
        DESTINATION "${rung_package_folder}")

# From the folder of rung.pc up to the prefix, so that an installation can be moved; lib may be lib/<triplet>.
file(RELATIVE_PATH rung_pc_up "/x/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/x")
string(REGEX REPLACE "/$" "" rung_pc_up "${rung_pc_up}")
string(REPLACE ";" " " rung_pc_requires "${rung_library_modules}")
configure_file("${PROJECT_SOURCE_DIR}/cmake/rung.pc.in" "${PROJECT_BINARY_DIR}/rung.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/rung.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
