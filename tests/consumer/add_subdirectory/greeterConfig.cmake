include(CMakeFindDependencyMacro)
find_dependency(incipit 0.1)
include("${CMAKE_CURRENT_LIST_DIR}/greeterTargets.cmake")
