// The error catalogue (CONTRACT 12.2) as one table: what each code means, why it happens, what to do, how the process ends.
// Messages at throw sites may say more than the row; documentation, `gaf explain --error` and exit codes come from here.
// Also the nearest-name search behind every "did you mean".
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace gaf {

struct CatalogueRow {
  std::string_view code;      // "GAF3105"
  std::string_view type;      // Python exception class: "ShapeError"
  int exit;                   // of the command; 0 for a warning
  std::string_view title;     // what is wrong, in general
  std::string_view example;   // a message as a user sees it
  std::string_view cause, remedy;
};
std::span<const CatalogueRow> catalogue();
const CatalogueRow* catalogue_row(std::string_view code);  // null if there is no such code
int exit_code(std::string_view code);                      // 70 for a code that is not in the table
ErrorInfo with_catalogue(ErrorInfo e);                     // cause and remedy from the row where the error has none

// The candidate nearest to `name` by letters changed, swapped, added or dropped, case and '_' aside; "" if none is near.
std::string nearest(std::string_view name, std::span<const std::string> candidates);
// " (did you mean 'x'?)", or "" if nothing is near.
std::string did_you_mean(std::string_view name, std::span<const std::string> candidates, std::string_view prefix = "");

}  // namespace gaf
