// Programs run by the CPU: the same steps that a GPU's blocks run, by whichever thread the plan is
// started from. A step that cannot go on is left and looked at again, so that a start from the host never
// waits.
#pragma once

#include <memory>

#include "device/program.h"

namespace pw {

std::unique_ptr<Runner> make_host_runner(const Program& program);

}  // namespace pw
