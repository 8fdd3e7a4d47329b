# Flags that every target of ours shares, and the function that makes a layer of the library.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

add_library(dsattn_flags INTERFACE)
target_compile_options(dsattn_flags INTERFACE -Wall -Wextra -Wshadow -Wconversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # gcc 12 sees overlapping copies in std::string's operator+ at -O2 and above (gcc bug 105651).
  target_compile_options(dsattn_flags INTERFACE -Wno-restrict)
endif()
if(DSATTN_WERROR)
  target_compile_options(dsattn_flags INTERFACE -Werror)
endif()
if(DSATTN_SANITIZE)
  target_compile_options(dsattn_flags INTERFACE -fsanitize=${DSATTN_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(dsattn_flags INTERFACE -fsanitize=${DSATTN_SANITIZE})
endif()
if(DSATTN_BUILD_FUZZERS)
  target_compile_options(dsattn_flags INTERFACE -fsanitize=fuzzer-no-link)  # coverage
endif()

# dsattn_add_layer(NAME SOURCES... [DEPENDS targets...]): one folder of src/ as an object library.
function(dsattn_add_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(dsattn_${name} OBJECT ${ARG_SOURCES})
  target_include_directories(dsattn_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include
                             ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(dsattn_${name} PUBLIC tl::expected fmt::fmt ${ARG_DEPENDS}
                        PRIVATE dsattn_flags)
  set_property(GLOBAL APPEND PROPERTY DSATTN_LAYERS dsattn_${name})
endfunction()

# dsattn_add_fuzzer(NAME SOURCES...): a libFuzzer program, build-fuzz/bin/NAME.
function(dsattn_add_fuzzer name)
  add_executable(${name} ${ARGN})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE dsattn dsattn_flags fmt::fmt)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endfunction()
