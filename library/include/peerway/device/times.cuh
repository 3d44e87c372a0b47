// Records when a plan ran, for `peerway trace`. The workers of a start or finish read the GPU's timer when
// the first of them begins and the last ends; the last writes both times to host memory. An untraced plan has
// no records and pays one branch on a kernel parameter.
#ifndef PEERWAY_DEVICE_TIMES_CUH
#define PEERWAY_DEVICE_TIMES_CUH

#include "peerway/device/memory.cuh"

namespace peerway::device {

/// In host memory: one start or finish that has ended.
struct StepRecord {
  Word number;  ///< counted from 1; stored after the others
  Word part;    ///< the lowest part_bits: an index of StepTimes::part; the bits above: the launch's number,
                ///< given by the host
  Word begin, end;
};

/// In device memory, one for each plan.
struct StepTimes {
  enum : unsigned { start, finish, both, in_kernels };  ///< start and finish in kernels: in_kernels + 0 and 1
  enum : unsigned { part_bits = 8 };
  struct Phase {
    Word begun, ended;  ///< workers that have begun and ended, over all runs
    Word begin;         ///< when the current run began
  };
  Phase part[5];
  Word records;  ///< number of records written so far
  Word mask;     ///< number of entries of `record`, minus 1
  StepRecord* record;
};

namespace detail {

PW_ON_DEVICE StepTimes::Phase& phase_of(StepTimes& times, unsigned part) {
  return times.part[part & ((1u << StepTimes::part_bits) - 1)];
}

template <class Scope>
PW_ON_DEVICE void note_begin(const Scope& scope, StepTimes* times, unsigned part, unsigned workers) {
  if (scope.index() != 0) return;
  StepTimes::Phase& own = phase_of(*times, part);
  const Word now = clock_ns();
  if (fetch_add(&own.begun, 1) % workers == 0) store_relaxed(&own.begin, now);
}

template <class Scope>
PW_ON_DEVICE void note_end(const Scope& scope, StepTimes* times, unsigned part, unsigned workers) {
  scope.sync();
  if (scope.index() != 0) return;
  StepTimes::Phase& own = phase_of(*times, part);
  if ((fetch_add(&own.ended, 1) + 1) % workers != 0) return;
  const Word number = fetch_add(&times->records, 1);
  StepRecord* record = times->record + (number & times->mask);
  store_relaxed(&record->part, part);
  store_relaxed(&record->begin, load_relaxed(&own.begin));
  store_relaxed(&record->end, clock_ns());
  store_release(&record->number, number + 1);
}

}  // namespace detail
}  // namespace peerway::device

#endif
