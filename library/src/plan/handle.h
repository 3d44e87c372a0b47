// The contents of the C interface's handles of plans and builders.
#pragma once

#include <memory>
#include <span>
#include <utility>

#include "base/status.h"
#include "context/handle.h"
#include "plan/plan.h"

struct pw_plan {
  std::shared_ptr<pw::Context> context;
  pw::Uses uses;
  std::shared_ptr<pw::Plan> plan;  ///< requests know it weakly
};

struct pw_plan_builder {
  pw_plan_builder(std::shared_ptr<pw::Context> in, pw::Device& device)
      : context(std::move(in)), plan(std::make_shared<pw::Plan>(*context, device)) {}

  /// The operations of the plan, to add to. Throws Error once it was prepared.
  [[nodiscard]] pw::PlanOperations& operations() const { return open().operations(); }
  [[nodiscard]] pw::Plan& open() const {
    if (plan == nullptr)
      throw pw::Error(PW_INVALID_ARGUMENT, "this builder has already made its plan; create another one");
    return *plan;
  }
  /// Throws Error.
  std::unique_ptr<pw_plan> prepare(bool alone) {
    open().prepare(alone);
    return prepared();
  }
  std::unique_ptr<pw_plan> prepare_among(std::span<const int> ranks) {
    open().prepare_among(ranks);
    return prepared();
  }
  /// Takes the plan, which has been prepared, out of the builder.
  std::unique_ptr<pw_plan> prepared() {
    return std::unique_ptr<pw_plan>(new pw_plan{context, std::move(uses), std::move(plan)});
  }

  std::shared_ptr<pw::Context> context;
  pw::Uses uses;
  std::shared_ptr<pw::Plan> plan;
};
