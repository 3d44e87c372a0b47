// barrier, reduction and bcast of values in host memory.
#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/base/operators.h"
#include "xacc/runtime/gpu/gpu.h"
#include "xacc/runtime/program/collective.h"
#include "xacc/runtime/program/program.h"

extern "C" {

void pwx_barrier(const pwx_ref* on, const pwx_where* where) {
  pwx::guarded(where, [&] {
    pwx::wait_for_unqueued();
    pwx::barrier(pwx::program(), pwx::program().set_of(on));
  });
}

void pwx_reduce(const pwx_ref* on, pwx_op op, pwx_type type, void* value, size_t count,
                const pwx_where* where) {
  pwx::guarded(where, [&] {
    pwx::reduce(pwx::program(), pwx::program().set_of(on), pwx::combine_of(op, type), value, count,
                pwx::size_of(type));
  });
}

void pwx_bcast(const pwx_ref* on, const pwx_ref* from, void* value, size_t bytes, const pwx_where* where) {
  pwx::guarded(where, [&] {
    const pwx::Set& set = pwx::program().set_of(on);
    if (set.index >= 0) pwx::broadcast(pwx::program(), set, pwx::root_of(set, from), value, bytes);
  });
}

}  // extern "C"
