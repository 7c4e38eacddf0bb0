# The proof of generated NPU text without an NPU: the engine that the stub headers record into (also linked by the programs that
# test_npu.py makes of generated texts), and tests that every check of engine and headers can fail.
add_library(npu_engine STATIC ${CMAKE_CURRENT_LIST_DIR}/engine/engine.cpp ${CMAKE_CURRENT_LIST_DIR}/engine/checks.cpp
                              ${CMAKE_CURRENT_LIST_DIR}/engine/runner.cpp)
target_compile_options(npu_engine PRIVATE -O3)  # products and their schedules are what takes time
target_include_directories(npu_engine PUBLIC ${CMAKE_CURRENT_LIST_DIR})
add_executable(test_npu ${CMAKE_CURRENT_LIST_DIR}/engine_test.cpp ${CMAKE_CURRENT_LIST_DIR}/ascendc_test.cpp
                        ${CMAKE_CURRENT_LIST_DIR}/pto_test.cpp)
target_link_libraries(test_npu PRIVATE npu_engine GTest::gmock GTest::gtest_main)
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/ascendc_test.cpp PROPERTIES INCLUDE_DIRECTORIES ${CMAKE_CURRENT_LIST_DIR}/ascendc)
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/pto_test.cpp PROPERTIES INCLUDE_DIRECTORIES ${CMAKE_CURRENT_LIST_DIR}/pto)
add_test(NAME npu COMMAND test_npu)
add_executable(test_npu_ir ${CMAKE_CURRENT_LIST_DIR}/ir_faults_test.cpp)
target_include_directories(test_npu_ir PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(test_npu_ir PRIVATE gaf_codegen gaf_lower GTest::gmock GTest::gtest_main)
add_test(NAME npu_ir COMMAND test_npu_ir)
