// The commands, one file each: a session in, an exit code out (0, or 1 where a requested check failed).
#pragma once
#include "cli/session.h"

namespace gaf {

int command_run(const Session& s);
int command_bench(const Session& s);
int command_explain(const Session& s);
int command_compare(const Session& s);
int command_fuse(const Session& s);
int command_emit(const Session& s);
int command_config(const Session& s);
int command_version(bool json);

}  // namespace gaf
