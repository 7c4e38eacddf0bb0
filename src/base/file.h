// Whole files in and out, with the errors that a user reads. Writing is atomic: the old content or the new, never a part.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gaf {

// UserError GAF8001 if it cannot be read, is a folder, or is longer than `limit` bytes (-1: no limit).
std::string read_file(const std::string& path, int64_t limit = -1);
// Through a new file beside it and a rename. UserError GAF8001, or GAF8002 when the disk is full.
void write_file(const std::string& path, std::string_view content);
void write_file(const std::string& path, std::span<const std::string_view> parts);  // joined

}  // namespace gaf
