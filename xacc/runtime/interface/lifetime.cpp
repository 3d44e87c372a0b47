// The beginning of a program, and what its end frees, in this order.
#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/coarrays/locks.h"
#include "xacc/runtime/collectives/exchanges.h"
#include "xacc/runtime/data/arrays.h"
#include "xacc/runtime/data/coarray_memory.h"
#include "xacc/runtime/data/key_table.h"
#include "xacc/runtime/data/local_arrays.h"
#include "xacc/runtime/data/present.h"
#include "xacc/runtime/gmove/on_gpus.h"
#include "xacc/runtime/gpu/device_loops.h"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/gpu/kernels.h"
#include "xacc/runtime/gpu/small_copies.h"
#include "xacc/runtime/program/collective.h"
#include "xacc/runtime/program/program.h"
#include "xacc/runtime/reflect/plans.h"

namespace pwx {
namespace {

void free_everything() {
  free_halos();
  free_gmove_plans();
  free_present();
  free_exchanges();
  free_loops();
  free_small_copies();
  free_kernels();
  free_queues();
  free_coarrays();
  free_key_table();
  free_locks();
  free_arrays();
  free_local_arrays();
}

// A constructor may execute directives before main, so that the end of the program may need this at any time.
const bool ending_is_set = (set_ending({close_key_table, free_everything}), true);

}  // namespace
}  // namespace pwx

extern "C" void pwx_begin(int* /*argc*/, char*** /*argv*/) {
  static const pwx_where start{"start", 0};
  pwx::guarded(&start, [] {
    pwx::program();
    pwx::make_key_table();
    pwx::set_up_units();
    if (pwx::arrays_are_reached())
      pwx::barrier(pwx::program(), pwx::program().all());  // all file-scope arrays exist
  });
}
