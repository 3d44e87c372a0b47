// Tasks: they change which nodes execute.
#include <algorithm>

#include "xacc/runtime/base/failure.h"
#include "xacc/runtime/program/program.h"

extern "C" {

pwx_task pwx_task_begin(const pwx_ref* on, int nocomm, const pwx_where* where) {
  return pwx::guarded(where, [&] {
    const pwx::Set& set = pwx::program().sets.of(*on);
    const bool inside = set.index >= 0;
    if (inside && nocomm == 0) {
      const auto& outer = pwx::program().executing().ranks;
      for (const int rank : set.ranks)
        if (std::ranges::find(outer, rank) == outer.end())
          pwx::refuse("task on ", pwx::text_of(*on),
                      ", which names nodes that do not execute here; name nodes of "
                      "the task around it");
      pwx::program().push(set);
    }
    return pwx_task{inside ? 1 : 0, inside && nocomm == 0 ? 1 : 0};
  });
}

void pwx_task_end(pwx_task* task) {
  if (task->pushed != 0) pwx::program().pop();
  task->pushed = 0;
}

}  // extern "C"
