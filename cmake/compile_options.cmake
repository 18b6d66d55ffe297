# incipit_compile_options: what each target of this project is compiled with, and nothing that
# leaks into a host's build.
add_library(incipit_compile_options INTERFACE)

# A compiler that fuses a*b+c on its own would make results depend on inlining (docs/guarantees.md).
# The names of files in messages start at the project's folder, wherever it was built.
set(options -ffp-contract=off -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
  -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wold-style-cast
  -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual -Wcast-align -Wformat=2 -Wundef
  -Wdouble-promotion -Wimplicit-fallthrough
  $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond;-Wlogical-op;-Wuseless-cast>
  $<$<BOOL:${INCIPIT_WERROR}>:-Werror>)
target_compile_options(incipit_compile_options INTERFACE
  "$<$<COMPILE_LANGUAGE:CXX>:${options}>")  # nvcc has its own: cuda/CMakeLists.txt

if(INCIPIT_SANITIZE)
  target_compile_options(incipit_compile_options INTERFACE
    -fsanitize=${INCIPIT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
    -D_GLIBCXX_ASSERTIONS
    # g++ 12 takes the sanitizers' own checks for uses of uninitialised memory.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(incipit_compile_options INTERFACE -fsanitize=${INCIPIT_SANITIZE})
endif()
