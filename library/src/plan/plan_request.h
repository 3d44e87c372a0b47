// The request that a start of a plan returns: it is complete when that start is finished.
#pragma once

#include <memory>

#include "base/status.h"
#include "context/request.h"
#include "plan/plan.h"

namespace pw {

class PlanRequest final : public Request {
 public:
  PlanRequest(std::weak_ptr<Plan> plan, uint64_t number) : plan_(std::move(plan)), number_(number) {}

  bool complete(pw_status& ended) override {
    const auto plan = plan_.lock();
    if (plan != nullptr) return plan->finished(number_, ended);
    ended = fail(PW_CLOSED, "the plan of this request was freed before it was finished");
    return true;
  }
  [[nodiscard]] Source* source() override {
    const auto plan = plan_.lock();
    return plan == nullptr ? nullptr : plan->source();
  }

 private:
  std::weak_ptr<Plan> plan_;
  uint64_t number_;
};

}  // namespace pw
