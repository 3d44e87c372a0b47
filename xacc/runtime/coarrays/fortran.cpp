// What coarrays of Fortran have beyond those of C: DEALLOCATE, collective subroutines, and waiting for a
// variable that another image changes.
#include <thread>
#include <vector>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/base/operators.h"
#include "xacc/runtime/coarrays/synchronisation.h"
#include "xacc/runtime/data/coarray_memory.h"
#include "xacc/runtime/program/collective.h"
#include "xacc/runtime/program/program.h"

extern "C" {

void pwx_coarray_end(pwx_coarray* x, const pwx_where* where) {
  if (x->state == nullptr) return;
  pwx::guarded(where, [&] {
    pwx::complete_segment();
    pwx::barrier(pwx::program(), pwx::program().executing());
    pwx::free_coarray(x->state);
    x->state = nullptr;
    x->base = nullptr;
  });
}

void pwx_coarray_keep_bounds(pwx_coarray* x, const long* bounds, int count) {
  x->state->image_bounds.assign(bounds, bounds + count);
}

void pwx_coarray_bounds(const pwx_coarray* x, long* bounds, int count) {
  const std::vector<long>& kept = x->state->image_bounds;
  for (int at = 0; at < count; ++at)
    bounds[at] = static_cast<size_t>(count) == kept.size() ? kept[static_cast<size_t>(at)] : at % 2 == 0;
}

void pwx_co_reduce(pwx_op op, pwx_type type, void* value, size_t count, const pwx_where* where) {
  pwx::guarded(where, [&] {
    pwx::Program& program = pwx::program();
    pwx::reduce(program, program.executing(), pwx::combine_of(op, type), value, count, pwx::size_of(type));
  });
}

void pwx_co_broadcast(long image, void* value, size_t bytes, const pwx_where* where) {
  pwx::guarded(where, [&] {
    pwx::Program& program = pwx::program();
    const pwx::Set& images = program.executing();
    if (image < 0 || image >= images.size())
      pwx::refuse("co_broadcast from image ", image + 1, "; there are images 1 to ", images.size());
    pwx::broadcast(program, images, static_cast<int>(image), value, bytes);
  });
}

void pwx_look_again(const pwx_where* where) {
  pwx::guarded(where, [&] {
    pwx::complete_segment();
    if (pwx::program().mail.goodbye_heard())
      throw pwx::Failure("another image ended while this one waits for a variable to change");
    std::this_thread::yield();
  });
}

}  // extern "C"
