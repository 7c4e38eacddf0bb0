# The text-test runner: one program, a test per .gaf file, steps from steps_<folder>.cpp. Each of those knows one folder of
# src/, or the pipeline's own table.
file(GLOB text_sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
if(text_sources AND TARGET gaf_core)
  add_executable(test_text ${text_sources})
  target_include_directories(test_text PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_CURRENT_LIST_DIR})
  target_compile_definitions(test_text PRIVATE GAF_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(test_text PRIVATE gaf_core GTest::gtest)
  add_test(NAME text COMMAND test_text)
endif()
