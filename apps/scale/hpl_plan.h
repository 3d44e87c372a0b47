// The data that all ranks of a simulated Linpack share, and their lanes.
#ifndef SCALE_HPL_PLAN_H
#define SCALE_HPL_PLAN_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "../hpl/broadcast.h"
#include "hpl.h"
#include "post.h"

namespace scale {

constexpr uint64_t kNumber = 8;  // bytes

/// The data that all ranks share.
struct LinpackPlan {
  const Job& job;
  const Linpack& asked;
  uint64_t n;
  hpl::Variant variant;
  size_t rows, columns;        // P and Q
  std::vector<double> chosen;  // for each simulated panel, the number of panels up to it
  double pivot_us = 0, shares = 0;
  std::vector<simgrid::s4u::BarrierPtr> together{};  // for each process column

  [[nodiscard]] size_t rank(size_t p, size_t q) const { return p + q * rows; }
  [[nodiscard]] size_t ranks() const { return rows * columns; }
  [[nodiscard]] double behind(size_t step) const {  // rows and columns of the matrix after the panel
    return static_cast<double>(n) - chosen[step] * static_cast<double>(asked.nb);
  }
  [[nodiscard]] double rows_behind(size_t step) const { return behind(step) / static_cast<double>(rows); }
  [[nodiscard]] double columns_behind(size_t step) const {
    return behind(step) / static_cast<double>(columns);
  }
  [[nodiscard]] uint64_t panel_bytes(size_t step) const {
    const auto width = static_cast<double>(asked.nb);
    return static_cast<uint64_t>(kNumber * width * (width + rows_behind(step)));
  }
  /// Returns the bytes that a rank has of the top rows of `of_columns` columns, if pivots are spread evenly.
  [[nodiscard]] double share(double of_columns) const {
    return static_cast<double>(kNumber * asked.nb) / static_cast<double>(rows) * of_columns;
  }
  [[nodiscard]] size_t root(size_t step) const { return step % columns; }
  [[nodiscard]] size_t holder(size_t step) const {
    return step % rows;
  }  // the process row that has the
     // panel's top rows
};

/// The lanes of one kind between a rank and others, by peer.
class Lanes {
 public:
  Lanes(const char* what, size_t rank) : what_(what), rank_(rank) {}
  Lane& to(size_t peer) { return at(to_, peer, rank_, peer); }
  Lane& from(size_t peer) { return at(from_, peer, peer, rank_); }
  void open(size_t peer, const simgrid::s4u::ActorPtr& receiver) { from(peer).open(receiver); }

 private:
  Lane& at(std::map<size_t, Lane>& lanes, size_t peer, size_t from, size_t to) {
    return lanes.try_emplace(peer, what_ + std::to_string(from) + ">" + std::to_string(to)).first->second;
  }
  const char* what_;
  size_t rank_;
  std::map<size_t, Lane> to_, from_;
};

}  // namespace scale

#endif
