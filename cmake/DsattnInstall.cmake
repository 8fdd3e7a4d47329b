# The installable package: find_package(dsattn) gives the target dsattn::dsattn.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/dsattn)
install(TARGETS dsattn EXPORT dsattnTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/dsattn DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT dsattnTargets NAMESPACE dsattn:: DESTINATION ${package_dir})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/dsattnConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/dsattnConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may break the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/dsattnConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/dsattnConfig.cmake
              ${PROJECT_BINARY_DIR}/dsattnConfigVersion.cmake
        DESTINATION ${package_dir})
