// What the plan handle of the C interface holds.
#pragma once

#include <memory>
#include <utility>

#include "context/handle.h"
#include "plan/plan.h"

struct pw_plan {
  pw_plan(std::shared_ptr<pw::Context> in, pw::Device& device)
      : context(std::move(in)), plan(*context, device) {}
  std::shared_ptr<pw::Context> context;
  pw::Uses uses;
  pw::Plan plan;
};
