// The exchanges of the ranks of a process column in a simulated Linpack, and the time that they take.
#ifndef SCALE_HPL_COLUMN_H
#define SCALE_HPL_COLUMN_H

#include <vector>

#include "hpl_plan.h"

namespace scale {

/// One rank's end; all ranks of the column take part.
class Column {
 public:
  Column(const LinpackPlan& plan, const char* what, size_t p, size_t q)
      : plan_(plan), p_(p), q_(q), lanes_(what, plan.rank(p, q)) {}
  void open(const simgrid::s4u::ActorPtr& receiver);
  /// Sends to each other rank, nearest first; returns false if something other than the expected message
  /// arrived.
  bool all(uint64_t bytes, const Values& values);
  /// Exchanges with the rank whose number differs in one bit, one bit after the other.
  bool doubling(uint64_t bytes, const Values& values);
  /// Sends only to the next rank.
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

/// Returns the time of the exchange of a pivot while nothing else is going on: the candidate's row of the
/// panel and the top row go to all ranks. It is the mean of several in a row.
double pivot_us(simgrid::s4u::Engine& engine, const LinpackPlan& plan, bool& right);

/// Simulates an exchange of rows: a share goes to all ranks, and the holder of the top also sends as much for
/// the rows that it displaces. Returns how many shares can be sent to the next rank in that time.
double shares(simgrid::s4u::Engine& engine, const LinpackPlan& plan, bool& right);

}  // namespace scale

#endif
