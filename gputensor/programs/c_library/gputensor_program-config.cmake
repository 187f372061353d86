# find_package(gputensor_program) defines the target gputensor::program. `gputensor c_library` prints
# the folder of this file.
get_filename_component(_folder "${CMAKE_CURRENT_LIST_DIR}" ABSOLUTE)
if(NOT TARGET gputensor::program)
  add_library(gputensor::program SHARED IMPORTED)
  set_target_properties(gputensor::program PROPERTIES
    IMPORTED_LOCATION "${_folder}/libgputensor_program.so"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_INCLUDE_DIRECTORIES "${_folder}/../c_entry")
endif()
