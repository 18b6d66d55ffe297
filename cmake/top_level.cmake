# What only concerns people who build incipit itself, never a host that adds it as a folder.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()

find_program(INCIPIT_CCACHE ccache)
mark_as_advanced(INCIPIT_CCACHE)
if(INCIPIT_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${INCIPIT_CCACHE})
endif()

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
