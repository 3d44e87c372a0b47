#include "hpl_column.h"

#include <memory>
#include <utility>

namespace scale {

namespace s4u = simgrid::s4u;

void Column::open(const s4u::ActorPtr& receiver) {
  for (size_t p = 0; p < plan_.rows; ++p)
    if (p != p_) lanes_.open(plan_.rank(p, q_), receiver);
}

bool Column::all(uint64_t bytes, const Values& values) {
  for (size_t step = 1; step < plan_.rows; ++step) put((p_ + step) % plan_.rows, bytes, values);
  bool right = true;
  for (size_t step = 1; step < plan_.rows; ++step)
    right = take((p_ + plan_.rows - step) % plan_.rows, values) && right;
  settle();
  return right;
}

bool Column::doubling(uint64_t bytes, const Values& values) {
  bool right = true;
  for (size_t bit = 1; bit < plan_.rows; bit *= 2) {
    put(p_ ^ bit, bytes, values);
    right = take(p_ ^ bit, values) && right;
    settle();
  }
  return right;
}

bool Column::next(uint64_t bytes, const Values& values) {
  put((p_ + 1) % plan_.rows, bytes, values);
  const bool right = take((p_ + plan_.rows - 1) % plan_.rows, values);
  settle();
  return right;
}

void Column::put(size_t p, uint64_t bytes, Values values) {
  values.push_back(p_);
  sent_.push_back(lanes_.to(plan_.rank(p, q_)).put(bytes, std::move(values)));
}

bool Column::take(size_t p, Values values) {
  values.push_back(p);
  return lanes_.from(plan_.rank(p, q_)).wait() == values;
}

void Column::settle() {
  for (const s4u::CommPtr& put : sent_) put->wait();
  sent_.clear();
}

// ---- times ----

namespace {

constexpr int kPivotsTimed = 8;

/// Returns the time that the ranks of the first process column take for something while nothing else is going
/// on.
template <class Act>
double in_column(s4u::Engine& engine, const LinpackPlan& plan, const char* what, bool& right, Act&& act) {
  return timed(engine, [&] {
    for (size_t p = 0; p < plan.rows; ++p) {
      const auto column = std::make_shared<Column>(plan, what, p, 0);
      column->open(s4u::Actor::create("rank", plan.job.host_of[p], [&, column, p] {
        if (!act(*column, p)) right = false;
      }));
    }
  });
}

}  // namespace

double pivot_us(s4u::Engine& engine, const LinpackPlan& plan, bool& right) {
  const uint64_t bytes = kNumber * (2 * plan.asked.nb + 8);
  const double us = in_column(engine, plan, "pivot", right, [&](Column& column, size_t) {
    bool good = true;
    for (uint64_t i = 0; i < kPivotsTimed; ++i)
      good = (plan.asked.doubling ? column.doubling(bytes, {i}) : column.all(bytes, {i})) && good;
    return good;
  });
  return us / kPivotsTimed;
}

double shares(s4u::Engine& engine, const LinpackPlan& plan, bool& right) {
  constexpr uint64_t kShare = uint64_t{64} << 20;
  const double all = in_column(engine, plan, "rows", right, [&](Column& column, size_t p) {
    return column.all(p == 0 ? 2 * kShare : kShare, {0});
  });
  const double one =
      in_column(engine, plan, "row", right, [&](Column& column, size_t) { return column.next(kShare, {0}); });
  return all / one;
}

}  // namespace scale
