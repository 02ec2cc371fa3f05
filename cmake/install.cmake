# The library, its headers, the two files by which programs find it (holdfast.pc and holdfast-config.cmake), and the
# documents. `cmake --build build --target uninstall` takes away what was installed last from that build.
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/holdfast)
install(TARGETS holdfast EXPORT holdfast LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS holdfast-tls LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/holdfast DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT holdfast NAMESPACE holdfast:: DESTINATION ${config_folder} FILE holdfast-targets.cmake)
configure_package_config_file(cmake/holdfast-config.cmake.in holdfast-config.cmake INSTALL_DESTINATION ${config_folder})
write_basic_package_version_file(holdfast-config-version.cmake COMPATIBILITY ${compatible})

# Nobody knows yet where `cmake --install --prefix` will put it all: holdfast.pc counts from where it lies itself.
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX} NORMALIZE OUTPUT_VARIABLE folder)
if(IS_ABSOLUTE ${CMAKE_INSTALL_LIBDIR})
    set(pc_prefix ${CMAKE_INSTALL_PREFIX})
else()
    file(RELATIVE_PATH up ${folder}/pkgconfig ${CMAKE_INSTALL_PREFIX})
    string(REGEX REPLACE "/$" "" pc_prefix "\${pcfiledir}/${up}")
endif()
foreach(name LIB INCLUDE)
    if(IS_ABSOLUTE ${CMAKE_INSTALL_${name}DIR})
        set(pc_${name} ${CMAKE_INSTALL_${name}DIR})
    else()
        set(pc_${name} "\${prefix}/${CMAKE_INSTALL_${name}DIR}")
    endif()
endforeach()
configure_file(cmake/holdfast.pc.in holdfast.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/holdfast-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/holdfast-config-version.cmake
    DESTINATION ${config_folder})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/holdfast.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES docs/apache.md docs/architecture.md docs/coming-from.md docs/deploying.md docs/guarantees.md docs/interop.md
    docs/performance.md docs/protocol.md docs/reliability.md docs/rule_mutants.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs)
file(GLOB examples CONFIGURE_DEPENDS examples/*.c examples/README.md)
install(FILES ${examples} DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install(FILES include/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/include)
if(PROJECT_IS_TOP_LEVEL)
    add_custom_target(uninstall COMMAND ${CMAKE_COMMAND} -P ${CMAKE_CURRENT_LIST_DIR}/uninstall.cmake)
endif()
