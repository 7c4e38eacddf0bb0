// The command `gaf`. All it does is in cli/.
#include "cli/cli.h"

int main(int argc, char** argv) { return gaf::run_command_line(argc, argv); }
