# cmake -DOUT=x.cpp -DFUNCTION=emitter_digest -DFILES=a;b -P digest.cmake
# Writes a C++ source with a digest of the files: what they produce is cached under it, so that no edit meets stale objects.
set(all "")
foreach(file IN LISTS FILES)
  file(SHA256 ${file} one)
  string(APPEND all ${one})
endforeach()
string(SHA256 digest "${all}")
string(SUBSTRING ${digest} 0 16 digest)
file(WRITE ${OUT} "// Generated from the repository's sources. Do not edit.\nnamespace gaf {\n\nconst char* ${FUNCTION}() { return \"${digest}\"; }\n\n}  // namespace gaf\n")
