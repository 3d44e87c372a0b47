// What the plan handle of the C interface holds.
#pragma once

#include "plan/plan.h"

struct pw_plan {
  pw_plan(pw::Context& context, pw::Device& device) : plan(context, device) {}
  pw::Plan plan;
};
