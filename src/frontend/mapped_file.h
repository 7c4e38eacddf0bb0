// A file's bytes, mapped read-only and kept alive by whoever holds a part of them.
#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace gaf {

struct FileBytes {
  std::string_view bytes;
  std::shared_ptr<const void> owner;  // keeps `bytes` alive
};

FileBytes map_file(const std::string& path);               // UserError GAF8001
FileBytes hold(std::shared_ptr<const std::string> bytes);  // the same of bytes in memory

// A file named by a model: `location` relative to `folder`, read without ever leaving the folder. Absolute paths, `..`,
// links and whatever is no plain file are UserError GAF3005; a file that is not there is GAF8001.
FileBytes map_file_below(const std::string& folder, std::string_view location);

}  // namespace gaf
