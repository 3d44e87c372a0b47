// What the ranks of a process column exchange in a simulated Linpack, and what that takes.
#ifndef SCALE_HPL_COLUMN_H
#define SCALE_HPL_COLUMN_H

#include <vector>

#include "hpl_plan.h"

namespace scale {

/// One rank's end; all of the column take part.
class Column {
 public:
  Column(const LinpackPlan& plan, const char* lane, size_t p, size_t q)
      : plan_(plan), p_(p), q_(q), lanes_(lane, plan.rank(p, q)) {}
  void open(const simgrid::s4u::ActorPtr& receiver);
  /// To each other rank, nearest first; false if something else came than what is to come.
  bool all(uint64_t bytes, const Values& values);
  /// With the rank whose number differs in a bit, one bit after the other.
  bool doubling(uint64_t bytes, const Values& values);
  /// To the next rank alone.
  bool next(uint64_t bytes, const Values& values);

 private:
  void put(size_t p, uint64_t bytes, Values values);
  bool take(size_t p, Values values);
  void settle();

  const LinpackPlan& plan_;
  size_t p_, q_;
  Lanes lanes_;
  std::vector<simgrid::s4u::CommPtr> sent_;
};

/// What the exchange of a pivot takes while nothing else goes on: to all go the candidate's row of the panel
/// and the top one. The mean of some in a row.
double pivot_us(simgrid::s4u::Engine& engine, const LinpackPlan& plan, bool& right);

/// An exchange of rows: to all a share, and as much again from the holder of the top, for what it displaces.
/// Gives how many shares go to the next rank in that time.
double shares(simgrid::s4u::Engine& engine, const LinpackPlan& plan, bool& right);

}  // namespace scale

#endif
