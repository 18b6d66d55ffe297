include(CMakePackageConfigHelpers)

# incipit_static_packages(<names> <modules> <packages>)
#
# What the static library is made with: in CMake, for pkg-config and as a package of Debian. Of the
# optional libraries those that some module links.
function(incipit_static_packages names_variable modules_variable packages_variable)
  set(names PCRE2 UTF8PROC)
  set(modules libpcre2-8 libutf8proc)
  set(packages libpcre2-dev libutf8proc-dev)
  set(linked "")
  foreach(module IN LISTS INCIPIT_MODULES)
    get_property(libraries TARGET incipit_${module} PROPERTY INCIPIT_LIBRARIES)
    list(APPEND linked ${libraries})
  endforeach()
  get_property(optional GLOBAL PROPERTY INCIPIT_OPTIONAL)
  while(optional)
    list(POP_FRONT optional name module package)
    if("PkgConfig::INCIPIT_${name}" IN_LIST linked)
      list(APPEND names ${name})
      list(APPEND modules ${module})
      list(APPEND packages ${package})
    endif()
  endwhile()
  list(TRANSFORM names PREPEND INCIPIT_)
  set(${names_variable} ${names} PARENT_SCOPE)
  set(${modules_variable} ${modules} PARENT_SCOPE)
  set(${packages_variable} ${packages} PARENT_SCOPE)
endfunction()

# incipit_install_rules(<target> [COMPONENT <name>])
#
# Installs one kind of the library with its headers, CMake package and pkg-config file. All paths
# in them are relative, so that the installed folder can be moved. With COMPONENT it is installed
# only by `cmake --install <build> --component <name>`.
function(incipit_install_rules target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "COMPONENT" "")
  set(component "")
  if(arg_COMPONENT)
    set(component COMPONENT ${arg_COMPONENT} EXCLUDE_FROM_ALL)
  endif()
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/incipit)
  set(generated ${PROJECT_BINARY_DIR}/package/${target})
  set(export ${target}Targets)

  # A static library hands what it is made with on to whoever links it, a shared one needs nothing.
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    set(package_is_static ON)
    incipit_static_packages(package_names package_modules package_packages)
    list(JOIN package_modules " " pc_requires_private)
    list(JOIN package_names " " package_names)
    list(JOIN package_modules " " package_modules)
    list(JOIN package_packages " " package_packages)
    set(pc_libs_private "-pthread")
    if(INCIPIT_WITH_CUDA)
      get_target_property(cudart CUDA::cudart_static IMPORTED_LOCATION)
      string(APPEND pc_libs_private " ${cudart} -ldl -lrt")
    endif()
  else()
    set(package_is_static OFF)
    set(pc_requires_private "")
    set(pc_libs_private "")
  endif()

  install(TARGETS ${target} EXPORT ${export}
    ARCHIVE ${component} LIBRARY ${component} FILE_SET HEADERS ${component})
  install(EXPORT ${export} NAMESPACE incipit:: FILE incipitTargets.cmake
    DESTINATION ${package_dir} ${component})

  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/incipitConfig.cmake.in
    ${generated}/incipitConfig.cmake INSTALL_DESTINATION ${package_dir}
    NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
  write_basic_package_version_file(${generated}/incipitConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${generated}/incipitConfig.cmake ${generated}/incipitConfigVersion.cmake
    DESTINATION ${package_dir} ${component})

  set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  file(RELATIVE_PATH pc_prefix
    ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
  cmake_path(APPEND pc_libdir "\${prefix}" "${CMAKE_INSTALL_LIBDIR}")
  cmake_path(APPEND pc_includedir "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
  configure_file(${PROJECT_SOURCE_DIR}/cmake/incipit.pc.in ${generated}/incipit.pc @ONLY)
  install(FILES ${generated}/incipit.pc DESTINATION ${pc_dir} ${component})
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/incipit ${component})
endfunction()
