// Runs programs on the CPU: the same steps that a GPU's blocks run, on the thread that starts the plan. A
// step that cannot proceed is tried again later, so that a start from the host never waits.
#pragma once

#include <memory>

#include "device/program.h"

namespace pw {

std::unique_ptr<Runner> make_host_runner(const Program& program);

}  // namespace pw
