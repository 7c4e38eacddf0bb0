// Settings files: one flat YAML mapping of names to values. This file and yaml.cpp are the only ones that know YAML.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace gaf {

// Keys and values as text; a list of values becomes "a,b". Throws one UserError with `code` for everything that is wrong,
// with file and line: not YAML, keys outside `legal` (with the nearest name), repeated keys, nested values, aliases, tags,
// more than 1 MiB.
std::map<std::string, std::string> read_yaml_map(std::string_view text, const std::string& file, const std::string& code,
                                                 const std::vector<std::string>& legal);

}  // namespace gaf
