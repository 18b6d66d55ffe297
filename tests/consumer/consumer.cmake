# One step of the consumer tests: cmake -DSTEP=... -D... -P consumer.cmake

function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Configures, builds and runs the project `name` of this folder.
function(build_and_run name)
  set(build ${WORK}/${name}-build)
  file(REMOVE_RECURSE ${build})
  run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${CMAKE_CURRENT_LIST_DIR}/${name} -B ${build}
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${CXX}
    -DCMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} ${ARGN})
  run(${CMAKE_COMMAND} --build ${build} --parallel)
  run(${build}/consumer)
endfunction()

if(STEP STREQUAL "install")  # BUILD COMPONENT ROOT
  # Built for one place, installed in a second and moved to a third.
  file(REMOVE_RECURSE ${WORK})
  run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/installed ${COMPONENT})
  file(RENAME ${WORK}/installed ${WORK}/moved)
  file(GLOB_RECURSE texts ${WORK}/moved/*.cmake ${WORK}/moved/*.pc ${WORK}/moved/*.h)
  foreach(text IN LISTS texts)
    file(READ ${text} content)
    foreach(place IN ITEMS ${BUILD} ${ROOT} ${WORK}/installed)
      string(FIND "${content}" "${place}" found)
      if(NOT found EQUAL -1)
        message(FATAL_ERROR "${text} names ${place}")
      endif()
    endforeach()
  endforeach()

elseif(STEP STREQUAL "find_package")
  build_and_run(find_package -DCMAKE_PREFIX_PATH=${WORK}/moved)

elseif(STEP STREQUAL "pkg_config")  # LIBDIR STATIC
  set(ENV{PKG_CONFIG_PATH} ${WORK}/moved/${LIBDIR}/pkgconfig)
  set(ENV{LD_LIBRARY_PATH} ${WORK}/moved/${LIBDIR})
  set(program ${WORK}/pkg_config)
  run(sh -ec "flags=$(pkg-config --cflags --libs ${STATIC} 'incipit >= 0.1')
    ${CXX} -std=c++20 -Wall -Wextra -Werror ${CMAKE_CURRENT_LIST_DIR}/main.cpp $flags -o ${program}
    ${program}")

elseif(STEP STREQUAL "refused")  # REQUEST EXPECTED
  execute_process(RESULT_VARIABLE result ERROR_VARIABLE message COMMAND ${CMAKE_COMMAND} -G
    ${GENERATOR} -S ${CMAKE_CURRENT_LIST_DIR}/refused -B ${WORK}/refused-build
    "-DREQUEST=${REQUEST}" -DCMAKE_PREFIX_PATH=${WORK}/moved OUTPUT_QUIET)
  file(REMOVE_RECURSE ${WORK}/refused-build)
  string(REGEX REPLACE "[ \n]+" " " message "${message}")
  if(result EQUAL 0 OR NOT message MATCHES "${EXPECTED}")
    message(FATAL_ERROR "find_package(incipit ${REQUEST}) said: ${message}")
  endif()

elseif(STEP STREQUAL "add_subdirectory")  # ROOT
  build_and_run(add_subdirectory -DINCIPIT_ROOT=${ROOT} -DINCIPIT_WERROR=ON)
  run(${CMAKE_COMMAND} --install ${WORK}/add_subdirectory-build --prefix ${WORK}/host)
  build_and_run(dependent -DCMAKE_PREFIX_PATH=${WORK}/host)

else()
  message(FATAL_ERROR "no step ${STEP}")
endif()
