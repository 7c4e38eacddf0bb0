# The program behind `./dev conformance`: runs cases in the ONNX backend layout through the reference evaluation.
add_executable(conformance_runner ${CMAKE_SOURCE_DIR}/tests/conformance/runner.cpp)
target_include_directories(conformance_runner PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(conformance_runner PRIVATE gaf_frontend)
