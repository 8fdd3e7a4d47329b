# GPU kernels: nvcc is a plain tool here, not a CMake language. Each kernel file becomes PTX (the
# simulator's input) and, from that very PTX, a cubin (what the driver loads), both in build/ptx.
set(DSATTN_GPU_ARCHS sm_90a sm_100a)
set(DSATTN_PTX_DIR ${CMAKE_BINARY_DIR}/ptx)
set(DSATTN_NVCC "" CACHE FILEPATH "nvcc, found on PATH or in /usr/local/cuda/bin if empty")

set(DSATTN_HAVE_CUDA FALSE)
if(NOT DSATTN_CUDA STREQUAL "OFF")
  if(NOT DSATTN_NVCC)
    find_program(DSATTN_FOUND_NVCC nvcc PATHS /usr/local/cuda/bin)
    mark_as_advanced(DSATTN_FOUND_NVCC)
    set(nvcc ${DSATTN_FOUND_NVCC})
  else()
    set(nvcc ${DSATTN_NVCC})
  endif()
  if(nvcc)
    set(DSATTN_HAVE_CUDA TRUE)
  elseif(DSATTN_CUDA STREQUAL "ON")
    message(FATAL_ERROR "DSATTN_CUDA is ON, but there is no nvcc: set DSATTN_NVCC to its path")
  endif()
endif()
if(DSATTN_HAVE_CUDA)
  set(DSATTN_NVCC_COMMAND ${nvcc})
  get_filename_component(DSATTN_CUDA_ROOT ${nvcc} REALPATH)
  get_filename_component(DSATTN_CUDA_ROOT ${DSATTN_CUDA_ROOT} DIRECTORY)
  get_filename_component(DSATTN_CUDA_ROOT ${DSATTN_CUDA_ROOT} DIRECTORY)
  message(STATUS "GPU kernels: ${nvcc}")
else()
  message(STATUS "GPU kernels: none, this is a CPU-only build")
endif()

# dsattn_add_gpu_module(NAME KERNEL.cu): compiles it for every architecture and embeds the cubins.
# Appends one line per cubin to the global property DSATTN_EMBEDDED_MODULES.
function(dsattn_add_gpu_module name source)
  if(NOT DSATTN_HAVE_CUDA)
    return()
  endif()
  get_filename_component(source ${source} ABSOLUTE)
  file(MAKE_DIRECTORY ${DSATTN_PTX_DIR})
  foreach(arch IN LISTS DSATTN_GPU_ARCHS)
    set(stem ${DSATTN_PTX_DIR}/${name}.${arch})
    add_custom_command(
      OUTPUT ${stem}.ptx
      COMMAND ${DSATTN_NVCC_COMMAND} -std=c++20 -O3 -lineinfo -Werror all-warnings -arch=${arch}
              -I${PROJECT_SOURCE_DIR}/src -ccbin ${CMAKE_CXX_COMPILER} -MD -MF ${stem}.d
              -MT ${stem}.ptx -ptx ${source} -o ${stem}.ptx
      DEPENDS ${source}
      DEPFILE ${stem}.d
      COMMENT "nvcc ${name} for ${arch}"
      VERBATIM)
    add_custom_command(
      OUTPUT ${stem}.cubin
      COMMAND ${DSATTN_NVCC_COMMAND} -arch=${arch} -lineinfo -cubin ${stem}.ptx -o ${stem}.cubin
      DEPENDS ${stem}.ptx
      COMMENT "ptxas ${name} for ${arch}"
      VERBATIM)
    set_property(GLOBAL APPEND PROPERTY DSATTN_EMBEDDED_MODULES "${name}|${arch}|${stem}.cubin")
  endforeach()
endfunction()

# dsattn_embed_gpu_modules(OUT_VAR): writes the source file that holds every cubin and its table.
function(dsattn_embed_gpu_modules out_var)
  get_property(modules GLOBAL PROPERTY DSATTN_EMBEDDED_MODULES)
  set(DSATTN_BLOBS "")
  set(DSATTN_ROWS "")
  set(cubins "")
  foreach(module IN LISTS modules)
    string(REPLACE "|" ";" fields "${module}")
    list(GET fields 0 name)
    list(GET fields 1 arch)
    list(GET fields 2 cubin)
    list(APPEND cubins ${cubin})
    string(APPEND DSATTN_BLOBS "DSATTN_BLOB(${name}_${arch}, \"${cubin}\")\n")
    string(APPEND DSATTN_ROWS "    DSATTN_ROW(\"${name}\", \"${arch}\", ${name}_${arch}),\n")
  endforeach()
  list(LENGTH modules DSATTN_MODULE_COUNT)
  set(generated ${CMAKE_BINARY_DIR}/generated/embedded_modules.cc)
  configure_file(${PROJECT_SOURCE_DIR}/src/gpu/host/embedded_modules.cc.in ${generated} @ONLY)
  set_source_files_properties(${generated} PROPERTIES OBJECT_DEPENDS "${cubins}")
  set(${out_var} ${generated} PARENT_SCOPE)
endfunction()
