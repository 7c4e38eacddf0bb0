# cmake -DOUT=x.cpp -DFUNCTION=embedded_targets -DFILES=a;b -P embed.cmake
# Writes a C++ source with the text of the files: the library finds its shipped data without knowing where it is installed.
set(body "")
foreach(file IN LISTS FILES)
  file(READ ${file} text)
  get_filename_component(name ${file} NAME_WE)
  # Parts of 8 KiB: no compiler limits the length of a literal to less.
  string(LENGTH "${text}" length)
  set(literal "")
  set(at 0)
  while(at LESS length)
    string(SUBSTRING "${text}" ${at} 8192 part)
    string(APPEND literal "R\"~~(${part})~~\" ")
    math(EXPR at "${at} + 8192")
  endwhile()
  string(APPEND body "    {\"${name}\", ${literal}},\n")
endforeach()
file(WRITE ${OUT} "// Generated from the repository's data files. Do not edit.\n#include \"base/embedded.h\"\n\nnamespace gaf {\n\nstd::span<const EmbeddedFile> ${FUNCTION}() {\n  static constexpr EmbeddedFile files[] = {\n${body}  };\n  return files;\n}\n\n}  // namespace gaf\n")
