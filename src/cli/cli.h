// The command line as one function (CONTRACT 1): arguments in, exit code out. What other folders may know of cli/.
#pragma once

namespace gaf {

int run_command_line(int argc, char** argv);

}  // namespace gaf
